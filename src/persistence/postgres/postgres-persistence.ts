/**
 * Logbooks in Postgres, for conductors on many machines.
 *
 * The costs of the operations in round trips (each is a transaction of one statement):
 *
 *     acquire      one, shared by all concurrent acquires; a second where the flow has been run before; none where a job that has not run before
 *                  is begun at once: its first write makes the flow
 *     write        one, shared by all writes of this process that arrived while the last one was in flight
 *     others       one each; updateBook two
 *
 * **A database that is away** pauses all operations: operations that failed for a temporary reason are repeated with growing
 * pauses, up to `retryFor`. Every statement can be repeated without doing anything twice, see `statements.ts`.
 */
import { type CommitResult, ItemCommit } from '../../core/async/group-commit.ts'
import { Lifecycle } from '../../core/async/lifecycle.ts'
import { type RetryOptions, retry } from '../../core/async/retry.ts'
import { InvalidState, JobboardError, NotFound, StorageFailure } from '../../core/errors.ts'
import { Emitter } from '../../core/events.ts'
import type { Logger } from '../../core/log.ts'
import { fillScript } from '../../core/script-file.ts'
import {
  areMigrated,
  decodeText,
  encodeText,
  escapeElement,
  type Migrations,
  migrate,
  PostgresError,
  quoteIdentifier,
  type Row,
  type SqlDriver,
  toPostgresError,
  warnOfForeignOwner,
} from '../../postgres/index.ts'
import { assertBookQuery, assertInstant, type BookQuery, ignoreUnreadable } from '../book-query.ts'
import { toAcquiredFlow } from '../flow-record.ts'
import type { BookDetail, LogBook, Meta } from '../models.ts'
import type { AcquireRequest, BookRequest, FlowLog, FlowRequest, Persistence } from '../persistence.ts'
import {
  assertAcquireRequest,
  assertFlowRequest,
  assertUuid,
  noLogbooksError,
  reportedRetries,
  type StorageEvents,
} from '../requests.ts'
import {
  type FlowRow,
  SqlFlowLog,
  type SqlFlowLogOptions,
  type SqlTransition,
  type SqlWrite,
  type Written,
} from '../sql-flow-log.ts'
import { encodeStates, parseBook, parseLogBook, toBytes } from '../sql-rows.ts'
import { type AcquiredRow, acquireAll } from './acquirer.ts'
import { type BeginRequest, beginAll } from './beginner.ts'
import { listStatement, type Statements, statements } from './statements.ts'
import { SqlHeldBackWrite, writeAll } from './writer.ts'

export interface SqlPersistenceOptions {
  /** The URI for messages. */
  readonly uri: string
  readonly driver: SqlDriver
  readonly schema: string
  /** The place, as a board on the same database has it; absent over a driver of the caller. */
  readonly place?: string
  /** The time limit in milliseconds. */
  readonly retryFor: number
  /** Whether missing tables are created; true by default. */
  readonly create?: boolean
  readonly log?: Logger
  /** Closes the driver, where this object owns it. */
  readonly closeDriver?: () => Promise<void>
}

/** The limits of a group: a larger commit would delay the requests behind it too long. */
const MAX_GROUP = { items: 500, bytes: 2 ** 22 }

/** The time limit for opening: the caller waits, and the address may be misspelt. */
const OPEN_TIMEOUT_MS = 10_000

export class SqlPersistence implements Persistence {
  readonly uri: string
  readonly #options: SqlPersistenceOptions
  readonly #driver: SqlDriver
  readonly #statements: Statements
  readonly #lifecycle: Lifecycle
  readonly #events = new Emitter<StorageEvents>(() => undefined)
  readonly #acquires: ItemCommit<AcquireRequest, AcquiredRow>
  readonly #begins: ItemCommit<BeginRequest, FlowRow>
  readonly #writes: ItemCommit<SqlWrite, Written>

