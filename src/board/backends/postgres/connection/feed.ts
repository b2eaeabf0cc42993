/**
 * Delivers the changes of a board exactly once, in an order in which they may have been committed.
 *
 * Each change names its transaction. A snapshot of Postgres names the transactions that were in progress, and the first
 * transaction number that was not assigned yet. So these numbers alone find the changes that became visible since a snapshot,
 * however long another application keeps a transaction open. The changes of a transaction arrive when it is committed.
 *
 * A notification only means that there are changes to read. Without notifications the feed polls once per period, and after
 * each request of this process before the caller receives the answer. While the board is busy the session is not notified, and the feed polls every
 * few milliseconds: see `notification-flag.ts`.
 */

import { createDeferred, type Deferred } from '../../../../core/async/abort.ts'
import { startTimer } from '../../../../core/time.ts'
import { decodeText } from '../../../../postgres/index.ts'
import type { BackendSink, BoardChange, HealthEvent } from '../../../contract/index.ts'
import { PRIORITIES } from '../../../model/claim-order.ts'
import { NotificationCanary } from '../../notification-canary.ts'
import { isJobNumber, jobId } from '../store/rows.ts'
import { countTransactions, type FlagSource, NotificationFlag } from './notification-flag.ts'

/**
 * The longest time between two polls, in milliseconds, after which no change can be missing: changes are kept twice as long.
 */
const CHANGE_RETENTION_MS = 60_000

type FeedSink = Pick<BackendSink, 'changes' | 'paused' | 'gap' | 'jobCount' | 'health'>

/** `board` and `sink` are read when they are needed: an open board has them. */
export interface PostgresFeedOptions {
  readonly schema: string
  readonly board: number
  readonly sink: FeedSink
  /** The time between two polls without notifications, in milliseconds. */
  readonly period: number
  /** Whether its connections listen to notifications; true by default. */
  readonly listens?: boolean
  /** Called at each poll with the server's clock, in milliseconds since 1970. */
  readonly onServerTime: (at: number) => void
  /** Called with an invalid number of a job; changes of that job are omitted. */
  readonly misnumbered: (number: unknown) => void
}

export interface FeedSource extends FlagSource {
  readonly onError: (error: unknown) => void
}

