/**
 * Estimates the contention for jobs, and so how far from the head of the queue this process looks for jobs to claim.
 *
 * A single process claims strictly in order. If several processes look at the same head, all of them try the same jobs, and all but
 * one are refused. So a process that is refused too often chooses at random from a longer head, up to a limit; with successful
 * claims it returns step by step. Jobs still start nearly in order, and few claims are refused.
 */
const MAX_SPREAD = 64
/** The fraction of refused claims above which the spread grows. */
const TOLERATED_LOSS_RATE = 0.1
const NARROWING_FACTOR = 0.98
/** The weight of a new sample in the moving average. */
const SAMPLE_WEIGHT = 0.2

export class ContentionEstimator {
  #spread = 1
  #lossRate = 0

  /** The ratio of the jobs to choose from to the jobs that are wanted. */
  get spread(): number {
    return this.#spread
  }

  /** Records the results of claims that were tried together. */
  recordClaims({ won, lost }: { readonly won: number; readonly lost: number }): void {
    if (won + lost === 0) return
    this.#lossRate += SAMPLE_WEIGHT * (lost / (won + lost) - this.#lossRate)
    if (lost > 0 && this.#lossRate > TOLERATED_LOSS_RATE) {
      this.#spread = Math.min(MAX_SPREAD, Math.max(2, this.#spread * 2))
      this.#lossRate = TOLERATED_LOSS_RATE / 2
    } else if (this.#lossRate < TOLERATED_LOSS_RATE / 2) {
      this.#spread = Math.max(1, this.#spread * NARROWING_FACTOR)
    }
  }
}
