/** What is in the znodes: msgpack, with the format's number, so that an older release says so instead of misreading it. */
import { encode } from '../../core/codec.ts'
import { IncompatibleVersion, StorageFailure } from '../../core/errors.ts'
import { checkedAtom, checkedBook, checkedFlow, damaged } from '../checked-records.ts'
import type { AtomDetail, BookDetail, FlowDetail } from '../models.ts'
import { RecordDecoder } from '../record-memory.ts'

const FORMAT = 1

export interface FlowRecord {
  readonly flow: Omit<FlowDetail, 'atoms'>
  /** Tells this acquire from every other, forever. */
  readonly term: string
  /** How often this term has written. */
  readonly writes: number
}

export interface BookRecord {
  readonly book: BookDetail
  /** The mark of a removal: nothing may be added to it any more. */
  readonly gone?: string
}

export function rootBytes(): Uint8Array {
  return encode({ format: FORMAT, kind: 'logbooks' }, 'msgpack')
}

export function bookBytes(record: BookRecord): Uint8Array {
  return encode({ format: FORMAT, ...record }, 'msgpack')
}

export function flowBytes(record: FlowRecord): Uint8Array {
  return encode({ format: FORMAT, ...record }, 'msgpack')
}

/** @throws InvalidArgument when a result is no plain data */
export function atomBytes(atom: AtomDetail): Uint8Array {
  return encode({ format: FORMAT, atom }, 'msgpack')
}

export function assertRoot(data: Uint8Array | null, path: string): void {
  content<object>(data, { key: 'kind', path })
}

export function readBook(data: Uint8Array | null, path: string): BookRecord {
  const { book, gone } = content<BookRecord>(data, { key: 'book', path })
  if (gone !== undefined && !isMark(gone)) throw damaged(path, 'gone is no mark of a removal')
  return { book: checkedBook(book, path), ...(gone === undefined ? {} : { gone }) }
}

export function readFlow(data: Uint8Array | null, path: string): FlowRecord {
  const { flow, term, writes } = content<FlowRecord>(data, { key: 'flow', path })
  if (!isMark(term) || !Number.isSafeInteger(writes)) throw damaged(path, 'it names no term, or no writes')
  return { flow: checkedFlow(flow, path), term, writes }
}

/** @param options.decoder one for all atoms that are read together */
export function readAtom(
  data: Uint8Array | null,
  { path, decoder }: { readonly path: string; readonly decoder: RecordDecoder },
): AtomDetail {
  return checkedAtom(content<{ readonly atom: AtomDetail }>(data, { key: 'atom', path, decoder }).atom, path)
}

/**
 * Whether it is a UUID, as terms and marks are. They become part of a path: the client refuses one with other characters before
 * it is sent, and with it the changes of other flows that were to go out together.
 */
function isMark(value: unknown): value is string {
  return typeof value === 'string' && /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.test(value)
}

interface Content {
  /** The field that a record of this kind has. */
  readonly key: string
  readonly path: string
  readonly decoder?: RecordDecoder
}

function content<T extends object>(data: Uint8Array | null, { key, path, decoder = new RecordDecoder() }: Content): T {
  const fields = fieldsOf(data, { key, path, decoder })
  const { format } = fields
  if (typeof format === 'number' && format > FORMAT) {
    const can = `this one reads up to ${FORMAT}`
    throw new IncompatibleVersion(`${path} was written by a newer release (format ${format}, ${can}); update jobboard`)
  }
  if (format === FORMAT && fields[key] !== undefined) return fields as T
  throw new StorageFailure(`${path} was not written by jobboard; choose another path for the logbooks`)
}

function fieldsOf(data: Uint8Array | null, { key, path, decoder }: Required<Content>): Record<string, unknown> {
  try {
    const value = data === null || data.length === 0 ? undefined : decoder.decode(data)
    return typeof value === 'object' ? { ...value } : {}
  } catch (cause) {
    // The root may be a znode of something else, which must not be called damaged: nobody should remove it.
    if (key === 'kind') return {}
    throw damaged(path, cause instanceof Error ? cause.message : String(cause), cause)
  }
}
