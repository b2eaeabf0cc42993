/**
 * Limits the memory for reading logbooks. A user who can write to the storage chooses the bytes that are decoded, and
 * 16 KB can be inflated and decoded to a gigabyte of empty objects.
 *
 * A stored byte may become a few bytes of memory, as in usual results. Any further growth draws on an allowance, which
 * all records that are read together share: many records below a limit of their own would add up.
 */
import { decodeWeighed, encode, MAX_MEMORY_PER_BYTE, weigh } from '../core/codec.ts'
import { messageOf, StorageFailure } from '../core/errors.ts'

/**
 * The bytes of memory that each stored byte may take without drawing on the allowance: about the ratio of usual
 * results.
 */
const USUAL_MEMORY_PER_BYTE = 8
/** The allowance of all records that are read together. */
const MAX_GROWTH_BYTES = 256 * 1_024 * 1_024

/** Decodes the records of one logbook, or of one flow. */
export class RecordDecoder {
  #growthBytes = MAX_GROWTH_BYTES

  /**
   * Decodes a record.
   *
   * @param options.storedBytes the size of the record in the storage, where it was inflated since
   * @throws Error when it is not plain data, or takes more memory than is left
   */
  decode(bytes: Uint8Array, { storedBytes = bytes.length }: { readonly storedBytes?: number } = {}): unknown {
    const usual = USUAL_MEMORY_PER_BYTE * storedBytes
    const { value, memory } = decodeWeighed(bytes, 'msgpack', { most: usual + this.#growthBytes })
    this.#growthBytes -= Math.max(0, memory - usual)
    return value
  }
}

/**
 * Encodes a record that {@link RecordDecoder} can decode again.
 *
 * @throws InvalidArgument when it is not plain data; StorageFailure when reading it would take too much memory
 */
export function encodeRecord(record: unknown): Uint8Array {
  const bytes = encode(record, 'msgpack')
  assertReadable(bytes, { storedBytes: bytes.length, what: 'record of a logbook' })
  return bytes
}

/** Checks that an encoded record can be read. @throws StorageFailure when reading it would take too much memory */
export function assertReadable(
  bytes: Uint8Array,
  { storedBytes, what }: { readonly storedBytes: number; readonly what: string },
): void {
  if (bytes.length * MAX_MEMORY_PER_BYTE <= MAX_GROWTH_BYTES) return
  try {
    weigh(bytes, 'msgpack', USUAL_MEMORY_PER_BYTE * storedBytes + MAX_GROWTH_BYTES)
  } catch (cause) {
    const why = messageOf(cause)
    const how = 'return less data, or store large data elsewhere and return its location'
    throw new StorageFailure(`cannot write the ${what}: it ${why}; ${how}`, { cause, retryable: false })
  }
}
