/**
 * How far from the head of the queue this process looks for jobs to claim.
 *
 * Alone it takes strictly what comes first. Where several look at the same head, all of them would try the same jobs, and
 * all but one would lose. So whoever loses too often looks at more of the head and picks at random, up to a limit, and
 * whoever wins comes back step by step: jobs still start nearly in order, and few claims are in vain.
 */
const MAX_SPREAD = 64
/** The part of the claims that may be lost before it looks further. */
const TOLERATED_LOSS_RATE = 0.1
const NARROWING_FACTOR = 0.98
/** How much of what was seen counts beside what was seen before. */
const SAMPLE_WEIGHT = 0.2

export class ContentionEstimator {
  #spread = 1
  #lossRate = 0

  /** To pick from so many times as many jobs as are wanted. */
  get spread(): number {
    return this.#spread
  }

  /** How claims that were tried together ended. */
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
