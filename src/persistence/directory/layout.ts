/**
 * Where things lie under DIR:
 *
 *     <two hex digits>/<book>/book.record        what the book is; the book is there when this is
 *                            /book.3.record      what it is since its third change
 *                            /<flow>/0.log       a flow that was made before its first run
 *                            /<flow>/7.mark      run 7 is to write the flow, and the claim it has
 *                            /<flow>/7.log       what run 7 started from and every transition since
 *                            /<flow>/7.1.mark    … the same claim acquired it a second time
 *     <two hex digits>/<book>.<anything>.gone    a destroyed book that is being removed
 *
 * Names that come from users are encoded and then hold no dot; every name of ours holds one. So nothing that a user can
 * write leaves DIR, or is taken for something else.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'

/** Folders with more entries than some thousands are slow to list; 256 hold tens of thousands of books well. */
export function shardOf(root: string, bookUuid: string): string {
  return join(root, shardName(bookUuid))
}

export function shardName(bookUuid: string): string {
  return sha256(bookUuid).slice(0, 2)
}

export function bookFolder(root: string, bookUuid: string): string {
  return join(shardOf(root, bookUuid), encodeName(bookUuid))
}

export function bookRecord(folder: string): string {
  return join(folder, 'book.record')
}

export function flowFolder(folderOfBook: string, flowUuid: string): string {
  return join(folderOfBook, encodeName(flowUuid))
}

/** What a book is since its `change`th change; the first record is made with the book, and stays. */
export function changeRecord(folder: string, change: number): string {
  return change === 0 ? bookRecord(folder) : join(folder, `book.${change}.record`)
}

/** Which change a file of a book's folder tells of; undefined for every other file. */
export function changeOf(name: string): number | undefined {
  const found = /^book(?:\.(\d+))?\.record$/.exec(name)
  return found ? Number(found[1] ?? 0) : undefined
}

/** Whether a folder's entry is named for a user's thing: a book in a shard, a flow in a book. */
export function isEncodedName(name: string): boolean {
  return !name.includes('.')
}

const GONE = '.gone'

export function goneName(folderOfBook: string, unique: string): string {
  return `${folderOfBook}.${unique}${GONE}`
}

export function isGone(name: string): boolean {
  return name.endsWith(GONE)
}

/** File systems allow 255 bytes, of which temporary names take some. */
const LONGEST_NAME = 180

/**
 * Injective, also where the file system takes upper and lower case for the same. `%` begins an escaped byte of UTF-8 or,
 * before a name that is too long, the word `long`, which is no hexadecimal number.
 */
export function encodeName(name: string): string {
  let encoded = ''
  for (const byte of Buffer.from(name)) {
    const character = String.fromCharCode(byte)
    encoded += /[0-9a-z_-]/.test(character) ? character : `%${byte.toString(16).padStart(2, '0')}`
  }
  return encoded.length <= LONGEST_NAME ? encoded : `%long-${sha256(name)}`
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