export class PostgresChangeFeed {
  readonly #options: PostgresFeedOptions
  readonly #canary: NotificationCanary | undefined
  /** Undefined if its connections do not listen: it polls once per period. */
  readonly #flag: NotificationFlag | undefined
  #source: FeedSource | undefined
  /** The source to which it was attached last, if it was not detached since. */
  #attaching: FeedSource | undefined
  /** Set while the session has no connection: callers that wait for a poll wait until there is one. */
  #suspended: Deferred<void> | undefined
  #snapshot = ''
  #seenAt = 0
  #polling: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(options: PostgresFeedOptions) {
    this.#options = options
    const sink = { health: (event: HealthEvent) => options.sink.health(event) }
    if (!(options.listens ?? true)) return
    this.#canary = new NotificationCanary({ sink, period: options.period })
    this.#flag = new NotificationFlag(options)
  }

  /** Begins to deliver changes, from a snapshot that is older than the listing that follows. The connection must listen already. */
  async attach(source: FeedSource): Promise<void> {
    this.#attaching = source
    await this.#flag?.set(source)
    await this.#begin(source)
    // It was detached meanwhile: its timer would keep the process alive.
    if (this.#attaching !== source) return
    this.#flag?.onRead()
    this.#source = source
    this.#canary?.restart()
    this.#schedulePoll()
  }

  detach(): void {
    this.#attaching = undefined
    this.#source = undefined
    clearTimeout(this.#timer)
    this.#waitForResume()
  }

  /** Suspends polls until the session has another connection. Changes of that time are read there, so none is missed. */
  suspend(): void {
    if (!this.#source) return
    this.#source = undefined
    clearTimeout(this.#timer)
    this.#suspended = createDeferred()
  }

  /** Continues after the last poll. Resolves when the sink has received everything committed before the call. */
  async resume(source: FeedSource): Promise<void> {
    await this.#flag?.set(source)
    this.#source = source
    this.#waitForResume()
    await this.caughtUp()
    this.#canary?.restart()
  }

  /** Asks that this session be notified no more. Called while the feed is detached. */
  async mute(source: FlagSource): Promise<void> {
    await this.#flag?.clear(source)
  }

  /** Notes a notification of the board, also one for a request of this process. */
  onAnnounced(): void {
    this.#canary?.onAnnounced()
  }

  #waitForResume(): void {
    this.#suspended?.resolve()
    this.#suspended = undefined
  }

  /**
   * Resolves when the sink has received everything committed before the call. Resolves at once if there is no session,
   * because the sink received a gap then.
   */
  caughtUp(): Promise<void> {
    if (!this.#source && !this.#suspended) return Promise.resolve()
    this.#next ??= this.#pollAfter(this.#polling)
    return this.#next
  }

  /** Reports the state of the board in a new snapshot: later changes come after it, and the job count excludes them. */
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

  /** Polls once. If the connection breaks, polls again on another one, because callers wait for the changes. */
  async #poll(): Promise<void> {
    while (this.#source || this.#suspended) {
      if (this.#suspended) await this.#suspended.promise
      const source = this.#source
      if (source && (await this.#pollOn(source))) return
    }
  }

  /** Polls on this connection. @returns whether the sink received all changes */
  async #pollOn(source: FeedSource): Promise<boolean> {
    const { schema, board } = this.#options
    try {
      await this.#flag?.beforePoll(source)
      const former = this.#snapshot
      // `told` is the released name of the column: processes of an older release read it.
      const text = `SELECT snapshot, at, told AS changes FROM ${schema}.changes_since($1, $2)`
      const { rows } = await source.connection.query(text, [board, former])
      if (this.#source !== source) return false
      const before = this.#seenAt
      this.#applyRow(rows[0])
      const changes = rows[0]?.['changes']
      const parts = Array.isArray(changes) ? (changes as TransactionPart[]) : []
      if (parts.length > 0 && this.#flag?.isNotified) this.#canary?.onRead()
      this.#canary?.check()
      this.#report(parts)
      if (this.#seenAt - before > CHANGE_RETENTION_MS) await this.#reportGap(source)
      if (this.#source === source)
        await this.#flag?.afterPoll(source, countTransactions(parts.map(transactionOf), former))
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
    this.#timer = startTimer(() => void this.caughtUp(), this.#flag?.pauseMs ?? this.#options.period)
  }

  #applyRow(row: Readonly<Record<string, unknown>> | undefined): void {
    this.#snapshot = String(row?.['snapshot'])
    this.#seenAt = Number(row?.['at'])
    this.#options.onServerTime(this.#seenAt)
  }

  /** Reports the changes of a poll. */
  #report(parts: readonly TransactionPart[]): void {
    const batch: BoardChange[] = []
    for (const [kind, jobs, ranks, dues, , queues] of parts) {
      if (kind === 'paused' || kind === 'resumed') this.#options.sink.paused(kind === 'paused')
      for (const [index, job] of jobs.entries()) {
        if (!isJobNumber(job)) this.#options.misnumbered(job)
        else if (isPlacedKind(kind))
          batch.push(
            toPlacedChange(PLACED_CHANGES[kind], {
              job,
              rank: ranks?.[index],
              due: dues?.[index],
              queue: queues?.[index],
            }),
          )
        else {
          for (const change of CHANGES_BY_KIND[kind] ?? []) batch.push({ kind: change, id: jobId(job) })
          if (kind === 'claimed' && ranks?.[index] === 1) batch.push({ kind: 'holds', id: jobId(job) })
        }
      }
    }
    if (batch.length > 0) this.#options.sink.changes(batch)
  }
}

/** Parses the notification of a followed job: the kind of change, and the number of the job. */
export function parseFollowed(payload: string): BoardChange[] {
  const [kind = '', digits = ''] = payload.split(' ')
  const changes = Object.hasOwn(CHANGES_BY_KIND, kind) ? CHANGES_BY_KIND[kind] : undefined
  const job = Number(digits)
  return changes && isJobNumber(job) ? changes.map((change) => ({ kind: change, id: jobId(job) })) : []
}

/**
 * The changes of one kind in a transaction. Posted, ready and replaced jobs include ranks that are not the default, and due times: `'Infinity'` for a
 * job that waits for others, since JSON has no such number; and the queues of jobs, null for the default one, if any is in another. Claimed jobs include 1
 * for each that holds resources or slots, if any does.
 */
type TransactionPart = readonly [
  kind: string,
  jobs: readonly unknown[],
  ranks: number[] | null,
  dues: (number | string)[] | null,
  transaction: string,
  queues?: (string | null)[] | null,
]

const transactionOf = ([, , , , transaction]: TransactionPart): string => transaction

/** The kinds of changes that include the place of the job. */
const PLACED_CHANGES = { posted: 'posted', ready: 'ready', replaced: 'updated' } as const

function isPlacedKind(kind: string): kind is keyof typeof PLACED_CHANGES {
  return Object.hasOwn(PLACED_CHANGES, kind)
}

/** Returns a change with the place of the job in claim order. */
function toPlacedChange(
  kind: BoardChange['kind'],
  {
    job,
    rank,
    due = 0,
    queue,
  }: { job: number; rank: number | undefined; due: number | string | undefined; queue: string | null | undefined },
): BoardChange {
  const id = jobId(job)
  const priority = (rank === undefined ? undefined : PRIORITIES[rank]) ?? 'NORMAL'
  const at = { id, priority, order: BigInt(job), dueAt: Number(due) }
  return { kind, id, at: typeof queue === 'string' ? { ...at, queue: decodeText(queue) } : at }
}

/** The changes of a job for each kind in the table. */
const CHANGES_BY_KIND: Readonly<Record<string, readonly BoardChange['kind'][]>> = {
  claimed: ['updated', 'claimed'],
  abandoned: ['updated', 'released'],
  freed: ['released'],
  consumed: ['gone', 'released'],
  trashed: ['trashed', 'gone', 'released'],
  cancelled: ['cancelled'],
  ready: ['ready'],
  replaced: ['updated'],
}
