/**
 * Decides whether the server notifies this session of changes, or whether the session polls (`functions/notifying.sql`).
 *
 *     polling              ── calm, or the view is opened ──────────────────→ switching
 *     switching            ── no open transaction can have missed the flag ──→ notified
 *     switching, notified  ── busy ──────────────────────────────────────────→ polling
 *
 * A transaction that notifies takes a lock of the whole database until its commit has reached the disk. So the transactions of a busy board would
 * commit one after the other. It is **busy** if many of its transactions are under way beside another one. The rate alone does not matter: where each
 * job is posted after the end of the former one, no transaction waits for the lock, and a poll would only notice the job later.
 *
 * **Switching**: transactions that have read the flag before it was set do not notify. The session polls until they have ended. The pauses grow with
 * the time for which they are open, so that a forgotten transaction costs little.
 *
 * The flag is a column of the session's row. It changes at most every second, and every ten seconds where the rate stays near the limits, so that the
 * row has few versions.
 */
import { monotonic } from '../../../../core/time.ts'
import type { PostgresConnection } from '../../../../postgres/index.ts'

/** The pause between two polls while the session is not notified, in milliseconds. */
const POLL_PAUSE_MS = 5
/** A pause while the session switches is this part of the time since the flag was set, and not longer than so many milliseconds. */
const SWITCHING_PAUSE_PART = 1 / 64
const MAX_SWITCHING_PAUSE_MS = 50
/** A timer of Node may fire that much early, in milliseconds. */
const TIMER_ERROR_MS = 1
/** A board is busy from so many concurrent transactions per second on, counted over so many milliseconds. */
const BUSY_PER_SECOND = 50
const BUSY_WINDOW_MS = 200
/**
 * A board is calm below so many transactions per second: a conductor with 60 jobs a second is calm. Counted over so many milliseconds. The window is
 * doubled each time that the session was notified for less than {@link BRIEF_MS}.
 */
const CALM_PER_SECOND = 200
const CALM_WINDOW_MS = { least: 1_000, most: 10_000 } as const
const BRIEF_MS = 10_000

/** The connection to which a session is attached. */
export interface FlagSource {
  readonly connection: Pick<PostgresConnection, 'query'>
  /** The number of the session. */
  readonly session: number
}

/** What a poll has read. */
export interface PolledChanges {
  /** The number of transactions. */
  readonly transactions: number
  /** How many of them were in progress at the same time as another one. */
  readonly concurrent: number
}

export class NotificationFlag {
  readonly #schema: string
  /** The longest pause between two polls, in milliseconds. */
  readonly #period: number
  #state: 'notified' | 'switching' | 'polling' = 'polling'
  /** The open transactions that may have read the old value of the flag, and then commit without a notification. */
  #open: ReadonlySet<string> = new Set()
  #setAt = 0
  /** The time at which the server was asked last which transactions are open. */
  #askedAt = 0
  /** Whether the flag may be set on the server. */
  #mayBeSet = false
  #windowBegan = 0
  #calmWindowMs: number = CALM_WINDOW_MS.least
  #transactions = 0
  #concurrent = 0

  constructor({ schema, period }: { readonly schema: string; readonly period: number }) {
    this.#schema = schema
    this.#period = period
  }

  /** Whether the server notifies this session of every change that it has not read yet. */
  get isNotified(): boolean {
    return this.#state === 'notified'
  }

