/**
 * Where things lie under DIR:
 *
 *     <two hex digits>/<book>/book.record        what the book is; the book is there when this is
 *                            /book.3.record      what it is since its third change
 *                            /book.changed       there was a first change: `book.record` is not the newest any more
 *                            /book.<anything>.change   a change that is being prepared (see `book-changes.ts`)
 *                            /<flow>/0.log       a flow that was made before its first run
 *                            /<flow>/7.mark      run 7 is to write the flow, and the claim it has
 *                            /<flow>/7.log       what run 7 started from and every transition since
 *                            /<flow>/7.1.mark    … the same claim acquired it a second time
 *     <two hex digits>/<book>.<anything>.taken   a book that is looked at once more before it is removed for its age
 *     <two hex digits>/<book>.<anything>.gone    a destroyed book that is being removed
 *
 * Names that come from users are encoded and then hold no dot; every name of ours holds one. So nothing that a user can
 * write leaves DIR, or is taken for something else.
 */
import { dirname, join } from 'node:path'
import { encodeName, shardName } from '../names.ts'

export function shardFolder(root: string, bookUuid: string): string {
  return join(root, shardName(bookUuid))
}

export function bookFolder(root: string, bookUuid: string): string {
  return join(shardFolder(root, bookUuid), encodeName(bookUuid))
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

/** Returns which change a file of a book's folder holds; undefined for every other file. */
export function parseChangeNumber(name: string): number | undefined {
  const found = /^book(?:\.([1-9]\d*))?\.record$/.exec(name)
  return found ? parseSafeNumber(found[1] ?? '0') : undefined
}

/**
 * Returns the number that stands in a file's name; undefined where it is written in a way that this release does not
 * write it (`01`) or is too large to be exact: the name made of the number would be the name of another file.
 */
export function parseSafeNumber(digits: string): number | undefined {
  const number = Number(digits)
  return Number.isSafeInteger(number) && String(number) === digits ? number : undefined
}

/** The file that is there from the first change of a book on. */
export function changedMark(folder: string): string {
  return join(folder, CHANGED_FILE)
}

export const CHANGED_FILE = 'book.changed'

const CHANGE_IN_PREPARATION = /^book\.[^.]+\.change$/

export function preparedChange(folder: string, unique: string): string {
  return join(folder, `book.${unique}.change`)
}

export function isPreparedChange(name: string): boolean {
  return CHANGE_IN_PREPARATION.test(name)
}

/** Whether a folder's entry is named for a user's thing: a book in a shard, a flow in a book. */
export function isEncodedName(name: string): boolean {
  return !name.includes('.')
}

const GONE_SUFFIX = '.gone'

export function goneName(folderOfBook: string, unique: string): string {
  return `${folderOfBook}.${unique}${GONE_SUFFIX}`
}

export function isGone(name: string): boolean {
  return name.endsWith(GONE_SUFFIX)
}

const TAKEN_SUFFIX = '.taken'

export function takenName(folderOfBook: string, unique: string): string {
  return `${folderOfBook}.${unique}${TAKEN_SUFFIX}`
}

export function isTaken(name: string): boolean {
  return name.endsWith(TAKEN_SUFFIX)
}

/** The folder of the book that was taken. */
export function toBookFolder(taken: string): string {
  const name = taken.slice(dirname(taken).length + 1)
  return join(dirname(taken), name.slice(0, name.indexOf('.')))
}
