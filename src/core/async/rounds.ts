/**
 * Bounds loops that look again because somebody else was faster: two that race need a round or two, and servers that answer
 * "there is none" and "it is there" by turns for ever would keep a process busy for ever.
 */
import { NotConnected } from '../errors.ts'
import { backoffDelay, sleep } from '../time.ts'

const MAX_ROUNDS = 16
const ROUNDS_WITHOUT_PAUSE = 3
const PAUSES_MS = { first: 10, max: 500 }

export class RetryRounds {
  readonly #what: string
  #round = 0

  /** @param what for the error, as in `opening board /jobs` */
  constructor(what: string) {
    this.#what = what
  }

  /**
   * Begins the next round, after a pause that grows.
   *
   * @throws NotConnected when there were too many
   */
  async next(): Promise<void> {
    this.#round += 1
    if (this.#round > MAX_ROUNDS)
      throw new NotConnected(
        `${this.#what}: in ${MAX_ROUNDS} rounds the servers said by turns that a znode is there and that it is not; ` +
          'see whether another client makes and deletes it all the time, and whether these are the right servers',
      )
    if (this.#round > ROUNDS_WITHOUT_PAUSE) await sleep(backoffDelay(this.#round - ROUNDS_WITHOUT_PAUSE, PAUSES_MS))
  }
}
