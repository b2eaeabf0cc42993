/**
 * Limits loops that try again because another client was faster. Two clients that race need one or two rounds; servers that
 * answer "does not exist" and "exists already" by turns would keep a process busy for ever.
 */
import { NotConnected } from '../errors.ts'
import { backoffDelay, sleep } from '../time.ts'

const MAX_ROUNDS = 16
const ROUNDS_WITHOUT_PAUSE = 3
const PAUSES_MS = { first: 10, max: 500 }

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
        `${this.#what}: in ${MAX_ROUNDS} rounds the servers answered by turns that a znode exists and that it does not; ` +
          'check whether another client creates and deletes it all the time, and whether these are the right servers',
      )
    if (this.#round > ROUNDS_WITHOUT_PAUSE) await sleep(backoffDelay(this.#round - ROUNDS_WITHOUT_PAUSE, PAUSES_MS))
  }
}
