/**
 * Logbooks in an SQLite file, for the processes of one machine. Writes that are requested in one turn of the event loop are committed together,
 * with the steps of the boards in the same file. A transaction has the only write lock of the file, so a writer that names the newest term is the
 * newest until its commit.
 */
import { Lifecycle } from '../../core/async/lifecycle.ts'
import { InvalidState, JobboardError, NotFound, StorageFailure } from '../../core/errors.ts'
import { FINISHED_STATES } from '../../core/states.ts'
import { decodeText, encodeText } from '../../core/texts.ts'
import { parseUri } from '../../core/uri.ts'
import {
  openSqliteFile,
  type Row,
  type SqliteFile,
  type SqliteLocation,
  type SqliteValue,
  type StepOptions,
} from '../../sqlite/index.ts'
import { assertBookQuery, assertInstant, type BookQuery, ignoreUnreadable } from '../book-query.ts'
import { createFlowDetail, toAcquiredFlow } from '../flow-record.ts'
import type { AtomDetail, BookDetail, FlowDetail, LogBook, Meta } from '../models.ts'
import type { AcquireRequest, BookRequest, FlowLog, FlowRequest, Persistence } from '../persistence.ts'
import { RecordDecoder } from '../record-memory.ts'
import { assertAcquireRequest, assertFlowRequest, assertUuid, fencedError } from '../requests.ts'
import { SqlFlowLog, type SqlWrite, type Written } from '../sql-flow-log.ts'
import { encodeStates, parseAtom, parseBook, parseFlow, toBytes } from '../sql-rows.ts'
import { pageStatement } from './book-pages.ts'

export interface SqlitePersistenceOptions {
  readonly uri: string
  readonly location: SqliteLocation
}

/** The number of books of one read. */
const BOOKS_PER_PAGE = 500

/** The row of a flow that a run has acquired. */
interface AcquiredFlow {
  readonly flow: FlowDetail
  readonly row: { readonly id: string; readonly term: number; readonly writes: number }
}

export class SqlitePersistence implements Persistence {
  readonly uri: string
  readonly #location: SqliteLocation
  readonly #lifecycle: Lifecycle
  #file: SqliteFile | undefined

  constructor({ uri, location }: SqlitePersistenceOptions) {
    this.uri = uri
    this.#location = location
    this.#lifecycle = new Lifecycle(`persistence ${uri}`)
  }

