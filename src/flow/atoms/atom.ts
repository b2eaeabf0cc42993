/** What tasks and retries have in common: what they need, under which names, and what they make. */
import type { Duration } from '../../core/time.ts'

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
export function listNeeds(atom: AnyAtom): readonly Need[] {
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
export function pickPart(result: unknown, provides: Provides, name: string): { readonly value: unknown } | undefined {
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

/** Whether this can name an atom, a flow, or a value that goes from one to the other. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}
