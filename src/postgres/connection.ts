/**
 * One connection, which is what it is: never made anew behind anybody's back, and over for good once it is lost. For what
 * lives and dies with a connection: session locks, notifications, and answers whose loss has to be noticed.
 */
import type { Client } from 'pg'
import { createSharedController } from '../core/async/abort.ts'
import { InvalidArgument } from '../core/errors.ts'
import type { Row, SqlDriver } from './driver.ts'
import { type PostgresLocation, poolSettings } from './place.ts'

export interface Notification {
  readonly channel: string
  /** The backend of whoever has notified. */
  readonly backend: number
}

export class PostgresConnection implements SqlDriver {
  readonly #client: Client
  readonly #lost = createSharedController()
  #onNotification: (notification: Notification) => void = () => undefined
  #closing: Promise<void> | undefined

  private constructor(client: Client) {
    this.#client = client
    client.on('error', (error) => this.#markLost(error))
    client.on('end', () => this.#markLost(new Error('the connection was closed')))
    client.on('notification', ({ channel, processId }) => this.#onNotification({ channel, backend: processId }))
  }

  /** @throws what the driver throws; the signal's reason */
  static async open(
    place: PostgresLocation,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<PostgresConnection> {
    const { signal } = options
    signal?.throwIfAborted()
    const [{ default: pg }, settings] = await Promise.all([loadPg(place), poolSettings(place)])
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

  /** What it was told, when it was opened, that the backend behind it is called. */
  get backend(): number {
    return Number((this.#client as Client & { readonly processID?: number | null }).processID ?? 0)
  }

  /** Fires, with the reason, when nothing gets through any more. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  onNotification(listener: (notification: Notification) => void): void {
    this.#onNotification = listener
  }

  /** Errors are the driver's own. A statement whose time runs out without an answer takes the connection with it. */
  async query(text: string, values: unknown[]): Promise<{ readonly rows: readonly Row[] }> {
    this.#lost.signal.throwIfAborted()
    try {
      return await this.#client.query(text, values)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) this.disconnect(error)
      throw error
    }
  }

  /** Takes leave of the server, if it is there. */
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

  /** Ends it at once, and says nothing to the server. */
  disconnect(reason: unknown): void {
    this.#markLost(reason)
    // Where nothing gets through, the driver would wait for ever for what was asked to be answered.
    const { connection } = this.#client as Client & { readonly connection: { readonly stream: { destroy(): void } } }
    connection.stream.destroy()
  }

  #markLost(reason: unknown): void {
    if (!this.#lost.signal.aborted) this.#lost.abort(reason)
  }
}

/** How long a server may take to end a connection, in milliseconds. */
const CLOSE_TIMEOUT_MS = 2_000

/**
 * @internal Its type is the driver's, which is not there for everybody who has this package.
 * @throws InvalidArgument saying what to install
 */
export async function loadPg({ uri }: PostgresLocation): Promise<typeof import('pg')> {
  try {
    return await import('pg')
  } catch (cause) {
    throw new InvalidArgument(`${uri.printable} needs the pg package: install pg@8`, { cause })
  }
}
