/** The reports of a task while it runs: a message beside its progress, and a checkpoint. The limits are the same wherever it runs. */
import { encode, unstorableError } from '../../core/codec.ts'
import { PayloadTooLarge } from '../../core/errors.ts'

/** The limit of a message of `ctx.progress`, in UTF-16 units: it is one line of a list. */
const MAX_MESSAGE_LENGTH = 200

/** The limit of an encoded checkpoint. It is written again with each change of its task, and ZooKeeper's records have a limit of 1 MB. */
const MAX_CHECKPOINT_KB = 64

/** Returns the message as it is recorded: a longer one is cut, half characters are replaced. Everything but a text counts as none. */
export function toProgressMessage(message: unknown): string | undefined {
  if (typeof message !== 'string' || message === '') return undefined
  if (message.length <= MAX_MESSAGE_LENGTH) return message.toWellFormed()
  // A character of two units is not cut in half.
  const cut = message.slice(0, MAX_MESSAGE_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')
  return `${cut.toWellFormed()}…`
}

/**
 * Encodes a checkpoint.
 *
 * @param what the name of the checkpoint, such as `the checkpoint of task import`
 * @throws InvalidArgument when it is not plain data; PayloadTooLarge when it has more than 64 KB
 */
export function encodeCheckpoint(value: unknown, what: string): Uint8Array {
  let encoded: Uint8Array
  try {
    encoded = encode(value, 'msgpack')
  } catch (cause) {
    throw unstorableError(what, cause)
  }
  const kilobytes = Math.ceil(encoded.length / 1_024)
  if (kilobytes <= MAX_CHECKPOINT_KB) return encoded
  throw new PayloadTooLarge(
    `${what} has ${kilobytes} KB, more than ${MAX_CHECKPOINT_KB} KB: save a position, and store the data elsewhere`,
  )
}
