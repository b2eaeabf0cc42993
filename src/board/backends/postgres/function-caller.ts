/**
 * Sends requests that change the board, one after the other over one connection; each is executed at most once.
 *
 *     sent ──→ answered                      done, or refused by the server without any change
 *       └→ the connection is lost ──→ found  its answer was kept in the same transaction: done
 *                                 ├─→ void   its number was invalidated: not done, and never will be
 *                                 └─→ the server stays away: OutcomeUnknown
 *
 * Each request has a number, greater than the one before. As its last step it writes the number and its answer into the
 * receipt of its *lane*, but only over a smaller number. The recovery of a lost answer writes the number without an answer by
 * the same rule; the second of the two transactions waits for the commit of the first. So a request that is still in
 * transit, for example in a network buffer, is void from then on, and the state of the old connection does not matter.
 */
import { randomUUID } from 'node:crypto'
import { retry } from '../../../core/async/retry.ts'
import { NotConnected, OutcomeUnknown } from '../../../core/errors.ts'
import { monotonic } from '../../../core/time.ts'
import { encodeText, PostgresConnection, type PostgresLocation, toPostgresError } from '../../../postgres/index.ts'
import { SET_READ_COMMITTED, toBoardError } from './errors.ts'

export interface FunctionCall {
  /** The name of the operation, for errors. */
  readonly what: string
  /** The function's name; `values` are its arguments after the lane and the number. */
  readonly call: string
  readonly values: readonly unknown[]
}

export interface FunctionResult {
  readonly answer: unknown
  /** Whether the answer was lost and recovered, so that the board may have changed since. */
  readonly wasRecovered: boolean
}

export interface FunctionCallerOptions {
  readonly location: PostgresLocation
  /** The board's URI without a password, for errors. */
  readonly uri: string
  readonly board: number
  readonly who: string
  /** Called after the backend of a lost connection was asked to end. */
  readonly onEndedBackend: () => void
  /** The time limit for the recovery of a lost answer, in milliseconds. */
  readonly recoveryTimeoutMs: number
  /** Fires when lost answers need no recovery any more. */
  readonly signal: AbortSignal
}

/** SQLSTATEs of transactions that conflicted; the aborted one may be repeated. */
const DEADLOCK = '40P01'
const SERIALIZATION = '40001'

export class FunctionCaller {
  readonly #options: FunctionCallerOptions
  readonly #laneId = randomUUID()
  #number = 0
  #connection: Promise<PostgresConnection> | undefined
  /** The backend of the present connection; its start distinguishes it from a later backend with the same process id. */
  #identity: { readonly pid: number; readonly start: string } | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: FunctionCallerOptions) {
    this.#options = options
  }

  /** The backend that executes the requests, or 0. */
  #backend = 0
  get backend(): number {
    return this.#backend
  }

  /** Resolves when no request is pending. */
  async idle(): Promise<void> {
    for (let last: unknown; last !== this.#last; ) {
      last = this.#last
      await this.#last
    }
  }

  /** Sends a request. @throws NotConnected, or the error of a refusal: nothing was done; OutcomeUnknown */
  send(request: FunctionCall): Promise<FunctionResult> {
    const sent = this.#last.then(() => this.#send(request))
    this.#last = sent.catch(() => undefined)
    return sent
  }

  /** Ends the connection at once; the answer of a pending request is recovered on another connection. */
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
    const findOut = async () => {
      const connection = await this.#connected(what)
      const text = `SELECT ${schema}.find_out($1, $2) AS answer`
      const { rows } = await connection.query(text, [this.#laneId, this.#number])
      return rows[0]?.['answer']
    }
    const answer = await retry(findOut, {
      ...{ firstPauseMs: 50, maxPauseMs: 1_000, signal, triesWhenAborted: true },
      isRetryable: () => monotonic() < end,
    }).catch(() => {
      const message = `${what}: the connection was lost before the answer arrived, and the server is away`
      throw new OutcomeUnknown(message, { cause })
    })
    if (answer !== null && answer !== undefined) return answer
    throw new NotConnected(
      `${what}: the connection was lost before the request was executed; nothing was done, try again`,
      { cause },
    )
  }

  async #connect(): Promise<PostgresConnection> {
    const connection = await PostgresConnection.open(this.#options.location)
    const { rows } = await connection.query(SET_READ_COMMITTED, [])
    const former = this.#identity
    const { backend: pid, start } = rows[0] ?? {}
    // Behind a pooler, the former backend may serve another client by now.
    this.#identity = Number(pid) === connection.backend ? { pid: Number(pid), start: String(start) } : undefined
    if (former) await this.#endFormer(connection, former)
    return connection
  }

  /** Asks the server to end the backend of a lost connection: a stopped backend would otherwise remain for ever. */
  async #endFormer(
    connection: PostgresConnection,
    { pid, start }: { readonly pid: number; readonly start: string },
  ): Promise<void> {
    const { location, board, who, onEndedBackend } = this.#options
    const text = `SELECT ${location.schema}.end_backend($1, $2, $3, $4::timestamptz)`
    await connection.query(text, [board, encodeText(who), pid, start])
    onEndedBackend()
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
