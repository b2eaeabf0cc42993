/**
 * The content of the znodes: msgpack, with the format's number, so that an older release reports a newer format instead
 * of misreading it.
 */
import { encode } from '../../core/codec.ts'
import { IncompatibleVersion, messageOf, StorageFailure } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { checkAtom, checkBook, checkFlow, damagedRecordError } from '../checked-records.ts'
import type { AtomDetail, BookDetail, FlowDetail } from '../models.ts'
import { RecordDecoder } from '../record-memory.ts'

const RECORD_FORMAT = 1

export interface FlowNodeRecord {
  readonly flow: Omit<FlowDetail, 'atoms'>
  /** A unique identifier of this acquire, forever. */
  readonly term: string
  /** The number of writes of this term. */
  readonly writes: number
}

export interface BookNodeRecord {
  readonly book: BookDetail
  /** The mark of a removal: nothing may be added to the book any more. */
  readonly gone?: string
}

export function encodeRoot(): Uint8Array {
  return encode({ format: RECORD_FORMAT, kind: 'logbooks' }, 'msgpack')
}

export function encodeBook(record: BookNodeRecord): Uint8Array {
  return encode({ format: RECORD_FORMAT, ...record }, 'msgpack')
}

export function encodeFlow(record: FlowNodeRecord): Uint8Array {
  return encode({ format: RECORD_FORMAT, ...record }, 'msgpack')
}

/** Encodes an atom. @throws InvalidArgument when a result is not plain data */
export function encodeAtom(atom: AtomDetail): Uint8Array {
  return encode({ format: RECORD_FORMAT, atom }, 'msgpack')
}

export function assertRoot(data: Uint8Array | null, path: string): void {
  readContent<object>(data, { key: 'kind', path })
}

export function decodeBook(data: Uint8Array | null, path: string): BookNodeRecord {
  const { book, gone } = readContent<BookNodeRecord>(data, { key: 'book', path })
  if (gone !== undefined && !isMark(gone)) throw damagedRecordError(path, 'gone is not the mark of a removal')
  return { book: checkBook(book, path), ...defined({ gone }) }
}

export function decodeFlow(data: Uint8Array | null, path: string): FlowNodeRecord {
  const { flow, term, writes } = readContent<FlowNodeRecord>(data, { key: 'flow', path })
  if (!isMark(term) || !Number.isSafeInteger(writes)) throw damagedRecordError(path, 'term or writes is not valid')
  return { flow: checkFlow(flow, path), term, writes }
}

/** Decodes an atom. @param options.decoder one decoder for all atoms that are read together */
export function decodeAtom(
  data: Uint8Array | null,
  { path, decoder }: { readonly path: string; readonly decoder: RecordDecoder },
): AtomDetail {
  return checkAtom(readContent<{ readonly atom: AtomDetail }>(data, { key: 'atom', path, decoder }).atom, path)
}

/**
 * Returns whether it is a UUID, as terms and marks are. They become part of a path: the client refuses a path with
 * other characters before it is sent, together with the changes of other flows in the same group.
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

function readContent<T extends object>(
  data: Uint8Array | null,
  { key, path, decoder = new RecordDecoder() }: Content,
): T {
  const fields = decodeFields(data, { key, path, decoder })
  const { format } = fields
  if (typeof format === 'number' && format > RECORD_FORMAT) {
    const can = `this one reads up to ${RECORD_FORMAT}`
    throw new IncompatibleVersion(`${path} was written by a newer release (format ${format}, ${can}); update jobboard`)
  }
  if (format === RECORD_FORMAT && fields[key] !== undefined) return fields as T
  throw new StorageFailure(`${path} was not written by jobboard; choose another path for the logbooks`)
}

function decodeFields(data: Uint8Array | null, { key, path, decoder }: Required<Content>): Record<string, unknown> {
  try {
    const value = data === null || data.length === 0 ? undefined : decoder.decode(data)
    return typeof value === 'object' ? { ...value } : {}
  } catch (cause) {
    // The root may be a znode of another program, which must not be reported as damaged: it must not be removed.
    if (key === 'kind') return {}
    throw damagedRecordError(path, messageOf(cause), cause)
  }
}
