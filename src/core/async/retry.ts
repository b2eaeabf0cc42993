/** Repeats failed work with growing pauses. All retry loops of the project are in this file. */
import { ClaimLost, JobboardError, NotConnected, OutcomeUnknown } from '../errors.ts'
import { attempt } from '../result.ts'
import { backoffDelay, monotonic, sleep } from '../time.ts'
import { type Stoppable, toAbortSignal } from './abort-flag.ts'

interface PauseOptions {
  /** The longest pause after the first failure, in milliseconds. It doubles with each further failure. */
  readonly firstPauseMs: number
  /** The upper limit of every pause, in milliseconds. */
  readonly maxPauseMs: number
  /** `full` (the default): a pause has a random length, so that many clients do not retry at once. `none`: its full length. */
  readonly jitter?: 'full' | 'none'
}

export interface RetryOptions extends PauseOptions {
  /** The number of failures before this call; 0 by default. If there were any, a pause comes before the first try, too. */
  readonly failuresBefore?: number
  /** The time limit in milliseconds: the error is thrown if the next pause would end later. */
  readonly limitMs?: number
  /** Ends the current pause at once, and stops the retries. */
  readonly signal?: Stoppable | undefined
  /** Whether one more try follows when the signal fires during a pause, or has fired before the first try. */
  readonly triesWhenAborted?: boolean
  /** Returns whether another try follows the error of try `attempt` (from 1); by default it always does. */
  readonly isRetryable?: (error: unknown, attempt: number) => boolean | Promise<boolean>
  /** Called before the pause after try `attempt` (from 1). */
  readonly onRetry?: (error: unknown, attempt: number) => void
}

/**
 * Calls `work` until it resolves. Failed work may have been done nevertheless, so it must be safe to repeat it.
 *
 * @param work called with the number of the try, from 1
 * @throws the error of the last try; the signal's reason if the signal fired before the first try or during a pause
 */
export async function retry<T>(work: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal, failuresBefore = 0, limitMs = Number.POSITIVE_INFINITY, isRetryable, onRetry } = options
  const end = monotonic() + limitMs
  if (failuresBefore > 0) await pause(pauseAfter(failuresBefore, options), options)
  else if (!options.triesWhenAborted) signal?.throwIfAborted()
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt)
    } catch (error) {
      const pauseMs = pauseAfter(failuresBefore + attempt, options)
      if (signal?.aborted || monotonic() + pauseMs > end) throw error
      if (isRetryable && !(await isRetryable(error, attempt))) throw error
      onRetry?.(error, attempt)
      await pause(pauseMs, options)
    }
  }
}

/** Retries work that is not needed any more once the signal fires. Works like {@link retry}, but resolves to undefined then. */
export async function retryUntilAborted<T>(
  work: (attempt: number) => Promise<T>,
  options: RetryOptions & { readonly signal: Stoppable },
): Promise<T | undefined> {
  try {
    return await retry(work, options)
  } catch (error) {
    if (options.signal.aborted) return undefined
    throw error
  }
}

function pauseAfter(failures: number, { firstPauseMs, maxPauseMs, jitter = 'full' }: PauseOptions): number {
  return backoffDelay(failures, { first: firstPauseMs, max: maxPauseMs, jitter })
}

async function pause(
  ms: number,
  { signal, triesWhenAborted }: Pick<RetryOptions, 'signal' | 'triesWhenAborted'>,
): Promise<void> {
  const pausing = sleep(ms, signal ? { signal: toAbortSignal(signal) } : {})
  await (triesWhenAborted ? pausing.catch(() => undefined) : pausing)
}

const SETTLE_PAUSES_MS = { firstPauseMs: 50, maxPauseMs: 2_000 }

/**
 * Settles a claim. Retries until the claim is settled or lost, because an owner keeps its job while its connection is
 * interrupted. Does not use {@link retry}: the result depends on all tries, and `refused` can end the loop with a result.
 *
 * @param settle called again, after a pause, when there is no connection or the outcome of the last try is unknown
 * @param refused called with every other error and the number of the try. It throws, returns the result, or
 * returns undefined to try again
 * @returns `lost` when another owner has to settle the job; `unknown` when one of the tries may have settled it
 */
export function settleWithRetries<T>(
  claim: { readonly lost: Stoppable },
  settle: () => Promise<T>,
  refused: (error: unknown, number: number) => T | undefined,
): Promise<T | 'lost' | 'unknown'> {
  if (claim.lost.aborted) return Promise.resolve('lost')
  // Nearly all claims are settled by the first try, so that is not async: see `attempt`.
  return attempt(settle).catch((error: unknown) => settleAfterFailure(error, { claim, settle, refused }))
}

/** Decides after a failed first try whether to settle again, and repeats until the claim is settled or lost. */
async function settleAfterFailure<T>(
  firstError: unknown,
  {
    claim,
    settle,
    refused,
  }: {
    readonly claim: { readonly lost: Stoppable }
    readonly settle: () => Promise<T>
    readonly refused: (error: unknown, number: number) => T | undefined
  },
): Promise<T | 'lost' | 'unknown'> {
  let error = firstError
  let unknown = false
  for (let number = 1; ; number += 1) {
    if (error instanceof ClaimLost) break
    if (error instanceof OutcomeUnknown) unknown = true
    else if (!isTransient(error)) {
      const end = refused(error, number)
      if (end !== undefined) return end
    }
    await pause(pauseAfter(number, SETTLE_PAUSES_MS), { signal: claim.lost }).catch(() => undefined)
    if (claim.lost.aborted) break
    try {
      return await settle()
    } catch (thrown) {
      error = thrown
    }
  }
  return unknown ? 'unknown' : 'lost'
}

/** Returns whether another try may succeed. A closed board throws NotConnected, too; it loses its claims soon after. */
function isTransient(error: unknown): boolean {
  return error instanceof NotConnected || (error instanceof JobboardError && error.retryable)
}

const MAX_ROUNDS = 16
const ROUNDS_WITHOUT_PAUSE = 3
const ROUND_PAUSES_MS = { first: 10, max: 500 }

/**
 * Limits the rounds of a loop that starts again when another client was faster. Nothing has failed, so the first rounds have
 * no pause. Two clients that race need one or two rounds. Without a limit, servers that answer "does not exist" and "exists
 * already" alternately would keep a process busy for ever.
 */
export class RetryRounds {
  readonly #what: string
  #round = 0

  /** @param what the operation, for the error, as in `opening board /jobs` */
  constructor(what: string) {
    this.#what = what
  }

  /**
   * Begins the next round, after a growing pause.
   *
   * @throws NotConnected when there were too many rounds
   */
  async next(): Promise<void> {
    this.#round += 1
    if (this.#round > MAX_ROUNDS)
      throw new NotConnected(
        `${this.#what}: in ${MAX_ROUNDS} rounds the servers answered alternately that a znode exists and that it does not; ` +
          'check whether another client creates and deletes it all the time, and whether these are the right servers',
      )
    const paused = this.#round - ROUNDS_WITHOUT_PAUSE
    if (paused > 0) await sleep(backoffDelay(paused, ROUND_PAUSES_MS))
  }
}