  constructor(options: SqlPersistenceOptions) {
    this.uri = options.uri
    this.#options = options
    this.#driver = storageDriver(options.driver, options.uri)
    this.#statements = statements(quoteIdentifier(options.schema))
    this.#lifecycle = new Lifecycle(`persistence ${options.uri}`)
    this.#acquires = new ItemCommit({
      commit: (group) => this.#acquireAll(group),
      bytesOf: () => 0,
      limits: MAX_GROUP,
      keyOf: toKey,
    })
    this.#begins = new ItemCommit({
      commit: (group) => this.#retryEachAlone(group, (some) => beginAll(this.#driver, this.#statements, some)),
      bytesOf: ({ first }) => first.bytes,
      limits: MAX_GROUP,
      keyOf: ({ request }) => toKey(request),
    })
    this.#writes = new ItemCommit({
      commit: (group) => this.#retryEachAlone(group, (some) => writeAll(this.#driver, this.#statements, some)),
      bytesOf: ({ bytes: size }) => size,
      limits: MAX_GROUP,
      // Of two writes of one log in a group, the second could be done alone after the first was refused.
      keyOf: ({ flow, term }) => `${flow} ${term}`,
      refusalOf: ({ refusal }) => refusal(),
    })
  }

  async open(): Promise<void> {
    const { retryFor, closeDriver } = this.#options
    await this.#lifecycle.start(
      () => {
        const limitMs = Math.min(retryFor, OPEN_TIMEOUT_MS)
        return retry(() => this.#prepare(), { ...this.#retries, limitMs, isRetryable: isTransient })
      },
      async () => closeDriver?.(),
    )
  }

  async #prepare(): Promise<void> {
    const { schema, create = true, log } = this.#options
    const fill = (file: string) => fillScript(import.meta.url, file, { SCHEMA: quoteIdentifier(schema) })
    // The functions are kept once, in the last step, as those of boards are. An older release does not use them, and works without.
    const steps = [fill('./migrations/1-tables.sql'), fill('./functions/writing.sql')]
    const migrations: Migrations = { schema, part: 'logbooks', steps, lastMandatory: 1 }
    if (create) await migrate(this.#driver, migrations)
    else if (!(await areMigrated(this.#driver, migrations)))
      throw noLogbooksError(this.uri, `schema ${schema} has no tables of logbooks`)
    await warnOfForeignOwner(this.#driver, { schema, log })
  }

  close(): Promise<void> {
    return this.#lifecycle.stop(async () => {
      await Promise.all([this.#acquires.idle, this.#begins.idle, this.#writes.idle])
      await this.#options.closeDriver?.()
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  onRetry(listener: (error: Error) => void): () => void {
    return this.#events.on('retry', listener)
  }

  async createBook({ uuid, name, meta = {} }: BookRequest): Promise<boolean> {
    assertUuid(uuid, "a book's uuid")
    const values = [encodeText(uuid), encodeText(name), toBytes(meta), new Date().toISOString()]
    return (await this.#query(this.#statements.createBook, values)).length > 0
  }

  async updateBook(uuid: string, { meta }: { meta: Meta }): Promise<void> {
    assertUuid(uuid, "a book's uuid")
    toBytes(meta)
    for (;;) {
      const [row] = await this.#query(this.#statements.book, [encodeText(uuid)])
      if (!row) throw this.#notFoundError(uuid)
      const changed = toBytes({ ...parseBook(row).meta, ...meta })
      const values = [encodeText(uuid), changed, new Date().toISOString(), row['revision']]
      if ((await this.#query(this.#statements.changeBook, values)).length > 0) return
    }
  }

  async createFlow(request: FlowRequest): Promise<boolean> {
    assertFlowRequest(request)
    const { book, flow, meta = {} } = request
    const at = new Date()
    const values = [
      ...[encodeText(book.uuid), encodeText(book.name), toBytes(book.meta ?? {})],
      ...[encodeText(flow.uuid), encodeText(flow.name), encodeText(flow.version), toBytes(meta)],
      ...[encodeStates([{ state: 'PENDING', at, run: 0 }]), at.toISOString()],
    ]
    return (await this.#query(this.#statements.createFlow, values)).length > 0
  }

  async acquire(request: AcquireRequest): Promise<FlowLog> {
    this.#lifecycle.assertRunning()
    assertAcquireRequest(request)
    const common = {
      request,
      write: (each: SqlWrite) => this.#write(each),
      escapeStates: escapeElement,
      toHeldBack: this.#toHeldBack(request),
    }
    if (request.beginsAtOnce && request.run === 1) {
      const at = new Date()
      const flow = toAcquiredFlow(undefined, request, at)
      const begin = (first: SqlTransition) => this.#begin({ request, at, first })
      return new SqlFlowLog({ ...common, flow, row: begin })
    }
    // A book that is destroyed at the same moment is created again by the next try.
    const { flow, row } = await retry(() => this.#acquires.add(request), this.#retries)
    return new SqlFlowLog({ ...common, flow, row })
  }

  #toHeldBack({ claim }: AcquireRequest): SqlFlowLogOptions['toHeldBack'] {
    const { place } = this.#options
    return place === undefined ? undefined : (write, send) => new SqlHeldBackWrite({ place, claim, write, send })
  }

  async getBook(uuid: string): Promise<LogBook> {
    assertUuid(uuid, "a book's uuid")
    const rows = await this.#query(this.#statements.readBook, [encodeText(uuid)])
    if (rows.length === 0) throw this.#notFoundError(uuid)
    return parseLogBook(uuid, rows)
  }

  async *listBooks(query: BookQuery = {}): AsyncIterable<BookDetail> {
    this.#lifecycle.assertRunning()
    assertBookQuery(query)
    const { limit = Number.POSITIVE_INFINITY } = query
    let { after } = query
    for (let count = 0; count < limit; ) {
      const size = Math.min(limit - count, 500)
      const page = listStatement(quoteIdentifier(this.#options.schema), {
        ...query,
        limit: size,
        ...(after ? { after } : {}),
      })
      const rows = await this.#query(page.text, page.values)
      for (const row of rows) {
        const book = await ignoreUnreadable(Promise.resolve().then(() => parseBook(row)))
        if (!book) continue
        yield book
        count += 1
      }
      if (rows.length < size) return
      after = decodeText(String(rows.at(-1)?.['uuid']))
    }
  }

  async destroyBook(uuid: string, options: { unchangedSince?: Date } = {}): Promise<boolean> {
    this.#lifecycle.assertRunning()
    assertUuid(uuid, "a book's uuid")
    assertInstant(options.unchangedSince, 'destroyBook')
    const values = [encodeText(uuid), options.unchangedSince?.toISOString() ?? null]
    const destroy = async (attempt: number) => {
      if ((await this.#driver.query(this.#statements.destroyBook, values)).rows.length > 0) return true
      const { rows } = await this.#driver.query(this.#statements.book, [encodeText(uuid)])
      if (rows.length > 0) return false
      // The previous try may have removed it, and its answer was lost.
      if (attempt > 1) return true
      throw this.#notFoundError(uuid)
    }
    return retry(destroy, this.#retries)
  }

  get #retries(): RetryOptions {
    return reportedRetries(this.#events, { limitMs: this.#options.retryFor, signal: this.#lifecycle.signal })
  }

  async #query(text: string, values: unknown[]): Promise<readonly Row[]> {
    this.#lifecycle.assertRunning()
    return retry(async () => (await this.#driver.query(text, values)).rows, this.#retries)
  }

  /** Makes a flow with its first transition. A refusal is the refusal of its acquire. */
  async #begin(request: BeginRequest): Promise<FlowRow> {
    if (this.#lifecycle.state !== 'running') {
      const message = `the logbooks at ${this.uri} were closed before the flow had begun`
      throw new StorageFailure(message, { retryable: true })
    }
    // A book that is destroyed at the same moment is created again by the next try.
    return retry(() => this.#begins.add(request), this.#retries)
  }

  async #write(write: SqlWrite): Promise<Written> {
    if (this.#lifecycle.state !== 'running') throw new InvalidState(`persistence ${this.uri} is closed`)
    return this.#writes.add(write)
  }

  /**
   * Acquires flows. An acquire that failed for good, because of a damaged flow for example, does not fail the acquires
   * of other flows behind it.
   */
  async #acquireAll(group: readonly AcquireRequest[]): Promise<CommitResult<AcquiredRow>[]> {
    try {
      return await this.#retryEachAlone(group, (some) => acquireAll(this.#driver, this.#statements, some))
    } catch (error) {
      if (error instanceof StorageFailure && error.retryable) throw error
      return group.map(() => ({ error }))
    }
  }

  /**
   * Commits a group. The database refuses a group as a whole: then each item is committed alone, and gets its own
   * outcome.
   */
  async #retryEachAlone<T, R>(
    group: readonly T[],
    work: (some: readonly T[]) => Promise<CommitResult<R>[]>,
  ): Promise<CommitResult<R>[]> {
    try {
      return await retry(() => work(group), this.#retries)
    } catch (error) {
      if (group.length <= 1 || (error instanceof StorageFailure && error.retryable)) throw error
    }
    const outcomes: CommitResult<R>[] = []
    for (const item of group) {
      const [outcome] = await retry(() => work([item]), this.#retries).catch((error) => [{ error }])
      outcomes.push(outcome ?? { error: new StorageFailure(`${this.uri} returned no outcome for a request`) })
    }
    return outcomes
  }

  #notFoundError(uuid: string): NotFound {
    return new NotFound(`there is no logbook ${uuid} in ${this.uri}`)
  }
}

function toKey({ book, flow }: AcquireRequest): string {
  return JSON.stringify([book.uuid, flow.uuid])
}

/**
 * Returns whether another try may succeed without a change of the configuration: an open should not wait because of a
 * misspelt address.
 */
function isTransient(error: unknown): boolean {
  if (!(error instanceof StorageFailure)) return false
  return error.cause instanceof PostgresError ? error.cause.retryable : error.retryable
}

/** Wraps a driver. @param uri the URI for errors, without a password */
function storageDriver(driver: SqlDriver, uri: string): SqlDriver {
  return {
    query: async (text, values) => {
      try {
        return await driver.query(text, values)
      } catch (thrown) {
        if (thrown instanceof JobboardError) throw thrown
        const error = toPostgresError(thrown)
        const { message, sqlState } = error
        // An error that the request did not cause is not the job's fault, and may be repaired while the job waits.
        const retryable = error.fault === 'place'
        const state = sqlState === undefined ? '' : ` (SQLSTATE ${sqlState})`
        throw new StorageFailure(`the logbooks at ${uri}: ${message}${state}`, { cause: error, retryable })
      }
    },
  }
}
