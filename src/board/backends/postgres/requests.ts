/**
 * Requests that change the board, one after the other over one connection, each done once at most.
 *
 *     sent ──→ answered                      done, or refused by the server, which has changed nothing then
 *       └→ the connection is lost ──→ found  its answer was kept in the same transaction: done
 *                                 ├─→ void   its number was taken from it: not done, and never will be
 *                                 └─→ the server stays away: OutcomeUnknown
 *
 * Each request has a number, greater than the one before, and writes it with its answer into the receipt of its
 * connection's *lane*, last of all, and only over a smaller number. To find out is to write the number without an answer
 * by the same rule: whoever comes second waits for the other's commit. So a request that is still on its way, in a
 * buffer of the network say, is void from then on wherever it arrives; nobody has to ask what became of a connection.
 */
import { randomUUID } from 'node:crypto'
import { NotConnected, OutcomeUnknown } from '../../../core/errors.ts'
import { backoffDelay, monotonic, sleep } from '../../../core/time.ts'
import { PostgresConnection, type PostgresLocation, toPostgresError } from '../../../postgres/index.ts'
import { SET_READ_COMMITTED, toBoardError } from './errors.ts'

export interface FunctionCall {
  /** For errors. */
  readonly what: string
  /** The function's name, and what it is told behind the lane and the number. */
  readonly call: string
  readonly values: readonly unknown[]
}

export interface FunctionResult {
  readonly answer: unknown
  /** Whether it was lost and found: much may have happened since. */
  readonly wasRecovered: boolean
}

export interface FunctionCallerOptions {
  readonly location: PostgresLocation
  /** For errors: the board's URI, without a password. */
  readonly uri: string
  /** How long to look for a lost answer, in milliseconds. */
  readonly recoveryTimeoutMs: number
  /** Fires when nobody waits for lost answers any more. */
  readonly signal: AbortSignal
}

/** Transactions that stood in each other's way: the one that was broken off may go again. */
const DEADLOCK = '40P01'
const SERIALIZATION = '40001'

export class FunctionCaller {
  readonly #options: FunctionCallerOptions
  readonly #laneId = randomUUID()
  #number = 0
  #connection: Promise<PostgresConnection> | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: FunctionCallerOptions) {
    this.#options = options
  }

  /** The backend that does them now, if there is one. */
  #backend = 0
  get backend(): number {
    return this.#backend
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    for (let last: unknown; last !== this.#last; ) {
      last = this.#last
      await this.#last
    }
  }

  /** @throws NotConnected, and what the server has refused it for: nothing was done; OutcomeUnknown */
  send(request: FunctionCall): Promise<FunctionResult> {
    const sent = this.#last.then(() => this.#send(request))
    this.#last = sent.catch(() => undefined)
    return sent
  }

  /** Ends the connection at once: whatever is under way is looked for on another. */
  disconnect(reason: unknown): void {
    this.#connection?.then((connection) => connection.disconnect(reason)).catch(() => undefined)
  }

  async close(): Promise<void> {
    await this.idle()
    await this.#connection?.then((connection) => connection.close()).catch(() => undefined)
  }

  async #send(request: FunctionCall): Promise<FunctionResult> {
    for (let attempt = 1; ; attempt += 1) {
      const connection = await this.#connected(request.what)
      this.#number += 1
      try {
        return { answer: await this.#execute(connection, request), wasRecovered: false }
      } catch (error) {
        const { outcome, sqlState } = toPostgresError(error)
        if (outcome === 'unknown') return { answer: await this.#recoverResult(request, error), wasRecovered: true }
        const again = sqlState === DEADLOCK || sqlState === SERIALIZATION
        if (!again || attempt === 5) throw toBoardError(request.what, error)
      }
    }
  }

  async #execute(connection: PostgresConnection, { call, values }: FunctionCall): Promise<unknown> {
    const parameters = [this.#laneId, this.#number, ...values]
    const { rows } = await connection.query(`SELECT ${call}(${placeholders(parameters.length)}) AS answer`, parameters)
    return rows[0]?.['answer']
  }

  async #recoverResult({ what, call }: FunctionCall, cause: unknown): Promise<unknown> {
    const { recoveryTimeoutMs, signal } = this.#options
    const schema = call.slice(0, call.indexOf('.'))
    const end = monotonic() + recoveryTimeoutMs
    for (let attempt = 1; ; attempt += 1) {
      try {
        const connection = await this.#connected(what)
        const text = `SELECT ${schema}.find_out($1, $2) AS answer`
        const { rows } = await connection.query(text, [this.#laneId, this.#number])
        const answer = rows[0]?.['answer']
        if (answer !== null && answer !== undefined) return answer
        break
      } catch {
        if (signal.aborted || monotonic() >= end)
          throw new OutcomeUnknown(`${what}: the connection was lost before the answer came, and the server is away`, {
            cause,
          })
        await sleep(backoffDelay(attempt, { first: 50, max: 1_000 }), { signal }).catch(() => undefined)
      }
    }
    throw new NotConnected(`${what}: the connection was lost before it was done; it was not done`, { cause })
  }

  async #connect(): Promise<PostgresConnection> {
    const connection = await PostgresConnection.open(this.#options.location)
    await connection.query(SET_READ_COMMITTED, [])
    return connection
  }

  async #connected(what: string): Promise<PostgresConnection> {
    const connection = await this.#connection?.catch(() => undefined)
    if (connection && !connection.lost.aborted) return connection
    this.#connection = this.#connect()
    try {
      const opened = await this.#connection
      this.#backend = opened.backend
      return opened
    } catch (error) {
      throw toBoardError(`${what} (${this.#options.uri})`, error)
    }
  }
}

function placeholders(count: number): string {
  return Array.from({ length: count }, (_, index) => `$${index + 1}`).join(', ')
}
