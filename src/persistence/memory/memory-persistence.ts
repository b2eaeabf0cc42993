/**
 * Logbooks in this process's memory, for tests and for work that need not outlive it. Everything goes through the
 * codec, so that what a real backend would refuse, change or copy is refused, changed and copied here too.
 */
import { asStored } from '../../core/codec.ts'
import { InvalidState, NotFound } from '../../core/errors.ts'
import { Lifecycle } from '../../core/lifecycle.ts'
import { acquiredFlow, KeptFlow } from '../apply.ts'
import type { FlowDetail, LogBook, Meta } from '../models.ts'
import type { AcquireRequest, FlowLog, Persistence, Transition } from '../persistence.ts'
import { assertAcquireRequest, assertUuid, fenced, superseded } from '../requests.ts'

type BookDetail = Omit<LogBook, 'flows'>

interface StoredBook {
  readonly detail: BookDetail
  /** Copied whenever they are handed out. */
  readonly flows: Map<string, KeptFlow>
}

/** What several persistence objects may share. */
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

  async createBook(book: { uuid: string; name: string; meta?: Meta }): Promise<boolean> {
    this.#lifecycle.assertRunning()
    assertUuid(book.uuid, "a book's uuid")
    if (this.#books.has(book.uuid)) return false
    this.#books.set(book.uuid, newBook(book))
    return true
  }

  /** Without an `await`, like every write: that is what makes the check and the change one step here. */
  async acquire(request: AcquireRequest): Promise<FlowLog> {
    this.#lifecycle.assertRunning()
    assertAcquireRequest(request)
    const book = this.#books.get(request.book.uuid) ?? newBook(request.book)
    const before = book.flows.get(request.flow.uuid)
    const repeated = before?.run === request.run && before.claim === request.claim
    if (before && before.run >= request.run && !repeated) throw fenced(request, before.run)
    const flow = copyOf(acquiredFlow(before?.detail, request, new Date()))
    book.flows.set(flow.uuid, new KeptFlow(flow))
    this.#books.set(request.book.uuid, book)
    return new MemoryFlowLog({ flow: copyOf(flow), write: (transition) => this.#write(request, transition) })
  }

  async getBook(uuid: string): Promise<LogBook> {
    this.#lifecycle.assertRunning()
    const book = this.#existing(uuid)
    return copyOf({ ...book.detail, flows: [...book.flows.values()].map(({ detail }) => detail) })
  }

  async *listBooks(): AsyncIterable<BookDetail> {
    this.#lifecycle.assertRunning()
    for (const { detail } of [...this.#books.values()]) yield copyOf(detail)
  }

  async destroyBook(uuid: string): Promise<void> {
    this.#lifecycle.assertRunning()
    this.#existing(uuid)
    this.#books.delete(uuid)
  }

  #existing(uuid: string): StoredBook {
    const book = this.#books.get(uuid)
    if (!book) throw new NotFound(`there is no logbook ${uuid} in ${this.uri}`)
    return book
  }

  #write(request: AcquireRequest, transition: Transition): void {
    this.#lifecycle.assertRunning()
    const record = { ...copyOf(transition), at: new Date() }
    const flows = this.#books.get(request.book.uuid)?.flows
    const flow = flows?.get(request.flow.uuid)
    if (!flows || flow?.run !== request.run || flow.claim !== request.claim) throw superseded(request, flow?.run)
    flow.apply(record)
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

function newBook({ uuid, name, meta = {} }: { uuid: string; name: string; meta?: Meta }): StoredBook {
  return { detail: copyOf({ uuid, name, meta, createdAt: new Date() }), flows: new Map() }
}

function copyOf<T>(value: T): T {
  return asStored(value) as T
}
