/** The common part of tasks and retries: their arguments, the names of these, and the names of their results. */
import type { Duration } from '../../core/time.ts'

/**
 * The names of a result: one name for the whole, a list for the parts of a list, or the keys of an object. With
 * `{ keys: ['width', 'height'] }`, the result's property `width` is provided as `width`.
 */
export type Provides = string | readonly string[] | { readonly keys: readonly string[] }

/** The name under which the value of each argument is provided. */
export type Rebind = Readonly<Record<string, string>>

export interface AnyAtom {
  readonly kind: 'task' | 'retry'
  /** The name in the logbook; unique within the flow that runs and all flows in it. */
  readonly name: string
  readonly version: string
  /** The names of the required arguments. */
  readonly requires: readonly string[]
  /** The names of the arguments that may be absent. */
  readonly optional: readonly string[] | undefined
  readonly rebind: Rebind | undefined
  /** Values of arguments, for this atom alone; they have precedence over all others. */
  readonly inject: object | undefined
  readonly provides: Provides | undefined
  /** The priority among ready atoms: the greatest comes first; 0 if it is undefined. */
  readonly priority: number | undefined
  readonly deadline: Duration | undefined
}

/** A value that an atom needs from outside. */
export interface Need {
  /** The atom's name for it. */
  readonly argument: string
  /** The name under which it is provided. */
  readonly name: string
  readonly optional: boolean
}

/** Returns the needs of an atom: every argument that is not injected, under the name it is bound to. */
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

/** Returns the part of a result that has this name; undefined if there is none, because a list is too short, say. */
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

/** Returns whether this can name an atom, a flow, or a value that atoms pass on. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.isWellFormed()
}
