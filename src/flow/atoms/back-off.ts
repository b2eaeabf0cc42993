/** A retry that waits between attempts. */
import { InvalidArgument } from '../../core/errors.ts'
import { type Failure, isFinal } from '../../core/failure.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import { backoffDelay, type Duration, toMilliseconds } from '../../core/time.ts'
import type { Provides } from './atom.ts'
import type { NoMembers } from './atom-options.ts'
import { type GivingUp, givingUp, type RetryNaming } from './retries.ts'
import { type Retry, retry } from './retry.ts'

/** The number of attempts of a flow, and the waits between them. */
export interface BackOffOptions<P extends Provides = never> extends RetryNaming<P>, GivingUp {
  /** The number of attempts in all; 5 by default. */
  readonly attempts?: number
  /** The wait after the first failure; 1 s by default. */
  readonly first?: Duration
  /** The factor by which the wait grows each time; 2 by default, 1 for waits of the same length. */
  readonly factor?: number
  /** The longest wait; 5 min by default. */
  readonly max?: Duration
  /** `full` (the default) waits for a random part of the time, so that many clients spread; `none` waits all of it. */
  readonly jitter?: 'full' | 'none'
  /** Whether to try again after this failure; after every one by default, unless it is a NonRetryable. */
  readonly when?: (failure: Failure) => boolean
  /** Returns a number from 0 to 1; for tests. */
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
 * Returns a retry that attempts its flow again after a growing wait. The `retryAfter` of an error (milliseconds, or a text
 * such as `'30s'`) replaces the wait. The wait outlives the process: it ends at the same time in a process that resumes.
 * Provides the number of the attempt, from 1.
 *
 * @throws InvalidArgument for invalid options
 * @example linear({ name: 'call', retry: backOff({ attempts: 4, first: '200ms' }) }, input<…>(), request)
 */
export function backOff<const P extends Provides = never>(
  options: BackOffOptions<P> = {},
): Retry<NoMembers, P, number> {
  assertOptions(options, KNOWN_OPTIONS, 'backOff')
  const { attempts = 5, first = '1s', factor = 2, max = '5m', jitter = 'full', when, random = Math.random } = options
  if (!Number.isSafeInteger(attempts) || attempts < 1)
    throw new InvalidArgument(`backOff: attempts must be a whole number from 1, got ${attempts}`)
  if (!Number.isFinite(factor) || factor < 1)
    throw new InvalidArgument(`backOff: factor must be a number from 1, got ${factor}`)
  const waits = { first: toMilliseconds(first, 'first'), max: toMilliseconds(max, 'max'), factor, jitter, random }
  return retry(options.name ?? '', {
    provides: options.provides,
    execute: (_args, { history }) => history.length + 1,
    onFailure: (_args, { history, failure }) => {
      const again = when ? when(failure) : !isFinal(failure)
      if (!again || history.length >= attempts) return givingUp(options)
      return { decision: 'RETRY', after: failure.retryAfter ?? backoffDelay(history.length, waits) }
    },
  })
}
