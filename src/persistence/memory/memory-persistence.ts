/**
 * Logbooks in this process's memory, for tests and for work that need not survive it. Everything goes through the
 * codec, so that data that another backend would refuse, change or copy is refused, changed and copied here, too.
 */
import { Lifecycle } from '../../core/async/lifecycle.ts'
import { roundTrip } from '../../core/codec.ts'
import { InvalidState, NotFound } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import {
  assertBookQuery,
  assertInstant,
  type BookQuery,
  isUnchanged,
  matchesBookQuery,
  matchesFlowQuery,
} from '../book-query.ts'
import { createFlowDetail, FlowRecord, toAcquiredFlow, toWrittenAtom } from '../flow-record.ts'
import type { BookDetail, FlowDetail, LogBook, Meta } from '../models.ts'
import type { AcquireRequest, BookRequest, FlowLog, FlowRequest, Persistence, Transition } from '../persistence.ts'
import { assertAcquireRequest, assertFlowRequest, assertUuid, fencedError, supersededError } from '../requests.ts'

interface StoredBook {
  detail: BookDetail
  readonly flows: Map<string, StoredFlow>
}

/** The writer of a flow and its content: plain data, copied whenever it is returned. */
interface StoredFlow {
  readonly run: number
  readonly claim: string
  readonly image: FlowRecord
}

/** The books, which several persistence objects may share. */
export type MemoryBooks = Map<string, StoredBook>

export class MemoryPersistence implements Persistence {
  readonly uri: string
  readonly #books: MemoryBooks
  readonly #lifecycle: Lifecycle

  constructor(uri: string, books: MemoryBooks) {
    this.uri = uri
    this.#books = books
    this.#lifecycle = new Lifecycle(`persistence ${uri}`)
  }

  async open(): Promise<void> {
    await this.#lifecycle.start(
      async () => undefined,
      async () => undefined,
    )
  }

  close(): Promise<void> {
    return this.#lifecycle.stop(async () => undefined)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async createBook(book: BookRequest): Promise<boolean> {
    this.#lifecycle.assertRunning()
    assertUuid(book.uuid, "a book's uuid")
    if (this.#books.has(book.uuid)) return false
    this.#books.set(book.uuid, createBookDetail(book))
    return true
  }

  async updateBook(uuid: string, { meta }: { meta: Meta }): Promise<void> {
    this.#lifecycle.assertRunning()
    const book = this.#requireBook(uuid)
    book.detail = { ...book.detail, meta: { ...book.detail.meta, ...deepCopy(meta) }, updatedAt: new Date() }
  }

  async createFlow(request: FlowRequest): Promise<boolean> {
    this.#lifecycle.assertRunning()
    assertFlowRequest(request)
    const book = this.#books.get(request.book.uuid) ?? createBookDetail(request.book)
    if (book.flows.has(request.flow.uuid)) return false
    this.#keep(book, createFlowDetail(request, new Date()))
    return true
  }

  /** Acquires a flow. It contains no `await`, like every write: so the check and the change are one step. */
  async acquire(request: AcquireRequest): Promise<FlowLog> {
    this.#lifecycle.assertRunning()
    assertAcquireRequest(request)
    const book = this.#books.get(request.book.uuid) ?? createBookDetail(request.book)
    const before = book.flows.get(request.flow.uuid)
    const repeated = before?.run === request.run && before.claim === request.claim
    if (before && before.run >= request.run && !repeated) throw fencedError(request, before.run)
    const flow = toAcquiredFlow(before?.image.detail, request, new Date())
    this.#keep(book, flow)
    return new MemoryFlowLog({ flow: deepCopy(flow), write: (transition) => this.#write(request, transition) })
  }

  async getBook(uuid: string): Promise<LogBook> {
    this.#lifecycle.assertRunning()
    const book = this.#requireBook(uuid)
    return deepCopy({ ...book.detail, flows: listFlows(book) })
  }

  async *listBooks(query: BookQuery = {}): AsyncIterable<BookDetail> {
    this.#lifecycle.assertRunning()
    assertBookQuery(query)
    const { after = '', limit = Number.POSITIVE_INFINITY } = query
    let count = 0
    for (const uuid of [...this.#books.keys()].filter((uuid) => uuid > after).sort()) {
      const book = this.#books.get(uuid)
      if (!book || !matchesBookQuery(query, book.detail) || !matchesFlowQuery(query, book.detail, listFlows(book)))
        continue
      yield deepCopy(book.detail)
      count += 1
      if (count >= limit) return
    }
  }

  async destroyBook(uuid: string, options: { unchangedSince?: Date } = {}): Promise<boolean> {
    this.#lifecycle.assertRunning()
    assertInstant(options.unchangedSince, 'destroyBook')
    const book = this.#requireBook(uuid)
    const { unchangedSince } = options
    if (unchangedSince && !isUnchanged(unchangedSince, book.detail, listFlows(book))) return false
    return this.#books.delete(uuid)
  }

  #keep(book: StoredBook, flow: FlowDetail): void {
    const { uuid, run, claim } = flow
    book.flows.set(uuid, { run, claim, image: new FlowRecord(deepCopy(flow)) })
    this.#books.set(book.detail.uuid, book)
  }

  #requireBook(uuid: string): StoredBook {
    const book = this.#books.get(uuid)
    if (!book) throw new NotFound(`there is no logbook ${uuid} in ${this.uri}`)
    return book
  }

  #write(request: AcquireRequest, transition: Transition): void {
    this.#lifecycle.assertRunning()
    const { state, meta, atoms = [] } = transition
    const copies = atoms.map((atom) => deepCopy(toWrittenAtom(atom)))
    const record = { at: new Date(), ...defined({ state, meta: meta && deepCopy(meta) }), atoms: copies }
    const flow = this.#books.get(request.book.uuid)?.flows.get(request.flow.uuid)
    if (flow?.run !== request.run || flow.claim !== request.claim) throw supersededError(request, flow?.run)
    flow.image.apply(record)
  }
}

class MemoryFlowLog implements FlowLog {
  readonly flow: FlowDetail
  readonly #write: (transition: Transition) => void
  #closed = false

  constructor(options: { flow: FlowDetail; write: (transition: Transition) => void }) {
    this.flow = options.flow
    this.#write = options.write
  }

  async write(transition: Transition): Promise<void> {
    if (this.#closed) throw new InvalidState(`the log of flow ${this.flow.uuid} is closed`)
    this.#write(transition)
  }

  async close(): Promise<void> {
    this.#closed = true
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

function createBookDetail({ uuid, name, meta = {} }: BookRequest): StoredBook {
  const at = new Date()
  return { detail: deepCopy({ uuid, name, meta, createdAt: at, updatedAt: at }), flows: new Map() }
}

function listFlows(book: StoredBook): FlowDetail[] {
  return [...book.flows.values()].map(({ image }) => image.detail)
}

function deepCopy<T>(value: T): T {
  return roundTrip(value) as T
}