  /** The pause before the next poll, in milliseconds. */
  get pauseMs(): number {
    if (this.#state === 'notified') return this.#period
    const waited = this.#state === 'switching' ? (monotonic() - this.#setAt) * SWITCHING_PAUSE_PART : 0
    return Math.min(this.#period, Math.max(POLL_PAUSE_MS, Math.min(waited, MAX_SWITCHING_PAUSE_MS)))
  }

  /** Asks to be notified. The connection must listen already. A snapshot that is taken later is noted by {@link onRead}. */
  async set(source: FlagSource): Promise<void> {
    this.#state = 'switching'
    this.#mayBeSet = true
    await this.#send(source, { notified: true })
    // A second statement: until the first one is committed, transactions read the old value of the flag.
    this.#open = await this.#readOpen(source)
    this.#setAt = monotonic()
    this.#beginWindow()
  }

  /** Asks the server to stop notifying this session. The caller polls from now on, or does not view the board. */
  async clear(source: FlagSource): Promise<void> {
    this.#state = 'polling'
    this.#beginWindow()
    if (!this.#mayBeSet) return
    this.#mayBeSet = false
    try {
      await this.#send(source, { notified: false })
    } catch (error) {
      this.#mayBeSet = true
      throw error
    }
  }

  /**
   * Finds out which transactions of {@link #open} have ended, once per pause. Called before a poll, so the poll reads the changes of the ended ones. The
   * polls for requests of this process may be far more frequent than the pauses.
   */
  async beforePoll(source: FlagSource): Promise<void> {
    if (this.#state !== 'switching' || monotonic() - this.#askedAt < this.pauseMs - TIMER_ERROR_MS) return
    const open = await this.#readOpen(source)
    this.#open = new Set([...this.#open].filter((transaction) => open.has(transaction)))
  }

  /** Notes that a snapshot was read, which was taken after {@link set} or {@link beforePoll}. */
  onRead(): void {
    if (this.#state === 'switching' && this.#open.size === 0) this.#state = 'notified'
  }

  /** Sets or clears the flag if the rate of changes requires it. Called after each poll. */
  async afterPoll(source: FlagSource, { transactions, concurrent }: PolledChanges): Promise<void> {
    this.onRead()
    this.#transactions += transactions
    this.#concurrent += concurrent
    const isPolling = this.#state === 'polling'
    const seconds = (monotonic() - this.#windowBegan) / 1_000
    if (seconds * 1_000 < (isPolling ? this.#calmWindowMs : BUSY_WINDOW_MS)) return
    const [isBusy, isCalm] = [
      this.#concurrent >= BUSY_PER_SECOND * seconds,
      this.#transactions < CALM_PER_SECOND * seconds,
    ]
    this.#beginWindow()
    if (isPolling && isCalm) await this.set(source)
    if (isPolling || !isBusy) return
    const isBrief = monotonic() - this.#setAt < BRIEF_MS
    this.#calmWindowMs = isBrief ? Math.min(this.#calmWindowMs * 2, CALM_WINDOW_MS.most) : CALM_WINDOW_MS.least
    await this.clear(source)
  }

  #beginWindow(): void {
    this.#windowBegan = monotonic()
    this.#transactions = 0
    this.#concurrent = 0
  }

  async #send({ connection, session }: FlagSource, { notified }: { readonly notified: boolean }): Promise<void> {
    await connection.query(`SELECT ${this.#schema}.set_notified($1, $2)`, [session, notified])
  }

  async #readOpen({ connection }: FlagSource): Promise<ReadonlySet<string>> {
    this.#askedAt = monotonic()
    const { rows } = await connection.query(`SELECT ${this.#schema}.changing_transactions() AS open`, [])
    const open = rows[0]?.['open']
    return new Set(Array.isArray(open) ? open.map(String) : [])
  }
}

/**
 * Counts the transactions whose changes a poll has read. Concurrent are the transactions in progress already at the previous poll, or all transactions but
 * one, if this is more: several that have come between two polls count as concurrent.
 *
 * @param changed the number of the transaction of each change
 * @param former the snapshot of the former poll
 */
export function countTransactions(changed: readonly string[], former: string): PolledChanges {
  const numbers = new Set(changed)
  const firstUnassigned = Number(former.split(':')[1])
  const early = [...numbers].filter((number) => Number(number) < firstUnassigned).length
  return { transactions: numbers.size, concurrent: Math.max(early, numbers.size - 1, 0) }
}
