/** Data of a znode: bytes or null. */
import { InvalidArgument } from '../../core/errors.ts'

/**
 * Checks data, for callers that do not use the compiler: a text would be stored as that many zeros.
 *
 * @param data undefined means null
 * @throws InvalidArgument unless it is bytes, null or undefined
 */
export function checkData(data: Uint8Array | null | undefined): Uint8Array | null {
  if (data === undefined || data === null) return null
  if (data instanceof Uint8Array) return data
  throw new InvalidArgument(
    `data of a znode must be bytes or null, got a ${typeof data}; use Buffer.from to convert a text`,
  )
}
