/** What tasks and retries are told alike: the options, what the compiler makes of them, and how they are checked. */
import { InvalidArgument } from '../../core/errors.ts'
import type { KnownOptions } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { type AnyAtom, isName, type Provides, type Rebind } from './atom.ts'

export type NoMembers = Record<never, never>

/** Arguments named in `Q`, and those that may be absent in `O`; of them `B` are bound to other names, `J` injected. */
export interface AtomOptions<
  Q extends string,
  A,
  P extends Provides,
  O extends string = never,
  B extends Rebind = NoMembers,
  J extends object = NoMembers,
> {
  /**
   * The names of the arguments: inputs of the flow, or what earlier tasks provide; for a retry, what comes before its flow.
   */
  readonly requires?: readonly Q[] | undefined
  /** The names of arguments that are left out where nobody provides them. */
  readonly optional?: readonly O[] | undefined
  /** Arguments that are provided under another name: `{ name: 'userName' }` gives `name` the value of `userName`. */
  readonly rebind?: (B & Bindable<A, B>) | undefined
  /** Values of arguments, for this atom alone: nobody has to provide them. */
  readonly inject?: (J & Injectable<A, J>) | undefined
  /**
   * The name under which later tasks require the result; a list of names for the parts of a list, or `{ keys: […] }` for
   * those of an object.
   */
  readonly provides?: P | undefined
  /** Recorded in the logbook, so that a resumed flow can tell that the code has changed meanwhile; default `'1.0'`. */
  readonly version?: string | undefined
  /** Of several atoms that are ready the one with the greatest goes first, to execute and to revert; default 0. */
  readonly priority?: number | undefined
  /**
   * How long one `execute` or `revert` may take. When it is over, `ctx.signal` fires with a Timeout. The atom is still
   * waited for: undoing what is still being done would not undo it.
   */
  readonly deadline?: Duration | undefined
}

/** With what an atom has beside them, because one can be made from another: `task('again', { ...greet })`. */
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

/** Turns an argument that nothing names into a compile error that says so. */
export type Declared<A, Q> =
  Exclude<keyof A, Q> extends never ? unknown : { requires: `missing in requires: ${Exclude<keyof A, Q> & string}` }

type UncheckedAtomOptions = { readonly [K in keyof AtomOptions<never, never, never>]?: unknown }

/**
 * Looks at what somebody without a compiler may have passed.
 *
 * @param what the atom, for errors
 * @throws InvalidArgument for names that are no text, numbers that are none, and arguments that are not declared
 */
export function assertAtomOptions(given: UncheckedAtomOptions, what: string): void {
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
  if (deadline !== undefined) toMilliseconds(deadline as Duration, `${what}: deadline`)
}

/** What an atom has of its options, which nobody else holds, and nobody can change. They have been checked. */
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
