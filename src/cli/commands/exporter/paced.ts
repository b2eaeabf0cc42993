/** A value that takes requests to read: it is read no more often than its cost allows, however often somebody asks. */
import { monotonic } from '../../../core/time.ts'

/** The time between two reads, as a multiple of the time that a read takes: a tenth of a server's time at most. */
const PAUSE_FACTOR = 10

export class Paced<T> {
  readonly #read: () => Promise<T>
  readonly #minPeriodMs: number
  readonly #now: () => number
  #value: { readonly value: T } | undefined
  #next = Number.NEGATIVE_INFINITY
  #reading: Promise<T> | undefined

  constructor(
    read: () => Promise<T>,
    { minPeriodMs, now = monotonic }: { readonly minPeriodMs: number; readonly now?: () => number },
  ) {
    this.#read = read
    this.#minPeriodMs = minPeriodMs
    this.#now = now
  }

  /** Returns the value: a new one if its time has come; calls at the same time read it once. @throws what the read throws */
  async get(): Promise<T> {
    if (this.#value && this.#now() < this.#next) return this.#value.value
    this.#reading ??= this.#readAnew().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readAnew(): Promise<T> {
    const startedAt = this.#now()
    const value = await this.#read()
    const took = this.#now() - startedAt
    this.#value = { value }
    this.#next = startedAt + took + Math.max(this.#minPeriodMs, PAUSE_FACTOR * took)
    return value
  }
}
