/**
 * Adds codecs to logbooks of any backend. It also wraps logbooks without a codec: a sealed record of another process
 * must not be read as one without results.
 */
import { toFields } from '../../core/codec.ts'
import { SealedLogbook } from '../../core/errors.ts'
import { attempt } from '../../core/result.ts'
import type { BookQuery } from '../book-query.ts'
import type { AtomDetail, BookDetail, FlowDetail, LogBook, Meta } from '../models.ts'
import type {
  AcquireRequest,
  BookRequest,
  FlowLog,
  FlowRequest,
  Persistence,
  ResultPlace,
  SealableResults,
  Transition,
} from '../persistence.ts'
import { RecordDecoder } from '../record-memory.ts'
import type { EncodedSecrets, FlowPlace, RecordCodec, SealedAtom } from './atom-codec.ts'

/** The results of a flow are sealed like the results of an atom. No atom has an empty name, so none can be put in their place. */
const RESULTS_RECORD: AtomDetail = {
  ...({ name: '', kind: 'task', version: '1.0', state: 'SUCCESS', intention: 'EXECUTE' } as const),
  ...{ meta: {}, updatedAt: new Date(0) },
}

export class CodecPersistence implements Persistence {
  readonly #inner: Persistence
  readonly #recordCodec: RecordCodec

  constructor(inner: Persistence, sealing: RecordCodec) {
    this.#inner = inner
    this.#recordCodec = sealing
  }

  get uri(): string {
    return this.#inner.uri
  }

  get encrypts(): boolean {
    return this.#recordCodec.encrypts
  }

  onRetry(listener: (error: Error) => void): () => void {
    return this.#inner.onRetry?.(listener) ?? (() => undefined)
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
    // The place is taken from the request: the place in the record was written by a user of the storage.
    const place = { book: request.book.uuid, flow: request.flow.uuid }
    try {
      return new CodecFlowLog(log, {
        flow: this.#decodeFlow(log.flow, { ...place, decoder: new RecordDecoder() }),
        place,
        sealing: this.#recordCodec,
      })
    } catch (error) {
      await log.close()
      throw error
    }
  }

  async getBook(uuid: string): Promise<LogBook> {
    const book = await this.#inner.getBook(uuid)
    const decoder = new RecordDecoder()
    return {
      ...book,
      flows: book.flows.map((flow) => this.#decodeFlow(flow, { book: uuid, flow: flow.uuid, decoder })),
    }
  }

  listBooks(query?: BookQuery): AsyncIterable<BookDetail> {
    return this.#inner.listBooks(query)
  }

  destroyBook(uuid: string, options?: { readonly unchangedSince?: Date }): Promise<boolean> {
    return this.#inner.destroyBook(uuid, options)
  }

  sealResults(values: Readonly<Record<string, unknown>>, place: ResultPlace): SealableResults {
    const { sealed } = this.#recordCodec.encode({ ...RESULTS_RECORD, result: values }, place) as SealedAtom
    return sealed === undefined ? { values } : { sealed: sealed as EncodedSecrets }
  }

  unsealResults(kept: SealableResults, place: ResultPlace): Readonly<Record<string, unknown>> {
    const record = { ...RESULTS_RECORD, ...('sealed' in kept ? { sealed: kept.sealed } : { result: kept.values }) }
    try {
      const { result } = this.#recordCodec.decode(record, { ...place, decoder: new RecordDecoder() })
      const values = toFields(result)
      if (values) return values
      throw new SealedLogbook('they are damaged')
    } catch (error) {
      if (!(error instanceof SealedLogbook)) throw error
      throw new SealedLogbook(`the results of job ${place.flow}: ${error.message}`, { cause: error })
    }
  }

  #decodeFlow(flow: FlowDetail, place: FlowPlace & { readonly decoder: RecordDecoder }): FlowDetail {
    // A flow that begins.
    if (flow.atoms.length === 0) return flow
    return { ...flow, atoms: naming(place.book, () => flow.atoms.map((atom) => this.#recordCodec.decode(atom, place))) }
  }
}

/** Adds the book's UUID to the error: the record of an atom does not contain it. */
function naming<T>(book: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof SealedLogbook)) throw error
    throw new SealedLogbook(`logbook ${book}: ${error.message}`, { cause: error })
  }
}

class CodecFlowLog implements FlowLog {
  readonly flow: FlowDetail
  readonly #inner: FlowLog
  readonly #place: FlowPlace
  readonly #recordCodec: RecordCodec

  constructor(inner: FlowLog, { flow, place, sealing }: { flow: FlowDetail; place: FlowPlace; sealing: RecordCodec }) {
    this.flow = flow
    this.#inner = inner
    this.#place = place
    this.#recordCodec = sealing
  }

  write(transition: Transition): Promise<void> {
    return attempt(() => {
      const { atoms } = transition
      if (!atoms) return this.#inner.write(transition)
      const sealed = atoms.map((atom) => this.#recordCodec.encode(atom, this.#place))
      return this.#inner.write({ ...transition, atoms: sealed })
    })
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
