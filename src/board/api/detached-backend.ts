/**
 * Wraps a backend, so that its requests run outside of every span. The first caller starts the loops, connections and group commits that all
 * callers share: without this wrapper, they would belong to the trace of the first caller for as long as the board is open.
 */
import type { Tracer } from '../../core/tracing.ts'
import type { Backend } from '../contract/index.ts'

/** Returns the backend with all functions of its roles called outside of every span. */
export function detachedBackend(backend: Backend, tracer: Pick<Tracer, 'detach'>): Backend {
  const detachFunction = (value: unknown, role: object) => {
    if (typeof value !== 'function') return value
    return (...args: readonly unknown[]) => tracer.detach(() => Reflect.apply(value, role, args))
  }
  return wrapValues(backend, (role) =>
    typeof role === 'object' && role !== null ? wrapValues(role, detachFunction) : role,
  )
}

/** Returns the object with each of its values wrapped, once. */
function wrapValues<T extends object>(target: T, wrap: (value: unknown, target: T) => unknown): T {
  const wrapped = new Map<unknown, unknown>()
  return new Proxy(target, {
    get: (_, key) => {
      const value: unknown = Reflect.get(target, key, target)
      if (!wrapped.has(value)) wrapped.set(value, wrap(value, target))
      return wrapped.get(value)
    },
  })
}
