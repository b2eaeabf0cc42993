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
 *
 * **A lane serves 64 requests; then its receipt is deleted.** While a transaction is open anywhere in the database, Postgres keeps all versions of a
 * row, and each request reads past them: beside a transaction that was idle for minutes, a board was four to eight times slower. A receipt with a
 * void number is kept for a day: its request may still be in transit.
 */
import { randomUUID } from 'node:crypto'
import { retry } from '../../../../core/async/retry.ts'
import { NotConnected, OutcomeUnknown } from '../../../../core/errors.ts'
import { monotonic } from '../../../../core/time.ts'
import { arrayLiteral, encodeText, PostgresConnection, toPostgresError } from '../../../../postgres/index.ts'
import type { CleanUp } from '../connection/clean-up.ts'
import type { PostgresBoard } from '../store/board.ts'
import { SET_READ_COMMITTED, toBoardError } from '../store/errors.ts'

export interface FunctionCall {
  /** The name of the operation, for errors. */
  readonly what: string
  /** The function's name; `values` are its arguments after the lane, the number of the request, and the number of the board. */
  readonly name: string
  readonly values: readonly unknown[]
}

export interface FunctionResult {
  readonly answer: unknown
  /** Whether the answer was lost and recovered, so that the board may have changed since. */
  readonly wasRecovered: boolean
}

/** The number of requests of one lane. */
const REQUESTS_PER_LANE = 64

/** SQLSTATEs of transactions that conflicted; the aborted one may be repeated. */
const DEADLOCK = '40P01'
const SERIALIZATION = '40001'

export class FunctionCaller {
  readonly #board: PostgresBoard
  readonly #cleanUp: CleanUp
  #lane = randomUUID()
  #number = 0
  #requestsOfLane = 0
  /** Whether the outcome of the last request is known. Only a larger number in the same lane makes a request void whose outcome is not. */
  #isSettled = true
  /** Whether the receipt of the lane may have a void number. */
  #hasVoidNumber = false
  #backend = 0
  #connection: Promise<PostgresConnection> | undefined
  /** The backend of the present connection; its start distinguishes it from a later backend with the same process id. */
  #identity: { readonly pid: number; readonly start: string } | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(board: PostgresBoard, cleanUp: CleanUp) {
    this.#board = board
    this.#cleanUp = cleanUp
  }

  /** The backend that executes the requests, or 0. */
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
      if (this.#requestsOfLane >= REQUESTS_PER_LANE && this.#isSettled) this.#beginLane(connection)
      this.#number += 1
      this.#requestsOfLane += 1
      this.#isSettled = false
      try {
        const answer = await this.#execute(connection, request)
        this.#isSettled = true
        return { answer, wasRecovered: false }
      } catch (error) {
        const { outcome, sqlState } = toPostgresError(error)
        if (outcome === 'unknown') return { answer: await this.#recoverResult(request, error), wasRecovered: true }
        this.#isSettled = true
        const again = sqlState === DEADLOCK || sqlState === SERIALIZATION
        if (!again || attempt === 5) throw toBoardError(request.what, error)
      }
    }
  }

  /** Begins another lane. The outcomes of all requests of the former one are known; if the deletion of its receipt fails, it is deleted a day later. */
  #beginLane(connection: PostgresConnection): void {
    if (!this.#hasVoidNumber)
      connection
        .query(`DELETE FROM ${this.#board.schema}.receipts WHERE lane = $1`, [this.#lane])
        .catch(() => undefined)
    this.#lane = randomUUID()
    this.#requestsOfLane = 0
    this.#hasVoidNumber = false
  }

  async #execute(connection: PostgresConnection, { name, values }: FunctionCall): Promise<unknown> {
    const { schema, number } = this.#board
    const parameters = [this.#lane, this.#number, number, ...values.map(toParameter)]
    const text = `SELECT ${schema}.${name}(${placeholders(parameters.length)}) AS answer`
    const { rows } = await connection.query(text, parameters)
    return rows[0]?.['answer']
  }

  async #recoverResult({ what }: FunctionCall, cause: unknown): Promise<unknown> {
    const { schema, closing: signal, options } = this.#board
    this.#hasVoidNumber = true
    const end = monotonic() + options.sessionTimeout
    const findOut = async () => {
      const connection = await this.#connected(what)
      const text = `SELECT ${schema}.find_out($1, $2) AS answer`
      const { rows } = await connection.query(text, [this.#lane, this.#number])
      return rows[0]?.['answer']
    }
    const answer = await retry(findOut, {
      ...{ firstPauseMs: 50, maxPauseMs: 1_000, signal, triesWhenAborted: true },
      isRetryable: () => monotonic() < end,
    }).catch(() => {
      const message = `${what}: the connection was lost before the answer arrived, and the server is away`
      throw new OutcomeUnknown(message, { cause })
    })
    this.#isSettled = true
    if (answer !== null && answer !== undefined) return answer
    throw new NotConnected(
      `${what}: the connection was lost before the request was executed; nothing was done, try again`,
      { cause },
    )
  }

  async #connect(): Promise<PostgresConnection> {
    const connection = await PostgresConnection.open(this.#board.options.location)
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
    const { schema, number, options } = this.#board
    const text = `SELECT ${schema}.end_backend($1, $2, $3, $4::timestamptz)`
    await connection.query(text, [number, encodeText(options.who), pid, start])
    this.#cleanUp.noteEndedBackend()
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
      throw toBoardError(`${what} (${this.#board.uri})`, error)
    }
  }
}

/** The placeholders by their number: each request has some. */
const PLACEHOLDERS: string[] = []

function placeholders(count: number): string {
  PLACEHOLDERS[count] ??= Array.from({ length: count }, (_, index) => `$${index + 1}`).join(', ')
  return PLACEHOLDERS[count]
}

function toParameter(value: unknown): unknown {
  return Array.isArray(value) ? arrayLiteral(value) : value
}
