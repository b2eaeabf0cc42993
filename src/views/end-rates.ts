/** How many jobs of each queue end in a minute, from the history of a board. */
import type { EndedJob, JobBoard } from '../board/index.ts'
import { boardInternals } from '../board/internal.ts'
import { AccessDenied } from '../core/errors.ts'
import { monotonic } from '../core/time.ts'

/** The jobs of the last minute are counted. */
const PERIOD_MS = 60_000
/**
 * The numbers of jobs that are read, each with its results: the next one only if more jobs have ended in the minute. Where these are more than the
 * last one, a part of the minute is counted.
 */
const LIMITS = [100, 1_000] as const
/** The minimum time between two reads. */
const MIN_READ_PERIOD_MS = 5_000

/** The numbers of jobs that end in a minute, done or not, by queue. */
export type EndRates = ReadonlyMap<string, number>

/** Reads the rates of a board, at most every five seconds, because a reader of the board may read every second. */
export class EndRateReader {
  readonly #board: JobBoard
  #read: { readonly at: number; readonly rates: EndRates | undefined } | undefined

  constructor(board: JobBoard) {
    this.#board = board
  }

  /** Returns the rates; undefined for a board whose history is empty or cannot be read. @throws NotConnected */
  async read(): Promise<EndRates | undefined> {
    const now = monotonic()
    if (this.#read && now - this.#read.at < MIN_READ_PERIOD_MS) return this.#read.rates
    const rates = await this.#readRates()
    this.#read = { at: now, rates }
    return rates
  }

  async #readRates(): Promise<EndRates | undefined> {
    const { keepsHistory, now } = boardInternals(this.#board)
    if (!keepsHistory) return undefined
    try {
      const [few, many] = LIMITS
      const ended = await this.#board.history({ limit: few })
      const oldest = ended.at(-1)?.endedAt.getTime() ?? 0
      if (ended.length < few || oldest < now - PERIOD_MS) return endRatesOf(ended, { now, limit: few })
      return endRatesOf(await this.#board.history({ limit: many }), { now, limit: many })
    } catch (error) {
      // The rest of what is known of the board is worth showing without it.
      if (error instanceof AccessDenied) return undefined
      throw error
    }
  }
}

interface RateOptions {
  /** The time of the board's clock in milliseconds. */
  readonly now: number
  /** The number of jobs that were asked for: if there are so many, the history may have more. */
  readonly limit: number
}

/** Returns how many jobs of each queue end in a minute; undefined without jobs. @param ended the newest jobs of the history */
export function endRatesOf(
  ended: readonly Pick<EndedJob, 'queue' | 'endedAt'>[],
  options: RateOptions,
): EndRates | undefined {
  if (ended.length === 0) return undefined
  const { now, limit } = options
  const ages = ended.map(({ queue, endedAt }) => ({ queue, age: now - endedAt.getTime() }))
  // The clocks of the owners differ a little: the oldest need not be the last.
  const covered = ended.length >= limit ? Math.max(1, ...ages.map(({ age }) => age)) : PERIOD_MS
  const period = Math.min(covered, PERIOD_MS)
  const counts = new Map<string, number>()
  for (const { queue, age } of ages) if (age <= period) counts.set(queue, (counts.get(queue) ?? 0) + 1)
  return new Map([...counts].map(([queue, count]) => [queue, Math.round((count * PERIOD_MS) / period)]))
}
