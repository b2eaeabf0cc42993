/** Lets the event loop run between short pieces of work that many callers do at once: together, the pieces would block it for long. */
import { setImmediate as setImmediatePromise } from 'node:timers/promises'
import { monotonic } from '../time.ts'

/** The time after which the event loop gets a turn. */
const MAX_BUSY_MS = 20

/** The turns of pieces of work and the event loop. */
export class Turns {
  #startedAt = Number.NEGATIVE_INFINITY
  #next: Promise<void> | undefined

  /** Resolves at once, or, if earlier pieces have kept the event loop busy, after it has run. Call it before each piece. */
  async begin(): Promise<void> {
    if (this.#startedAt === Number.NEGATIVE_INFINITY) this.#startedAt = monotonic()
    while (monotonic() - this.#startedAt > MAX_BUSY_MS) {
      this.#next ??= setImmediatePromise().then(() => {
        this.#next = undefined
        this.#startedAt = monotonic()
      })
      await this.#next
    }
  }
}

/** Returns the result of the function for each item, as `Array.map` does, but lets the event loop run in between. */
export async function mapInTurns<T, R>(items: readonly T[], toResult: (item: T) => R): Promise<R[]> {
  const turns = new Turns()
  const results: R[] = []
  for (const item of items) {
    await turns.begin()
    results.push(toResult(item))
  }
  return results
}
