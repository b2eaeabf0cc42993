/**
 * Takes over from dead participants, and deletes obsolete changes and receipts. Every participant does both for all others:
 * the transaction of the takeover decides whether a participant is dead.
 *
 * A stopped owner is silent for twice its session's timeout, while its backend still holds the session's lock. A stopped
 * backend ends only after it continues. Until then its jobs cannot be claimed by others, because it may still own them.
 */
import { NotConnected } from '../../../core/errors.ts'
import { backoffDelay, monotonic, sleep } from '../../../core/time.ts'
import { decodeText, type SqlDriver } from '../../../postgres/index.ts'
import { translateErrors } from './errors.ts'

export interface CleanUpOptions {
  readonly driver: SqlDriver
  readonly schema: string
  readonly board: number
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

/** The shortest interval between two deletions of obsolete changes and receipts, in milliseconds. */
const PRUNE_PERIOD_MS = 60_000
/** Limit of requests to terminate one backend, within some seconds; the next heartbeat begins again. */
const MAX_TERMINATE_ATTEMPTS = 12

export class CleanUp {
  readonly #options: CleanUpOptions
  readonly #takeOvers = new Set<number>()
  /** Sessions whose backends did not end, and which were reported. */
  readonly #reported = new Set<number>()
  #prunedAt = Number.NEGATIVE_INFINITY

  constructor(options: CleanUpOptions) {
    this.#options = options
  }

  /** Takes over the expired sessions. Called at each heartbeat. */
  onHeartbeat(expired: readonly number[]): void {
    for (const session of expired) {
      if (this.#takeOvers.has(session)) continue
      this.#takeOvers.add(session)
      void this.#takeOver(session).finally(() => this.#takeOvers.delete(session))
    }
    if (monotonic() - this.#prunedAt < PRUNE_PERIOD_MS) return
    this.#prunedAt = monotonic()
    void this.#callFunction('deleting obsolete changes and receipts', 'prune', this.#options.board)
  }

  /** Takes over a session. If its backend hangs, the backend is terminated and its lock is free a moment later. */
  async #takeOver(session: number): Promise<void> {
    const { signal } = this.#options
    for (let attempt = 1; attempt <= MAX_TERMINATE_ATTEMPTS && !signal.aborted; attempt += 1) {
      const outcome = await this.#callFunction('taking over from a dead participant', 'take_over', session)
      if (outcome === 'hung') await this.#report(session)
      else this.#reported.delete(session)
      if (outcome !== 'hung') return
      await sleep(backoffDelay(attempt, { first: 20, max: 1_000 }), { signal }).catch(() => undefined)
    }
  }

  /** Reports a session whose backend does not end: once per session, although termination is requested repeatedly. */
  async #report(session: number): Promise<void> {
    if (this.#reported.has(session)) return
    const { board, onError } = this.#options
    const owners = await this.#callFunction('looking for stopped owners', 'stopped_owners', board)
    const owner = Array.isArray(owners)
      ? (owners as StoppedOwner[]).find((each) => each.session === session)
      : undefined
    if (!owner || this.#reported.has(session)) return
    this.#reported.add(session)
    onError(stoppedOwnerError({ ...owner, who: decodeText(owner.who) }))
  }

  async #callFunction(what: string, name: string, argument: number): Promise<unknown> {
    const { driver, schema, onError, signal } = this.#options
    try {
      const { rows } = await translateErrors(what, () =>
        driver.query(`SELECT ${schema}.${name}($1) AS answer`, [argument]),
      )
      return rows[0]?.['answer']
    } catch (error) {
      if (!signal.aborted && error instanceof Error) onError(error)
      return undefined
    }
  }
}

/** A stopped owner, as `stopped_owners` in `functions/sessions.sql` returns it. */
interface StoppedOwner {
  readonly session: number
  readonly who: string
  readonly backend: number
  /** The time since its last heartbeat, in seconds. */
  readonly silent: number
  readonly jobs: number
}

/** Returns the error that names the process to end on the server, and the number of jobs that wait for it. */
function stoppedOwnerError({ who, backend, silent, jobs }: StoppedOwner): NotConnected {
  return new NotConnected(
    `owner ${who} has been silent for ${Math.round(silent)} s, and its Postgres backend ${backend} does not end: ${jobs} ` +
      `${jobs === 1 ? 'job stays' : 'jobs stay'} claimed until it does; look at process ${backend} on the database's server ` +
      '(stopped, or waiting for a disk?), let it go on (kill -CONT) or restart Postgres',
  )
}
