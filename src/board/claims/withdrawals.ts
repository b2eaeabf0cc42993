/**
 * Removes a job from the board after the call that posted it has failed, because its caller expects that the job does not run. An outage
 * may prevent the removal at first, so it is tried again until it succeeds or the board is closed. No other owner runs the job meanwhile,
 * because it is reserved for its poster. If the poster dies, the job expires.
 */
import { retryUntilAborted, settleWithRetries } from '../../core/async/retry.ts'
import { asError, NotConnected, NotFound } from '../../core/errors.ts'
import type { Job } from '../jobs/job.ts'
import type { Claim } from './claim.ts'

const PAUSES_MS = { firstPauseMs: 100, maxPauseMs: 30_000 }

export interface WithdrawalsOptions {
  /** Moves a job that was never run to the trash. @throws NotFound when it has left the board */
  readonly cancel: (job: Job, reason: string) => Promise<void>
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

/** The removals of jobs for one board object. */
export class Withdrawals {
  readonly #options: WithdrawalsOptions

  constructor(options: WithdrawalsOptions) {
    this.#options = options
  }

  /** Resolves when the job has left the board, or the board is closed. Never rejects. */
  async withdraw(find: () => Promise<Job>, reason: string): Promise<void> {
    const { cancel, signal, onError } = this.#options
    let reported: string | undefined
    const remove = async () => cancel(await find(), reason)
    await retryUntilAborted(remove, {
      ...PAUSES_MS,
      signal,
      isRetryable: (error) => !(error instanceof NotFound),
      onRetry: (thrown) => {
        const error = asError(thrown)
        if (!(error instanceof NotConnected) && reported !== error.message) onError(error)
        reported = error.message
      },
    }).catch(() => undefined)
  }

  /** Gives up a claim that was granted too late: the job goes to the trash. Never rejects. */
  async giveUp(claim: Claim, reason: string): Promise<void> {
    const trash = async () => {
      await claim.trash({ reason })
      return 'trashed' as const
    }
    const outcome = await settleWithRetries<'trashed' | 'refused'>(claim, trash, () => 'refused')
    // The job may be back on the board, where others can claim it.
    if (outcome !== 'trashed') await this.withdraw(async () => claim.job, reason)
  }
}
