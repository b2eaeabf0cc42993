/**
 * The interface of a Postgres driver, single connections, and pools.
 *
 * A single connection never reconnects: once it is lost, it is over. It serves what is bound to a connection: session locks,
 * notifications, and answers whose loss has to be noticed.
 */
import type { Client, Pool } from 'pg'
import { createSharedController } from '../core/async/abort.ts'
import { InvalidArgument, isError } from '../core/errors.ts'
import { type PostgresLocation, poolSettings } from './location.ts'

/**
 * The interface of a Postgres driver. A `Pool` of the `pg` package implements it; any other driver takes one line.
 *
 * Each call may use another connection and commits by itself, so that it works behind a transaction pooler. No statement is
 * prepared by name, and no setting of a session is relied on.
 *
 * @example const driver: SqlDriver = new pg.Pool({ connectionString })
 */
export interface SqlDriver {
  /**
   * Runs one statement with its parameters (`$1`, `$2`, …): text, numbers, bytes, null, and arrays of these.
   *
   * Columns come back as `pg` gives them: `bytea` as bytes, `timestamptz` as Date, `jsonb` as what it says, `bigint` as
   * text or a number.
   *
   * @throws an error with `code`, the SQLSTATE, where the server has refused it
   */
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly Row[] }>
}

export type Row = Readonly<Record<string, unknown>>

export interface Notification {
  readonly channel: string
  /** The process id of the server backend that sent the notification. */
  readonly backend: number
  readonly payload: string
}

export class PostgresConnection implements SqlDriver {
  readonly #client: Client
  readonly #lost = createSharedController()
  #onNotification: (notification: Notification) => void = () => undefined
  #closing: Promise<void> | undefined
  /** The newest statement. The driver's own queue is deprecated: callers must wait for the answer before. */
  #newest: Promise<unknown> = Promise.resolve()

  private constructor(client: Client) {
    this.#client = client
    client.on('error', (error) => this.#markLost(error))
    client.on('end', () => this.#markLost(new Error('the connection was closed')))
    client.on('notification', ({ channel, processId, payload = '' }) => {
      this.#onNotification({ channel, backend: processId, payload })
    })
  }

  /**
   * @param options.statementTimeoutMs the time limit of a statement, in place of the one in the URI
   * @throws what the driver throws; the signal's reason
   */
  static async open(
    location: PostgresLocation,
    options: { readonly signal?: AbortSignal; readonly statementTimeoutMs?: number } = {},
  ): Promise<PostgresConnection> {
    const { signal, statementTimeoutMs } = options
    signal?.throwIfAborted()
    const [{ default: pg }, settings] = await Promise.all([
      loadPg(location),
      poolSettings(location, { statementTimeoutMs }),
    ])
    // An abort that came meanwhile would not be reported to the listener below.
    signal?.throwIfAborted()
    const client = new pg.Client(settings)
    const connection = new PostgresConnection(client)
    const cut = () => connection.disconnect(new Error('it was given up'))
    signal?.addEventListener('abort', cut, { once: true })
    try {
      await client.connect()
      signal?.throwIfAborted()
      return connection
    } catch (error) {
      connection.disconnect(error)
      signal?.throwIfAborted()
      throw error
    } finally {
      signal?.removeEventListener('abort', cut)
    }
  }

  /** The process id of the server backend, as received when the connection was opened. */
  get backend(): number {
    return Number((this.#client as Client & { readonly processID?: number | null }).processID ?? 0)
  }

  /** The signal that fires, with the reason, when the connection is lost. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  onNotification(listener: (notification: Notification) => void): void {
    this.#onNotification = listener
  }

  /**
   * Runs a statement, after the statements of earlier calls. Errors are the driver's own. A statement that times out without an answer ends
   * the connection.
   */
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly Row[] }> {
    const answer = this.#newest.then(() => this.#run(text, values))
    this.#newest = answer.catch(() => undefined)
    return answer
  }

  async #run(text: string, values: unknown[]): Promise<{ readonly rows: readonly Row[] }> {
    this.#lost.signal.throwIfAborted()
    try {
      return await this.#client.query(text, values)
    } catch (error) {
      if (!(isError(error) && 'code' in error)) this.disconnect(error)
      throw error
    }
  }

  /** Closes the connection; notifies the server, if it can be reached. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.#lost.signal.aborted) return
    const timer = setTimeout(() => this.disconnect(new Error('it did not end')), CLOSE_TIMEOUT_MS)
    await this.#client.end().catch(() => undefined)
    clearTimeout(timer)
  }

  /** Ends the connection at once, without notifying the server. */
  disconnect(reason: unknown): void {
    this.#markLost(reason)
    // On a dead connection, the driver would wait for ever for the answers of open requests.
    const { connection } = this.#client as Client & { readonly connection: { readonly stream: { destroy(): void } } }
    connection.stream.destroy()
  }

  #markLost(reason: unknown): void {
    if (!this.#lost.signal.aborted) this.#lost.abort(reason)
  }
}

/** The time in which a server has to end a connection. */
const CLOSE_TIMEOUT_MS = 2_000

/** A pool of connections to one database, which are opened on demand and replaced when they are lost. */
export class PostgresPool implements SqlDriver {
  readonly #location: PostgresLocation
  readonly #underWay = new Set<Promise<unknown>>()
  #pool: Promise<Pool> | undefined

  constructor(location: PostgresLocation) {
    this.#location = location
  }

  /** Connects where no connection is free; a lost one is made anew by the next call. Errors are the driver's own. */
  async query(text: string, values: unknown[]): Promise<{ readonly rows: readonly Row[] }> {
    this.#pool ??= createPool(this.#location)
    const answer = this.#pool.then((pool) => pool.query(text, values))
    const settled = answer.catch(() => undefined).finally(() => this.#underWay.delete(settled))
    this.#underWay.add(settled)
    return answer
  }

  /** Waits for open requests, then closes. The pool alone would never answer requests that wait for a connection. */
  async close(): Promise<void> {
    await Promise.all(this.#underWay)
    await this.#pool?.then((pool) => pool.end()).catch(() => undefined)
  }
}

async function createPool(location: PostgresLocation): Promise<Pool> {
  const [{ default: pg }, settings] = await Promise.all([loadPg(location), poolSettings(location)])
  const pool = new pg.Pool(settings)
  // The loss of an idle connection is not an error: the next call opens another.
  pool.on('error', () => undefined)
  return pool
}

/** Loads the driver `pg`. @throws InvalidArgument saying what to install */
async function loadPg({ uri }: PostgresLocation): Promise<typeof import('pg')> {
  try {
    return await import('pg')
  } catch (cause) {
    throw new InvalidArgument(`${uri.printable} needs the pg package: install pg@8`, { cause })
  }
}
