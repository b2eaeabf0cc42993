/**
 * What happens on the board, as others hear of it: exactly once, in an order in which it may have been committed.
 *
 * Each change names its transaction. Of a snapshot Postgres says which transactions were under way in it, and which
 * number none had yet. So whatever is visible now and was not then is found by these numbers alone, however long some
 * stranger's transaction has been open, and what a transaction has to say comes when it is committed and not before.
 *
 * Notifications say only that it is time to look. Without them it is looked once per period, and after each request of
 * our own before anybody hears its answer.
 */
import { createDeferred, type Deferred } from '../../../core/async/abort.ts'
import type { PostgresConnection } from '../../../postgres/index.ts'
import type { BackendSink, BoardChange } from '../../backend.ts'
import { PRIORITIES } from '../../model/priority.ts'
import { isJobNumber, jobId } from './records.ts'

/** Of a participant that has not looked for so long, in milliseconds, changes may be gone: they are kept twice as long. */
const CHANGE_RETENTION_MS = 60_000

type FeedSink = Pick<BackendSink, 'changes' | 'paused' | 'gap' | 'jobCount'>

export interface PostgresFeedOptions {
  readonly schema: string
  readonly board: number
  readonly sink: FeedSink
  /** In milliseconds. */
  readonly period: number
  /** The server's clock, in milliseconds since 1970, at each look. */
  readonly onServerTime: (at: number) => void
  /** Called with the number of a job that is none: what is said of it is left out. */
  readonly misnumbered: (number: unknown) => void
}

interface FeedSource {
  readonly connection: PostgresConnection
  readonly onError: (error: unknown) => void
}

export class PostgresChangeFeed {
  readonly #options: PostgresFeedOptions
  #source: FeedSource | undefined
  /** Set while the session has no connection: whoever waits for a look waits until there is one. */
  #suspended: Deferred<void> | undefined
  #snapshot = ''
  #seenAt = 0
  #polling: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(options: PostgresFeedOptions) {
    this.#options = options
  }

  /** From now on, as seen in a snapshot that is older than the listing which is to follow. */
  async attach(source: FeedSource): Promise<void> {
    await this.#begin(source)
    this.#source = source
    this.#schedulePoll()
  }

  detach(): void {
    this.#source = undefined
    clearTimeout(this.#timer)
    this.#waitForResume()
  }

  /** Waits for another connection of the same session: what happens meanwhile is read from there, and nothing is missed. */
  suspend(): void {
    if (!this.#source) return
    this.#source = undefined
    clearTimeout(this.#timer)
    this.#suspended = createDeferred()
  }

  /** Goes on from the last look. Resolves when the sink has heard of everything that was committed before the call. */
  async resume(source: FeedSource): Promise<void> {
    this.#source = source
    this.#waitForResume()
    await this.caughtUp()
  }

  #waitForResume(): void {
    this.#suspended?.resolve()
    this.#suspended = undefined
  }

  /**
   * Resolves when the sink has heard of everything that was committed before the call; at once where there is no session,
   * because then the sink was told of a gap.
   */
  caughtUp(): Promise<void> {
    if (!this.#source && !this.#suspended) return Promise.resolve()
    this.#next ??= this.#pollAfter(this.#polling)
    return this.#next
  }

  /** How the board stands in the snapshot itself: whatever is told from here on comes after it, and is not counted yet. */
  async #begin({ connection }: FeedSource): Promise<void> {
    const { schema, board, sink } = this.#options
    const text = `SELECT pg_current_snapshot()::text AS snapshot, extract(epoch FROM clock_timestamp())::float8 * 1000::float8 AS at,
  (SELECT count(*) FROM ${schema}.jobs WHERE board = $1) AS jobs,
  (SELECT paused FROM ${schema}.boards WHERE id = $1) AS paused`
    const { rows } = await connection.query(text, [board])
    this.#applyRow(rows[0])
    sink.jobCount(Number(rows[0]?.['jobs']))
    sink.paused(rows[0]?.['paused'] === true)
  }

  async #pollAfter(before: Promise<void>): Promise<void> {
    await before
    this.#next = undefined
    this.#polling = this.#poll()
    await this.#polling
  }

  /** Looks once; again on another connection where this one breaks, since somebody waits for what a look would tell. */
  async #poll(): Promise<void> {
    while (this.#source || this.#suspended) {
      if (this.#suspended) await this.#suspended.promise
      const source = this.#source
      if (source && (await this.#pollOn(source))) return
    }
  }

  /** @returns whether the sink was told what there is to see */
  async #pollOn(source: FeedSource): Promise<boolean> {
    const { schema, board } = this.#options
    try {
      const text = `SELECT * FROM ${schema}.changes_since($1, $2)`
      const { rows } = await source.connection.query(text, [board, this.#snapshot])
      if (this.#source !== source) return false
      const before = this.#seenAt
      this.#applyRow(rows[0])
      this.#notify(rows[0]?.['told'])
      if (this.#seenAt - before > CHANGE_RETENTION_MS) await this.#reportGap(source)
    } catch (error) {
      if (this.#source !== source) return false
      this.suspend()
      source.onError(error)
      return false
    }
    if (this.#source === source) this.#schedulePoll()
    return true
  }

  async #reportGap(source: FeedSource): Promise<void> {
    await this.#begin(source)
    if (this.#source === source) this.#options.sink.gap()
  }

  #schedulePoll(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.caughtUp(), this.#options.period)
  }

  #applyRow(row: Readonly<Record<string, unknown>> | undefined): void {
    this.#snapshot = String(row?.['snapshot'])
    this.#seenAt = Number(row?.['at'])
    this.#options.onServerTime(this.#seenAt)
  }

  #notify(notification: unknown): void {
    if (!Array.isArray(notification)) return
    const batch: BoardChange[] = []
    for (const [kind, jobs, ranks, dues] of notification as TransactionPart[]) {
      if (kind === 'paused' || kind === 'resumed') this.#options.sink.paused(kind === 'paused')
      for (const [index, job] of jobs.entries()) {
        if (!isJobNumber(job)) this.#options.misnumbered(job)
        else if (kind === 'posted') batch.push(toPostedChange(job, ranks?.[index], dues?.[index]))
        else for (const change of CHANGES_BY_KIND[kind] ?? []) batch.push({ kind: change, id: jobId(job) })
      }
    }
    if (batch.length > 0) this.#options.sink.changes(batch)
  }
}

/** What a transaction did of one kind. Of what was posted the places, where they are not the usual, and delays. */
type TransactionPart = readonly [kind: string, jobs: readonly unknown[], ranks: number[] | null, dues: number[] | null]

function toPostedChange(job: number, rank: number | undefined, dueAt = 0): BoardChange {
  const id = jobId(job)
  const priority = (rank === undefined ? undefined : PRIORITIES[rank]) ?? 'NORMAL'
  return { kind: 'posted', id, at: { id, priority, order: BigInt(job), dueAt } }
}

/** What each kind of transaction changes. */
const CHANGES_BY_KIND: Readonly<Record<string, readonly BoardChange['kind'][]>> = {
  claimed: ['updated', 'claimed'],
  abandoned: ['updated', 'released'],
  freed: ['released'],
  consumed: ['gone', 'released'],
  trashed: ['trashed', 'gone', 'released'],
  cancelled: ['cancelled'],
}
