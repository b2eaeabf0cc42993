/**
 * Logbooks, wherever they are, whose results go through codecs. Also around those that are kept without one: a record that
 * somebody else has sealed must not be taken for one without results.
 */
import type { BookQuery } from './book-query.ts'
import type { BookDetail, FlowDetail, LogBook, Meta } from './models.ts'
import type { AcquireRequest, BookRequest, FlowLog, FlowRequest, Persistence, Transition } from './persistence.ts'
import type { Sealing } from './sealing.ts'

export class SealedPersistence implements Persistence {
  readonly #inner: Persistence
  readonly #sealing: Sealing

  constructor(inner: Persistence, sealing: Sealing) {
    this.#inner = inner
    this.#sealing = sealing
  }

  get uri(): string {
    return this.#inner.uri
  }

  open(): Promise<void> {
    return this.#inner.open()
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  createBook(book: BookRequest): Promise<boolean> {
    return this.#inner.createBook(book)
  }

  updateBook(uuid: string, change: { readonly meta: Meta }): Promise<void> {
    return this.#inner.updateBook(uuid, change)
  }

  createFlow(request: FlowRequest): Promise<boolean> {
    return this.#inner.createFlow(request)
  }

  async acquire(request: AcquireRequest): Promise<FlowLog> {
    const log = await this.#inner.acquire(request)
    try {
      return new SealedFlowLog(log, { flow: this.#unsealed(log.flow), sealing: this.#sealing })
    } catch (error) {
      await log.close()
      throw error
    }
  }

  async getBook(uuid: string): Promise<LogBook> {
    const book = await this.#inner.getBook(uuid)
    return { ...book, flows: book.flows.map((flow) => this.#unsealed(flow)) }
  }

  listBooks(query?: BookQuery): AsyncIterable<BookDetail> {
    return this.#inner.listBooks(query)
  }

  destroyBook(uuid: string, options?: { readonly unchangedSince?: Date }): Promise<boolean> {
    return this.#inner.destroyBook(uuid, options)
  }

  #unsealed(flow: FlowDetail): FlowDetail {
    return { ...flow, atoms: flow.atoms.map((atom) => this.#sealing.unseal(atom)) }
  }
}

class SealedFlowLog implements FlowLog {
  readonly flow: FlowDetail
  readonly #inner: FlowLog
  readonly #sealing: Sealing

  constructor(inner: FlowLog, { flow, sealing }: { flow: FlowDetail; sealing: Sealing }) {
    this.flow = flow
    this.#inner = inner
    this.#sealing = sealing
  }

  async write(transition: Transition): Promise<void> {
    const { atoms, ...rest } = transition
    await this.#inner.write(atoms ? { ...rest, atoms: atoms.map((atom) => this.#sealing.seal(atom)) } : rest)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
