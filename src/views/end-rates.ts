/** How many jobs of each queue end in a minute, and how long they have waited for their start, from the history of a board. */
import type { EndedJob, JobBoard } from '../board/index.ts'
import { boardInternals } from '../board/internal.ts'
import { AccessDenied } from '../core/errors.ts'
import { defined } from '../core/options.ts'
import { monotonic } from '../core/time.ts'

/** The jobs of the last minute are counted. */
const PERIOD_MS = 60_000
/**
 * The numbers of jobs that are read, because each is read with its results: first the smaller one, then the larger one if that has not covered the
 * minute. If the larger one does not cover it either, the rate is computed from the part that it covers.
 */
const LIMITS = [100, 1_000] as const
/** The minimum time between two reads. */
const MIN_READ_PERIOD_MS = 5_000

/** The rate and the waits of the jobs of a queue that have ended in the last minute, from the history. */
export interface QueueEnds {
  /** The number of the jobs that end in a minute, done or not. */
  readonly endedPerMinute: number
  /** The median of the milliseconds from the post to the start of the jobs that ran once; absent without such a job. */
  readonly waitedMs?: number
}

export type EndRates = ReadonlyMap<string, QueueEnds>

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

/** Returns what the newest jobs of the history say of each queue; undefined without jobs. */
export function endRatesOf(
  ended: readonly Pick<EndedJob, 'queue' | 'endedAt' | 'runs' | 'postedAt' | 'startedAt'>[],
  { now, limit }: RateOptions,
): EndRates | undefined {
  if (ended.length === 0) return undefined
  const ageOf = ({ endedAt }: Pick<EndedJob, 'endedAt'>) => now - endedAt.getTime()
  // The clocks of the owners differ a little: the oldest need not be the last.
  const covered = ended.length >= limit ? Math.max(1, ...ended.map(ageOf)) : PERIOD_MS
  const period = Math.min(covered, PERIOD_MS)
  const counts = new Map<string, { count: number; readonly waits: number[] }>()
  for (const job of ended) {
    if (ageOf(job) > period) continue
    const { queue, runs, postedAt, startedAt } = job
    const known = counts.get(queue) ?? { count: 0, waits: [] }
    counts.set(queue, known)
    known.count += 1
    if (runs === 1 && startedAt) known.waits.push(Math.max(0, startedAt.getTime() - postedAt.getTime()))
  }
  const toEnds = ({ count, waits }: { readonly count: number; readonly waits: readonly number[] }): QueueEnds => {
    const waitedMs = waits.toSorted((a, b) => a - b)[Math.floor(waits.length / 2)]
    return { endedPerMinute: Math.round((count * PERIOD_MS) / period), ...defined({ waitedMs }) }
  }
  return new Map([...counts].map(([queue, known]) => [queue, toEnds(known)]))
}
