/** Encodes users' names as names of files and znodes. */
import { createHash } from 'node:crypto'

/** The maximum length of an encoded name: file systems allow 255 bytes, and temporary names need some of them. */
const MAX_NAME_BYTES = 180

/**
 * Encodes a name. The encoding is injective, also where upper and lower case are equal, and contains no dot and no
 * slash. `%` begins an escaped byte of UTF-8 or, before the hash of a name that is too long, the word `long`, which is
 * not a hexadecimal number.
 */
export function encodeName(name: string): string {
  let encoded = ''
  for (const byte of Buffer.from(name)) {
    const character = String.fromCharCode(byte)
    encoded += /[0-9a-z_-]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
  }
  return encoded.length <= MAX_NAME_BYTES ? encoded : `%long-${sha256(name)}`
}

/**
 * Returns the shard of a name, two hexadecimal digits: folders with many thousands of entries are slow to list, and 256
 * folders hold many more.
 */
export function shardName(name: string): string {
  return sha256(name).slice(0, 2)
}

export function isShardName(name: string): boolean {
  return /^[0-9a-f]{2}$/.test(name)
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
