/**
 * Takes over from dead participants, and deletes obsolete changes and receipts. Every participant does both for all others:
 * the transaction of the takeover decides whether a participant is dead.
 *
 * A stopped backend ends only after it continues. Its session is taken over nevertheless, except for jobs that a transaction of the backend
 * has locked: see `functions/sessions.sql`. Backends that do not end are reported.
 */
import { isError, NotConnected } from '../../../../core/errors.ts'
import { backoffDelay, monotonic, sleep } from '../../../../core/time.ts'
import { decodeText } from '../../../../postgres/index.ts'
import type { PostgresBoard } from '../store/board.ts'
import { translateErrors } from '../store/errors.ts'

/** The shortest interval between two deletions of obsolete changes and receipts, in milliseconds. */
const PRUNE_PERIOD_MS = 60_000
/**
 * The shortest interval between two searches for backends that do not end, in milliseconds; longer than the time after which the server
 * lists one.
 */
const LOOK_PERIOD_MS = 11_000
/** Limit of requests to terminate one backend, within some seconds; the next heartbeat begins again. */
const MAX_TERMINATE_ATTEMPTS = 12

export class CleanUp {
  readonly #board: PostgresBoard
  readonly #takeOvers = new Set<number>()
  /** The backends that were reported because they do not end. */
  readonly #reported = new Set<number>()
  /** Whether backends were asked to end, and may not have done so. */
  #mayBeStopped = false
  #lookedAt = Number.NEGATIVE_INFINITY
  #prunedAt = Number.NEGATIVE_INFINITY

  constructor(board: PostgresBoard) {
    this.#board = board
  }

  /** Takes over the expired sessions. Called at each heartbeat. */
  onHeartbeat(expired: readonly number[]): void {
    for (const session of expired) {
      if (this.#takeOvers.has(session)) continue
      this.#takeOvers.add(session)
      void this.#takeOver(session).finally(() => this.#takeOvers.delete(session))
    }
    if (this.#mayBeStopped && monotonic() - this.#lookedAt >= LOOK_PERIOD_MS) void this.#reportStopped()
    if (monotonic() - this.#prunedAt < PRUNE_PERIOD_MS) return
    this.#prunedAt = monotonic()
    void this.#callFunction('deleting obsolete changes and receipts', 'prune', this.#board.number)
  }

  /** Takes over a session. If its backend hangs, the backend is terminated and its lock is free a moment later. */
  async #takeOver(session: number): Promise<void> {
    const signal = this.#board.closing
    for (let attempt = 1; attempt <= MAX_TERMINATE_ATTEMPTS && !signal.aborted; attempt += 1) {
      const outcome = await this.#callFunction('taking over from a dead participant', 'take_over', session)
      if (outcome === 'hung') this.noteEndedBackend()
      else return
      await sleep(backoffDelay(attempt, { first: 20, max: 1_000 }), { signal }).catch(() => undefined)
    }
  }

  /** Notes that a backend was asked to end: if it does not end, it is reported. */
  noteEndedBackend(): void {
    if (!this.#mayBeStopped) this.#lookedAt = monotonic()
    this.#mayBeStopped = true
  }

  /** Reports each backend that does not end, once. */
  async #reportStopped(): Promise<void> {
    this.#lookedAt = monotonic()
    const { number, sink } = this.#board
    const found = await this.#callFunction('looking for stopped backends', 'stopped_backends', number)
    const stopped = Array.isArray(found) ? (found as StoppedBackend[]) : []
    this.#mayBeStopped = stopped.length > 0
    for (const each of stopped) {
      if (this.#reported.has(each.backend)) continue
      this.#reported.add(each.backend)
      sink.health('backendStopped')
      sink.error(new NotConnected(describeStopped({ ...each, who: decodeText(each.who) })))
    }
  }

  async #callFunction(what: string, name: string, argument: number): Promise<unknown> {
    const { pool, schema, sink, closing } = this.#board
    try {
      const { rows } = await translateErrors(what, () =>
        pool.query(`SELECT ${schema}.${name}($1) AS answer`, [argument]),
      )
      return rows[0]?.['answer']
    } catch (error) {
      if (!closing.aborted && isError(error)) sink.error(error)
      return undefined
    }
  }
}

/** A backend that does not end, as `stopped_backends` in `functions/sessions.sql` returns it. */
export interface StoppedBackend {
  readonly backend: number
  readonly who: string
  /** The time since it was asked to end, in seconds. */
  readonly seconds: number
  /** The number of jobs that its owner's transactions keep claimed. */
  readonly jobs: number
}

/** Returns a message with the process to end on the server, and the number of jobs that stay claimed until it ends. */
export function describeStopped({ backend, who, seconds, jobs }: StoppedBackend): string {
  const effect = jobs === 0 ? '' : `; ${jobs} ${jobs === 1 ? 'job stays' : 'jobs stay'} claimed until it does`
  return `Postgres backend ${backend} of owner ${who} was asked to end ${Math.round(seconds)} s ago, and does not${effect}: look at process ${backend} on the database's server (stopped, or waiting for a disk?), let it go on (kill -CONT) or restart Postgres`
}
