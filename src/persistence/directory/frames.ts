/**
 * The framing of records in a file, one after the other:
 *
 *     length of the payload (4 bytes, big-endian) | CRC-32 of the payload (4 bytes) | payload (msgpack)
 */
import { crc32 } from 'node:zlib'
import { encodeRecord, RecordDecoder } from '../record-memory.ts'

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
 * @throws Error for a record that is not plain data, or takes too much memory together with those before it
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
