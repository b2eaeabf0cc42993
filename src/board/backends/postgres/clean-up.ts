/**
 * Takes over from participants that are gone without a word, and clears away what nobody needs any more. Everybody does it,
 * for everybody: who is dead is judged in the transaction that says so.
 */
import { backoffDelay, monotonic, sleep } from '../../../core/time.ts'
import type { SqlDriver } from '../../../postgres/index.ts'
import { decodeText } from '../../../postgres/index.ts'
import { translateErrors } from './errors.ts'
import { type StoppedOwner, stoppedOwnerError } from './stopped-owners.ts'

export interface CleanUpOptions {
  readonly driver: SqlDriver
  readonly schema: string
  readonly board: number
  readonly signal: AbortSignal
  readonly onError: (error: Error) => void
}

/** How often changes and receipts are cleared away, in milliseconds, at most. */
const PRUNE_PERIOD_MS = 60_000
/** So often a backend is told to end, within some seconds, before the next heartbeat begins anew. */
const MAX_TERMINATE_ATTEMPTS = 12

export class CleanUp {
  readonly #options: CleanUpOptions
  readonly #takeOvers = new Set<number>()
  /** Sessions whose backends did not end, and of which it was reported. */
  readonly #reported = new Set<number>()
  #prunedAt = Number.NEGATIVE_INFINITY

  constructor(options: CleanUpOptions) {
    this.#options = options
  }

  /** At each heartbeat, with those sessions whose own has not come in time. */
  onHeartbeat(expired: readonly number[]): void {
    for (const session of expired) {
      if (this.#takeOvers.has(session)) continue
      this.#takeOvers.add(session)
      void this.#takeOver(session).finally(() => this.#takeOvers.delete(session))
    }
    if (monotonic() - this.#prunedAt < PRUNE_PERIOD_MS) return
    this.#prunedAt = monotonic()
    void this.#callFunction('clearing the board up', 'prune', this.#options.board)
  }

  /** The connection of one that hangs is ended by force; its lock is free a moment later. */
  async #takeOver(session: number): Promise<void> {
    const { signal } = this.#options
    for (let attempt = 1; attempt <= MAX_TERMINATE_ATTEMPTS && !signal.aborted; attempt += 1) {
      const outcome = await this.#callFunction('taking over from one that is gone', 'take_over', session)
      if (outcome === 'hung') await this.#report(session)
      else this.#reported.delete(session)
      if (outcome !== 'hung') return
      await sleep(backoffDelay(attempt, { first: 20, max: 1_000 }), { signal }).catch(() => undefined)
    }
  }

  /** Once for each session: its backend is told to end again and again. */
  async #report(session: number): Promise<void> {
    if (this.#reported.has(session)) return
    const { board, onError } = this.#options
    const owners = await this.#callFunction('looking for owners that are stopped', 'stopped_owners', board)
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
