/**
 * A value that is read by requests. However often it is asked for, the pauses between its reads are at least ten times as long as a read.
 */
import { monotonic } from '../../../core/time.ts'

/** The pause after a read, as a multiple of the time that the read took: so a server spends at most a tenth of its time on it. */
const PAUSE_FACTOR = 10

export class ThrottledRead<T> {
  readonly #read: () => Promise<T>
  readonly #minPeriodMs: number
  readonly #now: () => number
  #value: { readonly value: T } | undefined
  #nextReadAt = Number.NEGATIVE_INFINITY
  #reading: Promise<T> | undefined

  constructor(
    read: () => Promise<T>,
    { minPeriodMs, now = monotonic }: { readonly minPeriodMs: number; readonly now?: () => number },
  ) {
    this.#read = read
    this.#minPeriodMs = minPeriodMs
    this.#now = now
  }

  /** Returns the last value, or reads a new one after the pause. Calls during a read share it. @throws the errors of the read */
  async get(): Promise<T> {
    if (this.#value && this.#now() < this.#nextReadAt) return this.#value.value
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readNow(): Promise<T> {
    const startedAt = this.#now()
    const value = await this.#read()
    const took = this.#now() - startedAt
    this.#value = { value }
    this.#nextReadAt = startedAt + took + Math.max(this.#minPeriodMs, PAUSE_FACTOR * took)
    return value
  }
}