  async open(): Promise<void> {
    const open = async () => {
      this.#file = await openSqliteFile(this.#location)
    }
    await this.#lifecycle.start(
      () => this.#translate(open),
      async () => this.#file?.close(),
    )
  }

  close(): Promise<void> {
    return this.#lifecycle.stop(async () => this.#file?.close())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async createBook(book: BookRequest): Promise<boolean> {
    assertUuid(book.uuid, "a book's uuid")
    const values = toBookValues(book, new Date())
    return this.#step(() => this.#insertBook(values))
  }

  async updateBook(uuid: string, { meta }: { meta: Meta }): Promise<void> {
    assertUuid(uuid, "a book's uuid")
    // Before the transaction: it throws for meta that is not plain data.
    toBytes(meta)
    return this.#step(() => {
      const changed = toBytes({ ...parseBook(this.#requireBook(uuid)).meta, ...meta })
      const sql = 'UPDATE books SET meta = ?, updated_at = ? WHERE uuid = ?'
      this.#db.run(sql, changed, new Date().toISOString(), encodeText(uuid))
    })
  }

  async createFlow(request: FlowRequest): Promise<boolean> {
    assertFlowRequest(request)
    const at = new Date()
    const book = toBookValues(request.book, at)
    const flow = toFlowValues(createFlowDetail(request, at), { term: 0 })
    return this.#step(() => {
      this.#insertBook(book)
      const id = Number(this.#requireBook(request.book.uuid)['id'])
      if (this.#flow(id, request.flow.uuid)) return false
      this.#insertFlow(id, flow)
      return true
    })
  }

  async acquire(request: AcquireRequest): Promise<FlowLog> {
    assertAcquireRequest(request)
    const at = new Date()
    const book = toBookValues(request.book, at)
    const created = toAcquiredFlow(undefined, request, at)
    const values = toFlowValues(created, { term: 1 })
    const acquired = await this.#step((): AcquiredFlow => {
      const known = this.#book(request.book.uuid)
      const before = known && this.#flow(Number(known['id']), request.flow.uuid)
      if (before) return this.#takeOver(before, request, at)
      this.#insertBook(book)
      const id = this.#insertFlow(Number(this.#requireBook(request.book.uuid)['id']), values)
      return { flow: created, row: { id: String(id), term: 1, writes: 0 } }
    })
    const endsWithSettlement = this.#sharesFileWith(request.settledOn)
    const write = (each: SqlWrite) =>
      this.#write(each, { waitsForDisk: !(endsWithSettlement && FINISHED_STATES.includes(each.state)) })
    return new SqlFlowLog({ request, ...acquired, write })
  }

  /** Makes a run the only writer of a flow. @throws Fenced when another claim's run is the same or newer; StorageFailure for a damaged flow */
  #takeOver(before: Row, request: AcquireRequest, at: Date): AcquiredFlow {
    const { run, claim } = request
    const known = Number(before['run'])
    if (known > run || (known === run && before['claim'] !== encodeText(claim))) throw fencedError(request, known)
    const [id, term] = [Number(before['id']), Number(before['term']) + 1]
    const flow = toAcquiredFlow(parseFlow(before, this.#atoms(id)), request, at)
    const sql = 'UPDATE flows SET run = ?, claim = ?, term = ?, updated_at = ? WHERE id = ?'
    this.#db.run(sql, run, encodeText(claim), term, at.toISOString(), id)
    return { flow, row: { id: String(id), term, writes: Number(before['writes']) } }
  }

  /** Returns whether the board is in this file: then its next step that is on the disk proves that all steps before it are. */
  #sharesFileWith(board: string | undefined): boolean {
    return board !== undefined && /^sqlite:/i.test(board) && this.#requireFile().isAt(parseUri(board, 'board').path)
  }

  async #write(write: SqlWrite, options: StepOptions): Promise<Written> {
    if (this.#lifecycle.state !== 'running') throw new InvalidState(`persistence ${this.uri} is closed`)
    return this.#step((): Written => {
      const refusal = write.refusal()
      if (refusal) throw refusal
      const { flow, term, number, state, at, meta, states, atoms } = write
      const moved = this.#db.run(
        `UPDATE flows SET writes = ?, state = ?, states = coalesce(?, states), meta = coalesce(?, meta), updated_at = ?
          WHERE id = ? AND term = ?`,
        ...[number, state, states ?? null, meta ?? null, at.toISOString(), Number(flow), term],
      )
      if (moved === 0) {
        const row = this.#db.get('SELECT run FROM flows WHERE id = ?', Number(flow))
        return { newerRun: row && Number(row['run']) }
      }
      for (const atom of atoms) this.#writeAtom(Number(flow), atom)
      return 'written'
    }, options)
  }

  #writeAtom(flow: number, atom: SqlWrite['atoms'][number]): void {
    const { name, position, kind, version, state, intention, body, states, createdAt, updatedAt } = atom
    this.#db.run(
      `INSERT INTO atoms (flow, name, position, kind, version, state, intention, body, states, created_at, updated_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (flow, name) DO UPDATE SET kind = excluded.kind,
        version = excluded.version, state = excluded.state, intention = excluded.intention, body = excluded.body,
        states = excluded.states, updated_at = excluded.updated_at`,
      ...[flow, name, position, kind, version, state, intention, body, states],
      ...[createdAt.toISOString(), updatedAt.toISOString()],
    )
  }

  async getBook(uuid: string): Promise<LogBook> {
    this.#lifecycle.assertRunning()
    assertUuid(uuid, "a book's uuid")
    return this.#read(() => {
      const row = this.#requireBook(uuid)
      const decoder = new RecordDecoder()
      const flows = this.#db.all('SELECT * FROM flows WHERE book = ? ORDER BY created_at, uuid', Number(row['id']))
      return {
        ...parseBook(row),
        flows: flows.map((flow) => parseFlow(flow, this.#atoms(Number(flow['id']), decoder))),
      }
    })
  }

  async *listBooks(query: BookQuery = {}): AsyncIterable<BookDetail> {
    this.#lifecycle.assertRunning()
    assertBookQuery(query)
    const { limit = Number.POSITIVE_INFINITY } = query
    let { after } = query
    for (let count = 0; count < limit; ) {
      const size = Math.min(limit - count, BOOKS_PER_PAGE)
      const { sql, values } = pageStatement({ ...query, ...(after === undefined ? {} : { after }) }, size)
      const rows = await this.#read(() => this.#db.all(sql, ...values))
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

  async destroyBook(uuid: string, { unchangedSince }: { unchangedSince?: Date } = {}): Promise<boolean> {
    assertUuid(uuid, "a book's uuid")
    assertInstant(unchangedSince, 'destroyBook')
    const since = unchangedSince?.toISOString() ?? null
    return this.#step(() => {
      this.#requireBook(uuid)
      const sql = `DELETE FROM books WHERE uuid = ?1 AND (?2 IS NULL OR (updated_at <= ?2
        AND NOT EXISTS (SELECT 1 FROM flows f WHERE f.book = books.id AND f.updated_at > ?2)))`
      return this.#db.run(sql, encodeText(uuid), since) > 0
    })
  }

  #insertBook(values: readonly SqliteValue[]): boolean {
    const sql = 'INSERT OR IGNORE INTO books (uuid, name, meta, created_at, updated_at) VALUES (?, ?, ?, ?, ?)'
    return this.#db.run(sql, ...values) > 0
  }

  /** Returns the number of the new flow. */
  #insertFlow(book: number, values: readonly SqliteValue[]): number {
    const sql = `INSERT INTO flows (book, uuid, name, version, state, meta, states, run, claim, term, created_at, updated_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
    return this.#db.insert(sql, book, ...values)
  }

  #book(uuid: string): Row | undefined {
    return this.#db.get('SELECT * FROM books WHERE uuid = ?', encodeText(uuid))
  }

  /** @throws NotFound */
  #requireBook(uuid: string): Row {
    const row = this.#book(uuid)
    if (row) return row
    throw new NotFound(`there is no logbook ${uuid} in ${this.uri}`)
  }

  #flow(book: number, uuid: string): Row | undefined {
    return this.#db.get('SELECT * FROM flows WHERE book = ? AND uuid = ?', book, encodeText(uuid))
  }

  #atoms(flow: number, decoder = new RecordDecoder()): AtomDetail[] {
    const rows = this.#db.all('SELECT * FROM atoms WHERE flow = ? ORDER BY position', flow)
    return rows.map((row) => parseAtom(row, decoder))
  }

  /** Runs a step in the next transaction of the file. */
  async #step<T>(work: () => T, options?: StepOptions): Promise<T> {
    this.#lifecycle.assertRunning()
    return this.#translate(() => this.#requireFile().run(work, options))
  }

  /** Runs reads that see one state of the file. */
  #read<T>(work: () => T): Promise<T> {
    this.#lifecycle.assertRunning()
    return this.#translate(async () => this.#requireFile().read(work))
  }

  /** Converts the errors of {@link PASSING} and {@link LASTING} to StorageFailure. */
  async #translate<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw toStorageFailure(error, this.uri)
    }
  }

  get #db(): SqliteFile['connection'] {
    return this.#requireFile().connection
  }

  #requireFile(): SqliteFile {
    if (this.#file) return this.#file
    throw new InvalidState(`persistence ${this.uri} is not open`)
  }
}

/** The errors of a file that has no room, or whose writers are too busy: they pass. */
const PASSING = ['JOBBOARD_WRITES_REFUSED', 'JOBBOARD_NOT_CONNECTED']
/** The errors of a file that cannot be used by this user, or at all. */
const LASTING = ['JOBBOARD_ACCESS_DENIED', 'JOBBOARD_INCOMPATIBLE_VERSION', 'JOBBOARD_UNSUPPORTED_CAPABILITY']

function toStorageFailure(error: unknown, uri: string): unknown {
  if (!(error instanceof JobboardError)) return error
  const isPassing = PASSING.includes(error.code)
  if (!isPassing && !LASTING.includes(error.code)) return error
  return new StorageFailure(`the logbooks at ${uri}: ${error.message}`, { cause: error, retryable: isPassing })
}

/** Returns the values of a new book: uuid, name, meta, created_at, updated_at. @throws InvalidArgument for meta that is not plain data */
function toBookValues({ uuid, name, meta = {} }: BookRequest, at: Date): readonly SqliteValue[] {
  return [encodeText(uuid), encodeText(name), toBytes(meta), at.toISOString(), at.toISOString()]
}

/** Returns the values of a new flow, from uuid to updated_at. @throws InvalidArgument for meta that is not plain data */
function toFlowValues(flow: FlowDetail, { term }: { readonly term: number }): readonly SqliteValue[] {
  const { uuid, name, version, state, meta, states = [], run, claim, createdAt, updatedAt } = flow
  return [
    ...[encodeText(uuid), encodeText(name), encodeText(version), state, toBytes(meta), encodeStates(states)],
    ...[run, encodeText(claim), term, createdAt.toISOString(), updatedAt.toISOString()],
  ]
}
