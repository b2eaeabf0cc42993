/** A retry that waits between attempts. */
import { InvalidArgument } from '../../core/errors.ts'
import type { Failure } from '../../core/failure.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import { backoffDelay, type Duration, toMilliseconds } from '../../core/time.ts'
import type { Provides } from './atom.ts'
import type { NoMembers } from './atom-options.ts'
import { type GivingUp, givingUp, type RetryNaming } from './retries.ts'
import { type Retry, retry } from './retry.ts'

/** How often a flow is tried again, and how long it waits in between. */
export interface BackOffOptions<P extends Provides = never> extends RetryNaming<P>, GivingUp {
  /** In all; 5 by default. */
  readonly attempts?: number
  /** The wait after the first failure; 1 s by default. */
  readonly first?: Duration
  /** What the wait grows by each time; 2 by default, 1 for waits of the same length. */
  readonly factor?: number
  /** No wait is longer; 5 min by default. */
  readonly max?: Duration
  /** `full` (the default) waits for a random part of the time, so that a crowd spreads; `none` for all of it. */
  readonly jitter?: 'full' | 'none'
  /** Whether to try again after this failure; after every one by default, unless it is a NonRetryable. */
  readonly when?: (failure: Failure) => boolean
  /** From 0 to 1; for tests. */
  readonly random?: () => number
}

const KNOWN_OPTIONS: KnownOptions<BackOffOptions> = {
  name: true,
  provides: true,
  revertAll: true,
  attempts: true,
  first: true,
  factor: true,
  max: true,
  jitter: true,
  when: true,
  random: true,
}

/**
 * Attempts its flow again after a wait that grows. An error with a `retryAfter` (milliseconds, or a text such as `'30s'`)
 * says itself how long to wait. The wait outlives the process: it ends at the same time for whoever resumes. Provides
 * the number of the attempt, from 1.
 *
 * @throws InvalidArgument for options that make no sense
 * @example linear({ name: 'call', retry: backOff({ attempts: 4, first: '200ms' }) }, input<…>(), request)
 */
export function backOff<const P extends Provides = never>(
  options: BackOffOptions<P> = {},
): Retry<NoMembers, P, number> {
  assertOptions(options, KNOWN_OPTIONS, 'backOff')
  const { attempts = 5, first = '1s', factor = 2, max = '5m', jitter = 'full', when, random = Math.random } = options
  if (!Number.isSafeInteger(attempts) || attempts < 1)
    throw new InvalidArgument(`backOff: attempts has to be a whole number from 1, not ${attempts}`)
  if (!Number.isFinite(factor) || factor < 1)
    throw new InvalidArgument(`backOff: factor has to be a number from 1, not ${factor}`)
  const waits = { first: toMilliseconds(first, 'first'), max: toMilliseconds(max, 'max'), factor, jitter, random }
  return retry(options.name ?? '', {
    provides: options.provides,
    execute: (_args, { history }) => history.length + 1,
    onFailure: (_args, { history, failure }) => {
      const again = when ? when(failure) : !failure.nonRetryable
      if (!again || history.length >= attempts) return givingUp(options)
      return { decision: 'RETRY', after: failure.retryAfter ?? backoffDelay(history.length, waits) }
    },
  })
}
