/** TaskFlow's retries. Each decides by its history alone, so whoever resumes comes to the same decision. */
import { isDeepStrictEqual } from 'node:util'
import { InvalidArgument, NotFound } from '../../core/errors.ts'
import type { Provides } from './atom.ts'
import type { NoMembers } from './atom-options.ts'
import { type Decision, type Retry, retry } from './retry.ts'

export interface RetryNaming<P extends Provides> {
  /** What the logbook knows it by; `<flow>_retry` by default. */
  readonly name?: string
  /** The name under which the tasks of the flow know the value of the attempt. */
  readonly provides?: P
}

export interface GivingUp {
  /** Whether giving up reverts everything, whatever the flows around this one would rather do; false by default. */
  readonly revertAll?: boolean
}

/** Reverts its flow at the first failure. */
export function alwaysRevert(options: { readonly name?: string } = {}): Retry<NoMembers, never, undefined> {
  return retry(options.name ?? '', { execute: () => undefined, onFailure: () => 'REVERT' })
}

/** Reverts everything at the first failure: retries of flows around it are not asked. */
export function alwaysRevertAll(options: { readonly name?: string } = {}): Retry<NoMembers, never, undefined> {
  return retry(options.name ?? '', { execute: () => undefined, onFailure: () => 'REVERT_ALL' })
}

/**
 * Attempts its flow so many times in all; 0 and 1 are one attempt. Provides the number of the attempt, from 1. Where a
 * task throws a NonRetryable it gives up at once.
 *
 * @example linear({ name: 'upload', retry: times(3, { provides: 'attempt' }) }, input<…>(), connect, send)
 */
export function times<const P extends Provides = never>(
  attempts = 1,
  options: RetryNaming<P> & GivingUp = {},
): Retry<NoMembers, P, number> {
  if (!Number.isSafeInteger(attempts) || attempts < 0)
    throw new InvalidArgument(`times: ${attempts} is no number of attempts; use a whole number`)
  return retry(options.name ?? '', {
    provides: options.provides,
    execute: (_args, { history }) => history.length + 1,
    onFailure: (_args, { history, failure }) =>
      history.length < attempts && !failure.nonRetryable ? 'RETRY' : givingUp(options),
  })
}

/**
 * Attempts its flow with one value after the other, and provides it. A value that is there twice is tried twice.
 *
 * @throws NotFound in the flow when there are no values
 * @example linear({ name: 'fetch', retry: forEach(['a.example', 'b.example'], { provides: 'host' }) }, input<…>(), get)
 */
export function forEach<V, const P extends Provides = never>(
  values: Iterable<V>,
  options: RetryNaming<P> & GivingUp = {},
): Retry<NoMembers, P, V> {
  const all = [...values]
  return retry(options.name ?? '', {
    provides: options.provides,
    execute: (_args, { history }): V => nextValue(all, history.provided),
    onFailure: (_args, { history }) =>
      remainingValues(all, history.provided).length > 0 ? 'RETRY' : givingUp(options),
  })
}

/** As {@link forEach}, with the values that are provided as `values`, or as what `from` names. */
export function parameterizedForEach<V = unknown, const P extends Provides = never, const F extends string = 'values'>(
  options: RetryNaming<P> & GivingUp & { readonly from?: F } = {},
): Retry<{ values: Iterable<V> }, P, V, { readonly values: F }> {
  const { from } = options
  return retry(options.name ?? '', {
    requires: ['values'],
    // Without `from` its type is its default, which is the very name of the argument.
    rebind: { values: from ?? ('values' as F) },
    provides: options.provides,
    execute: ({ values }: { values: Iterable<V> }, { history }): V => nextValue([...values], history.provided),
    onFailure: ({ values }, { history }) =>
      remainingValues([...values], history.provided).length > 0 ? 'RETRY' : givingUp(options),
  })
}

export function givingUp(options: GivingUp): Decision {
  return options.revertAll ? 'REVERT_ALL' : 'REVERT'
}

function nextValue<V>(values: readonly V[], tried: readonly V[]): V {
  const rest = remainingValues(values, tried)
  if (rest.length === 0) throw new NotFound('No elements left: every value was tried, or there are none')
  return rest[0] as V
}

/** Each try takes away one value that is equal to what was tried: values come back from the logbook as copies. */
function remainingValues<V>(values: readonly V[], tried: readonly V[]): V[] {
  const rest = [...values]
  for (const value of tried) {
    const index = rest.findIndex((candidate) => isDeepStrictEqual(candidate, value))
    if (index >= 0) rest.splice(index, 1)
  }
  return rest
}
