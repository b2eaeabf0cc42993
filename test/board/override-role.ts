/** Backends whose methods a test replaces, and backends that have only the methods that a test needs. */
import type { Backend } from '../../src/board/contract/index.ts'

type RoleName = Exclude<keyof Backend, 'uri' | 'shared'>

/** The role of a backend. It is an error of the test to call an optional method that the backend lacks. */
type Role<R extends RoleName> = Required<NonNullable<Backend[R]>>

/** An object that has this role. */
type Having<R extends RoleName> = { readonly [Each in R]?: Partial<Role<Each>> | undefined }

/** Replaces methods of a role. `original` has the methods as they were before. */
export function overrideRole<R extends RoleName>(
  backend: Having<R>,
  name: R,
  override: (original: Role<R>) => Partial<Role<R>>,
): void {
  const role = roleOf(backend, name)
  const replaced = new Map<PropertyKey, unknown>()
  const overrides = override(replacing(role, replaced))
  for (const key of Object.keys(overrides)) replaced.set(key, Reflect.get(role, key))
  Object.assign(role, overrides)
}

/** Returns the backend with other methods in a role. The given backend keeps its own. */
export function withRole<R extends RoleName>(
  backend: Backend & Having<R>,
  name: R,
  override: (original: Role<R>) => Partial<Role<R>>,
): Backend {
  const role = roleOf(backend, name)
  const overridden = replacing(role, new Map(Object.entries(override(role))))
  return new Proxy(backend, { get: (_, key) => (key === name ? overridden : Reflect.get(backend, key)) })
}

/** Returns a backend that has only these methods. */
export function fakeBackend(roles: { readonly [R in keyof Backend]?: Partial<Backend[R]> }): Backend {
  return roles as Backend
}

function roleOf<R extends RoleName>(backend: Having<R>, name: R): Role<R> {
  const role: Partial<Role<R>> | undefined = backend[name]
  if (!role) throw new Error(`the backend has no ${name}`)
  return role as Role<R>
}

/** Returns the role with these values in place of its own. The methods are bound to the role. */
function replacing<T extends object>(role: T, values: ReadonlyMap<PropertyKey, unknown>): T {
  return new Proxy(role, {
    get: (_, key) => {
      const value: unknown = values.has(key) ? values.get(key) : Reflect.get(role, key)
      return typeof value === 'function' ? value.bind(role) : value
    },
  })
}
