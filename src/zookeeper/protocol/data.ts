/** What a znode holds: bytes, or nothing at all. */
import { InvalidArgument } from '../../core/errors.ts'

/**
 * Without the compiler's help anything can be given; a text would be stored as so many zeros.
 *
 * @param data nothing at all where it is undefined
 * @throws InvalidArgument for what is neither bytes nor nothing
 */
export function checkData(data: Uint8Array | null | undefined): Uint8Array | null {
  if (data === undefined || data === null) return null
  if (data instanceof Uint8Array) return data
  throw new InvalidArgument(`a znode's data are bytes or null, not a ${typeof data}; Buffer.from makes bytes of a text`)
}
