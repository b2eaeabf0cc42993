/** What tasks and retries have in common: what they need, under which names, and what they make. */
import { InvalidArgument } from '../core/errors.ts'
import { type Duration, milliseconds } from '../core/time.ts'

/**
 * The names that a result goes by: one for all of it, a list for the parts of a list, or keys that it has. Of
 * `{ keys: ['width', 'height'] }` the result's `width` is known as `width`.
 */
export type Provides = string | readonly string[] | { readonly keys: readonly string[] }

/** For an argument, the name under which its value is provided. */
export type Rebind = Readonly<Record<string, string>>

export interface AnyAtom {
  readonly kind: 'task' | 'retry'
  /** Unique within the flow that runs, with all flows in it: the logbook knows the atom by it. */
  readonly name: string
  readonly version: string
  /** The names of the arguments that have to be there. */
  readonly requires: readonly string[]
  /** The names of the arguments that may be absent. */
  readonly optional: readonly string[] | undefined
  readonly rebind: Rebind | undefined
  /** Values for arguments, for this atom alone; they come before all others. */
  readonly inject: object | undefined
  readonly provides: Provides | undefined
  /** Of several atoms that are ready the one with the greatest comes first; 0 where it is not given. */
  readonly priority: number | undefined
  readonly deadline: Duration | undefined
}

/** One thing that an atom needs from outside of it. */
export interface Need {
  /** What the atom calls it. */
  readonly argument: string
  /** What everybody else calls it. */
  readonly name: string
  readonly optional: boolean
}

/** What somebody else has to provide: every argument that is not injected, under the name it is bound to. */
export function needsOf(atom: AnyAtom): readonly Need[] {
  const { requires, optional = [], rebind = {}, inject = {} } = atom
  const needs = new Map<string, Need>()
  const add = (argument: string, may: { optional: boolean }) => {
    if (Object.hasOwn(inject, argument) || needs.has(argument)) return
    const name = Object.hasOwn(rebind, argument) ? rebind[argument] : undefined
    needs.set(argument, { argument, name: name ?? argument, ...may })
  }
  for (const argument of requires) add(argument, { optional: false })
  for (const argument of optional) add(argument, { optional: true })
  return [...needs.values()]
}

export function namesProvided(provides: Provides | undefined): readonly string[] {
  if (provides === undefined) return []
  if (typeof provides === 'string') return [provides]
  return isList(provides) ? provides : provides.keys
}

/** Undefined where the result has no such part: a list that is too short, say. */
export function partOf(result: unknown, provides: Provides, name: string): { readonly value: unknown } | undefined {
  if (typeof provides === 'string') return { value: result }
  if (isList(provides)) {
    const index = provides.indexOf(name)
    return Array.isArray(result) && index < result.length ? { value: result[index] } : undefined
  }
  const parts: Readonly<Record<string, unknown>> = Object(result)
  return Object.hasOwn(parts, name) ? { value: parts[name] } : undefined
}

function isList(provides: Provides): provides is readonly string[] {
  return Array.isArray(provides)
}

type AtomOptions = { readonly [K in keyof AnyAtom]?: unknown }

/**
 * Looks at what somebody without a compiler may have passed.
 *
 * @param what the atom, for errors
 * @throws InvalidArgument for names that are no text, numbers that are none, and arguments that are not declared
 */
export function assertAtomOptions(given: AtomOptions, what: string): void {
  const { requires = [], optional = [], rebind = {}, inject = {}, provides, version, priority, deadline } = given
  if (!isNames(requires)) throw new InvalidArgument(`${what}: requires has to be a list of names`)
  if (!isNames(optional)) throw new InvalidArgument(`${what}: optional has to be a list of names`)
  if (!isProvides(provides))
    throw new InvalidArgument(`${what}: provides has to be a name, a list of names, or { keys: [names] }`)
  if (!isRecord(inject)) throw new InvalidArgument(`${what}: inject has to be an object of arguments and their values`)
  if (!isRecord(rebind) || !Object.values(rebind).every(isName))
    throw new InvalidArgument(`${what}: rebind has to be an object of arguments and the names they are provided under`)
  const declared = new Set([...requires, ...optional, ...Object.keys(inject)])
  for (const argument of Object.keys(rebind)) {
    if (!declared.has(argument))
      throw new InvalidArgument(`${what}: rebind names ${argument}, which is in neither requires nor optional`)
  }
  if (version !== undefined && !isName(version))
    throw new InvalidArgument(`${what}: version has to be a text such as '1.0'`)
  if (priority !== undefined && !Number.isFinite(priority))
    throw new InvalidArgument(`${what}: priority has to be a number`)
  if (deadline !== undefined) milliseconds(deadline as Duration, `${what}: deadline`)
}

/** A copy that nobody else holds, and nobody can change. */
export function frozenAtom(given: Omit<AnyAtom, 'kind' | 'name'>): Omit<AnyAtom, 'kind' | 'name'> {
  const { requires, optional, rebind, inject, provides, version, priority, deadline } = given
  return {
    version,
    requires: Object.freeze([...requires]),
    optional: optional && Object.freeze([...optional]),
    rebind: rebind && Object.freeze({ ...rebind }),
    inject: inject && Object.freeze({ ...inject }),
    provides: typeof provides === 'object' ? Object.freeze(structuredClone(provides)) : provides,
    priority,
    deadline,
  }
}

/** Whether this can name an atom, a flow, or a value that goes from one to the other. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(isName)
}

function isProvides(value: unknown): boolean {
  if (value === undefined || isName(value)) return true
  const names = isRecord(value) && 'keys' in value ? value['keys'] : value
  return isNames(names) && names.length > 0 && new Set(names).size === names.length
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
