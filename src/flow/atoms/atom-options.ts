/** The options that tasks and retries share, their types, and their checks at run time. */
import { InvalidArgument } from '../../core/errors.ts'
import type { KnownOptions } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { type AnyAtom, isName, type Provides, type Rebind } from './atom.ts'

export type NoMembers = Record<never, never>

/** The options of an atom. `Q` names its arguments, `O` the optional ones; `B` are bound to other names, `J` injected. */
export interface AtomOptions<
  Q extends string,
  A,
  P extends Provides,
  O extends string = never,
  B extends Rebind = NoMembers,
  J extends object = NoMembers,
> {
  /**
   * The names of the arguments: inputs of the flow, or results of earlier tasks; for a retry, of tasks before its flow.
   */
  readonly requires?: readonly Q[] | undefined
  /** The names of optional arguments: an argument is omitted if nothing provides it. */
  readonly optional?: readonly O[] | undefined
  /** Arguments that are provided under another name: `{ name: 'userName' }` gives `name` the value of `userName`. */
  readonly rebind?: (B & Bindable<A, B>) | undefined
  /** Values of arguments, for this atom alone: nothing has to provide them. */
  readonly inject?: (J & Injectable<A, J>) | undefined
  /**
   * The name under which later tasks require the result; a list of names for the parts of a list; or `{ keys: […] }` for
   * the properties of an object.
   */
  readonly provides?: P | undefined
  /** The version in the logbook, by which a resumed flow detects that the code has changed; `'1.0'` by default. */
  readonly version?: string | undefined
  /** The priority among ready atoms: the greatest is executed, or reverted, first; 0 by default. */
  readonly priority?: number | undefined
  /**
   * The time limit of one `execute` or `revert`. When it is over, `ctx.signal` fires with a Timeout. The engine still waits
   * for the atom: work that is still being done cannot be undone.
   */
  readonly deadline?: Duration | undefined
}

/** The options, and the properties of an atom that are no options: `task('again', { ...greet })` copies a task. */
export const ATOM_OPTIONS: KnownOptions<AtomOptions<never, never, never> & Pick<AnyAtom, 'kind' | 'name'>> = {
  requires: true,
  optional: true,
  rebind: true,
  inject: true,
  provides: true,
  version: true,
  priority: true,
  deadline: true,
  kind: true,
  name: true,
}

/** The arguments as `requires` and `optional` declare them. */
export type Arguments<Q extends string, O extends string> = [O] extends [never]
  ? { [K in Q]: unknown }
  : { [K in Q]: unknown } & { [K in O]?: unknown }

export type Bindable<A, B> = { readonly [K in keyof B]: K extends keyof A ? string : never }
export type Injectable<A, J> = { readonly [K in keyof J]: K extends keyof A ? A[K] : never }

/** Turns an argument that is not declared into a compile error that names it. */
export type Declared<A, Q> =
  Exclude<keyof A, Q> extends never ? unknown : { requires: `missing in requires: ${Exclude<keyof A, Q> & string}` }

type UncheckedAtomOptions = { readonly [K in keyof AtomOptions<never, never, never>]?: unknown }

/**
 * Checks the options of an atom at run time: the caller may have no compiler.
 *
 * @param what the atom, for errors
 * @throws InvalidArgument for names that are not strings, invalid numbers, and arguments that are not declared
 */
export function assertAtomOptions(options: UncheckedAtomOptions, what: string): void {
  const { requires = [], optional = [], rebind = {}, inject = {}, provides, version, priority, deadline } = options
  if (!isNames(requires)) throw new InvalidArgument(`${what}: requires must be a list of names`)
  if (!isNames(optional)) throw new InvalidArgument(`${what}: optional must be a list of names`)
  if (!isProvides(provides))
    throw new InvalidArgument(`${what}: provides must be a name, a list of names, or { keys: [names] }`)
  if (!isRecord(inject)) throw new InvalidArgument(`${what}: inject must be an object of arguments and their values`)
  if (!isRecord(rebind) || !Object.values(rebind).every(isName))
    throw new InvalidArgument(`${what}: rebind must be an object of arguments and the names they are provided under`)
  const declared = new Set([...requires, ...optional, ...Object.keys(inject)])
  for (const argument of Object.keys(rebind)) {
    if (!declared.has(argument))
      throw new InvalidArgument(`${what}: rebind names ${argument}, which is in neither requires nor optional`)
  }
  if (version !== undefined && !isName(version))
    throw new InvalidArgument(`${what}: version must be a non-empty string, such as '1.0'`)
  if (priority !== undefined && !Number.isFinite(priority))
    throw new InvalidArgument(`${what}: priority must be a number`)
  if (deadline !== undefined) toMilliseconds(deadline as Duration, `${what}: deadline`)
}

/** Returns the atom's own frozen copies of its options, which were checked before. */
export function freezeAtom(options: AtomOptions<string, never, Provides, string>): Omit<AnyAtom, 'kind' | 'name'> {
  const { requires = [], optional, provides, version = '1.0', priority, deadline } = options
  const { rebind, inject }: { rebind?: Rebind | undefined; inject?: object | undefined } = options
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
