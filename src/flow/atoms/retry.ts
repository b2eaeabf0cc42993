/**
 * A retry is the atom at the head of a flow that decides what happens when something in the flow fails. It is executed before
 * the other atoms and may provide a value for them, a different one in each attempt.
 */
import { InvalidArgument } from '../../core/errors.ts'
import type { Failure } from '../../core/failure.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import type { Duration } from '../../core/time.ts'
import { type AnyAtom, isName, type Provides, type Rebind } from './atom.ts'
import {
  type Arguments,
  ATOM_OPTIONS,
  type AtomOptions,
  assertAtomOptions,
  type Declared,
  freezeAtom,
  type NoMembers,
} from './atom-options.ts'
import { brand, hasBrand } from './brand.ts'
import type { Context, RevertContext } from './context.ts'
import type { History } from './history.ts'

/**
 * The decision about a failure. RETRY: everything in the flow is reverted, and executed once more. REVERT: the flow is given
 * up, and the retry of the outer flow decides. REVERT_ALL: everything is reverted, and no other retry is asked.
 */
export type Decision = 'RETRY' | 'REVERT' | 'REVERT_ALL'

/** A decision; a retry may also say how long to wait before the next attempt. */
export type RetryDecision = Decision | { readonly decision: 'RETRY'; readonly after: Duration }

/** The context of a retry, with the history of its attempts. */
export interface RetryContext<R, S = unknown> extends Context<S> {
  readonly history: History<R>
}

/** The context of a retry that has to decide. */
export interface FailureContext<R, S = unknown> extends RetryContext<R, S> {
  /** The present failure; the last attempt in the history contains it, too. */
  readonly failure: Failure
  /** The name of the atom that failed: a task, or the retry of an inner flow, which has given up. */
  readonly atom: string
}

/** Any retry, for code that handles retries without knowing their types. */
export interface AnyRetry extends AnyAtom {
  readonly kind: 'retry'
}

/** A frozen retry. `A` are its arguments, `R` is the value of an attempt, which is provided as `P`. */
export interface Retry<
  A,
  P extends Provides,
  R,
  B extends Rebind = NoMembers,
  J extends object = NoMembers,
  S = unknown,
> extends AnyRetry {
  readonly provides: P | undefined
  readonly rebind: B | undefined
  readonly inject: J | undefined
  readonly execute: (args: A, ctx: RetryContext<R, S>) => R | Promise<R>
  readonly onFailure: (args: A, ctx: FailureContext<R, S>) => RetryDecision | Promise<RetryDecision>
  readonly revert: ((args: A, ctx: RevertContext<R, S> & RetryContext<R, S>) => unknown) | undefined
}

export interface RetryOptions<
  Q extends string,
  A,
  P extends Provides,
  R,
  O extends string = never,
  B extends Rebind = NoMembers,
  J extends object = NoMembers,
  S = unknown,
> extends AtomOptions<Q, A, P, O, B, J> {
  /** Returns the value of the next attempt. If it throws, the retry of the outer flow decides. */
  readonly execute: (args: A, ctx: RetryContext<R, S>) => R | Promise<R>
  /** Decides about a failure. It is called once for each failure, and again if the flow resumes before the answer is recorded. */
  readonly onFailure: (args: NoInfer<A>, ctx: FailureContext<NoInfer<R>, S>) => RetryDecision | Promise<RetryDecision>
  readonly revert?:
    | ((args: NoInfer<A>, ctx: RevertContext<NoInfer<R>, S> & RetryContext<NoInfer<R>, S>) => unknown)
    | undefined
}

const KNOWN_OPTIONS: KnownOptions<RetryOptions<never, never, never, never> & AnyRetry> = {
  ...ATOM_OPTIONS,
  execute: true,
  onFailure: true,
  revert: true,
}

/**
 * Describes a custom retry; `times`, `forEach` and others are ready-made.
 *
 * @param name the name in the logbook; `''` names it after its flow, `<flow>_retry`
 * @throws InvalidArgument for invalid options
 * @example
 * const mirrors = retry('mirrors', {
 *   provides: 'mirror',
 *   execute: (_args, { history }) => ['a.example', 'b.example'][history.length],
 *   onFailure: (_args, { history }) => (history.length < 2 ? 'RETRY' : 'REVERT'),
 * })
 */
export function retry<
  const Q extends string = never,
  R = unknown,
  const O extends string = never,
  A extends Arguments<Q, O> = Arguments<Q, O>,
  const P extends Provides = never,
  const B extends Rebind = NoMembers,
  J extends object = NoMembers,
  S = unknown,
>(name: string, options: RetryOptions<Q, A, P, R, O, B, J, S> & Declared<A, Q | O | keyof J>): Retry<A, P, R, B, J, S> {
  if (name !== '' && !isName(name))
    throw new InvalidArgument("a retry's name must be a string; use '' to name it after its flow")
  const what = name === '' ? 'a retry' : `retry ${name}`
  const unchecked: { readonly [K in keyof RetryOptions<Q, A, P, R, O, B, J, S>]?: unknown } = options ?? {}
  for (const needed of ['execute', 'onFailure'] as const) {
    if (typeof unchecked[needed] !== 'function') throw new InvalidArgument(`${what}: ${needed} must be a function`)
  }
  assertOptions(options, KNOWN_OPTIONS, what)
  if (unchecked.revert !== undefined && typeof unchecked.revert !== 'function')
    throw new InvalidArgument(`${what}: revert must be a function`)
  assertAtomOptions(unchecked, what)
  const { execute, onFailure, revert } = options
  return brand('retry', {
    kind: 'retry',
    name,
    // What was checked above has the types that the signature says.
    ...(freezeAtom(options) as Omit<Retry<A, P, R, B, J, S>, 'kind' | 'name' | 'execute' | 'onFailure' | 'revert'>),
    execute,
    onFailure,
    revert,
  })
}

/** Returns the retry, named after its flow if it has no name. */
export function nameAfterFlow(flow: string, named: AnyRetry): AnyRetry {
  return named.name === '' ? brand('retry', { ...named, name: `${flow}_retry` }) : named
}

/** Returns whether this is a retry, made by this or by another copy of the library. */
export function isRetry(value: unknown): value is AnyRetry {
  return hasBrand('retry', value)
}
