/** The parts of a board that all roles need: its place, its number and its sink, the session, and reads over the connections of a pool. */
import { InvalidPosting, InvalidState, NotConnected } from '../../../../core/errors.ts'
import type { Logger } from '../../../../core/log.ts'
import { type PostgresConnection, type PostgresLocation, PostgresPool, type Row } from '../../../../postgres/index.ts'
import type { BackendSink } from '../../../contract/index.ts'
import type { WindowSize } from '../../window-size.ts'
import { toBoardError } from './errors.ts'

/** The delay between a failed read and the gap that makes the view list the board again, in milliseconds. */
const RETRY_LISTING_AFTER_MS = 250
/** Limit of reported jobs with an invalid number. */
const MAX_REPORTED = 1_000

export interface PostgresBackendOptions extends WindowSize {
  readonly uri: string
  readonly location: PostgresLocation
  /** The name of the board in its schema. */
  readonly board: string
  readonly who: string
  readonly create?: boolean
  readonly log?: Logger
  /** The TTL of the session, in milliseconds; `scanPeriod` is in milliseconds, too. */
  readonly sessionTimeout: number
  readonly scanPeriod: number
  /** Whether the resources of claimed jobs are advisory locks of the database, too. */
  readonly advisoryLocks: boolean
  /** Whether the backend listens to notifications; false only in tests. */
  readonly listen?: boolean
}

/** A session of this board on the server. */
export interface OwnSession {
  readonly id: number
  /** The name of the session in events. */
  readonly label: string
  /** Reports the session as lost, whatever its state on the server. Does nothing if it is no longer the current one. */
  readonly markLost: (reason: Error) => void
}

export class PostgresBoard {
  readonly options: PostgresBackendOptions
  /** The URI without a password, for errors. */
  readonly uri: string
  readonly schema: string
  readonly pool: PostgresPool
  /** The present session, and its connection: undefined while there is none. Only `session.ts` changes them. */
  session: OwnSession | undefined
  connection: PostgresConnection | undefined
  readonly #closing = new AbortController()
  #number = 0
  #sink: BackendSink | undefined
  #isOpen = false
  #retryListingTimer: NodeJS.Timeout | undefined
  readonly #reportedNumbers = new Set<unknown>()

  constructor(options: PostgresBackendOptions) {
    this.options = options
    this.uri = options.uri
    this.schema = options.location.schema
    this.pool = new PostgresPool(options.location)
  }

  /** Notes that the board is open: its number, and the receiver of what is reported. */
  begin(number: number, sink: BackendSink): void {
    this.#number = number
    this.#sink = sink
    this.#isOpen = true
  }

  /** Notes that the board is closed. What is under way still uses its number and its sink. @returns whether it was open */
  end(): boolean {
    const wasOpen = this.#isOpen
    this.#isOpen = false
    clearTimeout(this.#retryListingTimer)
    this.#closing.abort(new NotConnected(`${this.uri} is closed`))
    return wasOpen
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** The signal that fires when the board is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** The number of the board in its schema; 0 before it was opened. */
  get number(): number {
    return this.#number
  }

  /** @throws InvalidState before the board was opened */
  get sink(): BackendSink {
    if (this.#sink) return this.#sink
    throw this.#notOpenError()
  }

  /** @throws InvalidState */
  assertOpen(): void {
    if (!this.#isOpen) throw this.#notOpenError()
  }

  #notOpenError(): InvalidState {
    return new InvalidState(`board ${this.uri} is not open`)
  }

  /** Returns the present session. @throws InvalidState; NotConnected without a session */
  requireSession(what: string): OwnSession {
    this.assertOpen()
    if (this.session) return this.session
    throw this.notConnectedError(what)
  }

  /** Returns the connection of the session. @throws NotConnected */
  requireConnection(): PostgresConnection {
    if (this.connection) return this.connection
    throw new NotConnected(`${this.uri}: the session has no connection now`)
  }

  notConnectedError(what: string): NotConnected {
    return new NotConnected(`${what}: no session with ${this.uri}; try again when the board is connected`)
  }

  /** Runs a statement as {@link query} does, on an open board. @throws InvalidState, or the error of a board */
  async ask(what: string, text: string, values?: readonly unknown[]): Promise<readonly Row[]> {
    this.assertOpen()
    try {
      return await this.query(text, values)
    } catch (error) {
      throw toBoardError(what, error)
    }
  }

  /**
   * Runs a statement on a connection of the pool. Errors are the driver's own.
   *
   * @param text the statement, with `@` for the schema and `$1` for the number of the board
   */
  async query(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return (await this.pool.query(text.replaceAll('@', this.schema), [this.number, ...values])).rows
  }

  /**
   * Runs a read of a view. If it fails but the session continues, reports a gap later. A view whose read fails waits for the gap that
   * follows a reconnect. But reads use other connections than the session, so there may be no reconnect.
   */
  async readForView<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read()
    } catch (error) {
      const goesOn = error instanceof NotConnected && this.#isOpen && this.session
      if (goesOn) this.#retryListingTimer ??= setTimeout(() => this.#reportGap(), RETRY_LISTING_AFTER_MS).unref()
      throw error
    }
  }

  #reportGap(): void {
    this.#retryListingTimer = undefined
    if (this.#isOpen && this.session) this.sink.gap()
  }

  /** Reports a job with an invalid number: each number once, up to {@link MAX_REPORTED} numbers. */
  reportInvalidNumber(number: unknown): void {
    if (this.#reportedNumbers.has(number) || this.#reportedNumbers.size >= MAX_REPORTED) return
    this.#reportedNumbers.add(number)
    const what = `a job in ${this.uri} has the invalid number ${String(number)}`
    this.sink.error(new InvalidPosting(`${what}; it is not claimed here, remove it`))
  }
}
