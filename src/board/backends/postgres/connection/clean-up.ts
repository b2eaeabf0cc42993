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
/** Limit of attempts to take over one session, within some seconds; the next heartbeat begins again. */
const MAX_TAKEOVER_ATTEMPTS = 12

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
    for (const session of expired) this.#startTakeOver(session, { name: 'take_over', values: [session] })
    if (this.#mayBeStopped && monotonic() - this.#lookedAt >= LOOK_PERIOD_MS) void this.#reportStopped()
    if (monotonic() - this.#prunedAt < PRUNE_PERIOD_MS) return
    this.#prunedAt = monotonic()
    void this.#callFunction('deleting obsolete changes and receipts', 'prune', [this.#board.number])
  }

  /** Takes over a session whose process has certainly ended, with this socket. Its TTL may not have passed. */
  onProcessEnded({ id, socket, hasEnded }: HostSession): void {
    this.#startTakeOver(id, { name: 'take_over_ended', values: [id, socket], isCertain: hasEnded })
  }

  #startTakeOver(session: number, takeOver: TakeOver): void {
    if (this.#takeOvers.has(session)) return
    this.#takeOvers.add(session)
    void this.#takeOver(takeOver).finally(() => this.#takeOvers.delete(session))
  }

  /** Takes over a session. If its backend hangs, the backend is terminated and its lock is free a moment later. */
  async #takeOver({ name, values, isCertain }: TakeOver): Promise<void> {
    const signal = this.#board.closing
    for (let attempt = 1; attempt <= MAX_TAKEOVER_ATTEMPTS && !signal.aborted; attempt += 1) {
      if (isCertain && !(await isCertain())) return
      const outcome = await this.#callFunction('taking over from a dead participant', name, values)
      if (outcome !== 'hung') return
      if (name === 'take_over') this.noteEndedBackend()
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
    const found = await this.#callFunction('looking for stopped backends', 'stopped_backends', [number])
    const stopped = Array.isArray(found) ? (found as StoppedBackend[]) : []
    this.#mayBeStopped = stopped.length > 0
    for (const each of stopped) {
      if (this.#reported.has(each.backend)) continue
      this.#reported.add(each.backend)
      sink.health('backendStopped')
      sink.error(new NotConnected(describeStopped({ ...each, who: decodeText(each.who) })))
    }
  }

  async #callFunction(what: string, name: string, values: readonly unknown[]): Promise<unknown> {
    const { pool, schema, sink, closing } = this.#board
    const parameters = values.map((_, at) => `$${at + 1}`).join(', ')
    const text = `SELECT ${schema}.${name}(${parameters}) AS answer`
    try {
      const { rows } = await translateErrors(what, () => pool.query(text, [...values]))
      return rows[0]?.['answer']
    } catch (error) {
      if (!closing.aborted && isError(error)) sink.error(error)
      return undefined
    }
  }
}

/** A way to take over a session: the function of the schema, and its arguments. */
interface TakeOver {
  readonly name: 'take_over' | 'take_over_ended'
  readonly values: readonly unknown[]
  /** Returns whether the session may be taken over still; it always may be if this is absent. */
  readonly isCertain?: () => Promise<boolean>
}

/** A session whose process is on this host. */
export interface HostSession {
  readonly id: number
  /** The name of the socket of its process. */
  readonly socket: string
  /** Returns whether its process has certainly ended. Asked before each attempt, because the proof is of one moment. */
  hasEnded(): Promise<boolean>
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
