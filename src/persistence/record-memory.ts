/**
 * Bounds the memory that logbooks take when they are read. Whoever can write to the storage chooses what is decoded, and
 * 16 KB that are inflated and decoded can become a gigabyte of empty objects.
 *
 * A byte that is stored may become a few bytes of memory, as it does in usual results. What grows more than that draws on
 * an allowance, one for all records that are read together: many records below a limit of their own would add up.
 */
import { decodeWeighed, encode, MAX_MEMORY_PER_BYTE, weigh } from '../core/codec.ts'
import { StorageFailure } from '../core/errors.ts'

/** How many bytes of memory each stored byte may take without drawing on the allowance: about what usual results take. */
const USUAL_MEMORY_PER_BYTE = 8
/** How much more than that the records that are read together may take. */
const MAX_GROWTH_BYTES = 256 * 1_024 * 1_024

/** Decodes the records of one logbook, or of one flow. */
export class RecordDecoder {
  #growthBytes = MAX_GROWTH_BYTES

  /**
   * Decodes a record.
   *
   * @param options.storedBytes how large the record is in the storage, where it was inflated since
   * @throws Error when it is no plain data, or takes more memory than is left
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
 * @throws InvalidArgument when it is no plain data; StorageFailure when it takes too much memory to be read again
 */
export function encodeRecord(record: unknown): Uint8Array {
  const bytes = encode(record, 'msgpack')
  assertReadable(bytes, { storedBytes: bytes.length, what: 'record of a logbook' })
  return bytes
}

/** @throws StorageFailure when the encoded record takes too much memory to be read again */
export function assertReadable(
  bytes: Uint8Array,
  { storedBytes, what }: { readonly storedBytes: number; readonly what: string },
): void {
  if (bytes.length * MAX_MEMORY_PER_BYTE <= MAX_GROWTH_BYTES) return
  try {
    weigh(bytes, 'msgpack', USUAL_MEMORY_PER_BYTE * storedBytes + MAX_GROWTH_BYTES)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    const how = 'return less, or keep what is large elsewhere and return where it is'
    throw new StorageFailure(`cannot write the ${what}: it ${why}; ${how}`, { cause, retryable: false })
  }
}
