/** TaskFlow's retries. Each decides by its history alone, so a process that resumes comes to the same decision. */
import { isDeepStrictEqual } from 'node:util'
import { InvalidArgument, NotFound } from '../../core/errors.ts'
import { isFinal } from '../../core/failure.ts'
import type { Provides } from './atom.ts'
import type { NoMembers } from './atom-options.ts'
import type { History } from './history.ts'
import { type Decision, type Retry, retry } from './retry.ts'

export interface RetryNaming<P extends Provides> {
  /** The name in the logbook; `<flow>_retry` by default. */
  readonly name?: string
  /** The name under which the tasks of the flow know the value of the attempt. */
  readonly provides?: P
}

export interface GivingUp {
  /** Whether giving up reverts everything, and does not ask the retries of outer flows; false by default. */
  readonly revertAll?: boolean
}

/** Returns a retry that reverts its flow at the first failure. */
export function alwaysRevert(options: { readonly name?: string } = {}): Retry<NoMembers, never, undefined> {
  return retry(options.name ?? '', { execute: () => undefined, onFailure: () => 'REVERT' })
}

/** Returns a retry that reverts everything at the first failure, without asking the retries of outer flows. */
export function alwaysRevertAll(options: { readonly name?: string } = {}): Retry<NoMembers, never, undefined> {
  return retry(options.name ?? '', { execute: () => undefined, onFailure: () => 'REVERT_ALL' })
}

/**
 * Returns a retry that makes `attempts` attempts of its flow in all; 0 and 1 mean one attempt. It provides the number of the
 * attempt, from 1. It gives up at once when a task throws a NonRetryable.
 *
 * @example linear({ name: 'upload', retry: times(3, { provides: 'attempt' }) }, input<…>(), connect, send)
 */
export function times<const P extends Provides = never>(
  attempts = 1,
  options: RetryNaming<P> & GivingUp = {},
): Retry<NoMembers, P, number> {
  if (!Number.isSafeInteger(attempts) || attempts < 0)
    throw new InvalidArgument(`times: attempts must be a whole number, got ${attempts}`)
  return retry(options.name ?? '', {
    provides: options.provides,
    execute: (_args, { history }) => history.length + 1,
    onFailure: (_args, { history, failure }) =>
      history.length < attempts && !isFinal(failure) ? 'RETRY' : givingUp(options),
  })
}

/**
 * Returns a retry that attempts its flow with one value after the other, and provides the value. A value that occurs twice is
 * tried twice. The flow fails with NotFound if there are no values.
 *
 * @example linear({ name: 'fetch', retry: forEach(['a.example', 'b.example'], { provides: 'host' }) }, input<…>(), get)
 */
export function forEach<V, const P extends Provides = never>(
  values: Iterable<V>,
  options: RetryNaming<P> & GivingUp = {},
): Retry<NoMembers, P, V> {
  const all = [...values]
  return retry(options.name ?? '', {
    provides: options.provides,
    execute: (_args, { history }): V => nextValue(all, history),
    onFailure: (_args, { history }) => (remainingValues(all, history).length > 0 ? 'RETRY' : givingUp(options)),
  })
}

/** Returns a retry as {@link forEach} does; its values are provided under the name `from`, `values` by default. */
export function parameterizedForEach<V = unknown, const P extends Provides = never, const F extends string = 'values'>(
  options: RetryNaming<P> & GivingUp & { readonly from?: F } = {},
): Retry<{ values: Iterable<V> }, P, V, { readonly values: F }> {
  const { from } = options
  return retry(options.name ?? '', {
    requires: ['values'],
    // Without `from`, the type F is its default: the name of the argument.
    rebind: { values: from ?? ('values' as F) },
    provides: options.provides,
    execute: ({ values }: { values: Iterable<V> }, { history }): V => nextValue([...values], history),
    onFailure: ({ values }, { history }) =>
      remainingValues([...values], history).length > 0 ? 'RETRY' : givingUp(options),
  })
}

export function givingUp(options: GivingUp): Decision {
  return options.revertAll ? 'REVERT_ALL' : 'REVERT'
}

function nextValue<V>(values: readonly V[], tried: History): V {
  const rest = remainingValues(values, tried)
  if (rest.length === 0) throw new NotFound('No elements left: every value was tried, or there are none')
  return rest[0] as V
}

/**
 * Removes one equal value for each attempt: values from the logbook are copies, so identity does not work. If the logbook does not know the
 * value of an attempt any more, the first remaining value is removed: values are tried in their order.
 */
function remainingValues<V>(values: readonly V[], { provided, forgotten }: History): V[] {
  const rest = [...values]
  let unknown = forgotten
  for (const value of provided) {
    const isUnknown = value === undefined && unknown > 0
    if (isUnknown) unknown -= 1
    const index = isUnknown ? 0 : rest.findIndex((candidate) => isDeepStrictEqual(candidate, value))
    if (index >= 0) rest.splice(index, 1)
  }
  return rest
}
