/**
 * The content of the files. Each begins with a record that has the format's number, so that an older release reports a
 * newer format instead of misreading it.
 *
 *     book*.record  {format, book}
 *     <term>.mark   {format, claim}
 *     <term>.log    {format, flow: as it was acquired}, then per transition {at, state?, meta?, atoms?}
 *
 * A file holds records one after the other, each in a frame:
 *
 *     length of the payload (4 bytes, big-endian) | CRC-32 of the payload (4 bytes) | payload (msgpack)
 */
import { crc32 } from 'node:zlib'
import { IncompatibleVersion, messageOf, StorageFailure } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { checkBook, checkFlowWithAtoms, checkTransition, damagedRecordError } from '../checked-records.ts'
import { applyTransitions, toWrittenAtom } from '../flow-record.ts'
import type { BookDetail, FlowDetail } from '../models.ts'
import type { Transition } from '../persistence.ts'
import { encodeRecord, RecordDecoder } from '../record-memory.ts'

const RECORD_FORMAT = 1

export function encodeBook(book: BookDetail): Uint8Array {
  return encodeFrame({ format: RECORD_FORMAT, book })
}

export function encodeMark(claim: string): Uint8Array {
  return encodeFrame({ format: RECORD_FORMAT, claim })
}

export function encodeFlow(flow: FlowDetail): Uint8Array {
  return encodeFrame({ format: RECORD_FORMAT, flow })
}

/** Encodes a transition. @throws InvalidArgument when a result is not plain data */
export function encodeTransition({ state, meta, atoms }: Transition, at: Date): Uint8Array {
  return encodeFrame(defined({ at, state, meta, atoms: atoms?.map(toWrittenAtom) }))
}

/** Decodes a book. @throws IncompatibleVersion @throws StorageFailure when it is damaged */
export function decodeBook(bytes: Buffer, file: string): BookDetail {
  return checkBook(readContent(decodeRecords(bytes, file), { key: 'book', file }), file)
}

/** Decodes a flow. @throws IncompatibleVersion @throws StorageFailure when it is damaged */
export function decodeFlow(bytes: Buffer, file: string): FlowDetail {
  const [first, ...transitions] = decodeRecords(bytes, file)
  const flow = checkFlowWithAtoms(readContent([first], { key: 'flow', file }), file)
  return applyTransitions(
    flow,
    transitions.map((transition) => checkTransition(transition, file)),
  )
}

/**
 * Returns the claim in a mark, or undefined where it is incomplete. Marks are not synced, so a power failure may leave
 * an empty one; it belongs to no claim then, which is right: its process did not survive.
 */
export function decodeMark(bytes: Buffer, file: string): string | undefined {
  const records = decodeRecords(bytes, file)
  return records.length === 0 ? undefined : String(readContent(records, { key: 'claim', file }))
}

/** Decodes the records of a file. @throws StorageFailure for a record with a valid checksum and invalid content */
function decodeRecords(bytes: Buffer, file: string): unknown[] {
  try {
    return decodeFrames(bytes)
  } catch (cause) {
    throw damagedRecordError(file, messageOf(cause), cause)
  }
}

function readContent([first]: readonly unknown[], { key, file }: { key: string; file: string }): unknown {
  const fields: Readonly<Record<string, unknown>> = typeof first === 'object' ? { ...first } : {}
  const { format, [key]: value } = fields
  if (typeof format === 'number' && format > RECORD_FORMAT) {
    const can = `this one reads up to ${RECORD_FORMAT}`
    throw new IncompatibleVersion(`${file} was written by a newer release (format ${format}, ${can}); update jobboard`)
  }
  if (format === RECORD_FORMAT && value !== undefined) return value
  throw new StorageFailure(`${file} is damaged or was not written by jobboard; restore it or remove its folder`)
}

const HEADER_BYTES = 8

/**
 * Encodes a record. @throws InvalidArgument when the record is not plain data; StorageFailure when it could not be read
 * again
 */
export function encodeFrame(record: unknown): Uint8Array {
  const payload = encodeRecord(record)
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + payload.length)
  bytes.writeUInt32BE(payload.length, 0)
  bytes.writeUInt32BE(crc32(payload), 4)
  bytes.set(payload, HEADER_BYTES)
  return bytes
}

/**
 * Returns the records up to the first incomplete one. A writer that died leaves an incomplete record, and after a power
 * failure a file may end in zeros: an empty payload would pass its checksum, so it counts as incomplete.
 *
 * @throws Error for a record that is not plain data, or takes too much memory together with the records before it
 */
export function decodeFrames(bytes: Buffer): unknown[] {
  const records: unknown[] = []
  const decoder = new RecordDecoder()
  for (let at = 0; at + HEADER_BYTES <= bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    const payload = bytes.subarray(at + HEADER_BYTES, at + HEADER_BYTES + length)
    if (length === 0 || payload.length < length || crc32(payload) !== bytes.readUInt32BE(at + 4)) break
    records.push(decoder.decode(payload))
    at += HEADER_BYTES + length
  }
  return records
}
