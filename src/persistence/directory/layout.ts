/**
 * The files under DIR:
 *
 *     <two hex digits>/<book>/book.record        the book as it was created; the book exists when this file does
 *                            /book.3.record      the book after its third change
 *                            /book.changed       there was a change: `book.record` is not the newest record any more
 *                            /book.<unique>.change   a change that is being prepared (see `book-changes.ts`)
 *                            /<flow>/0.log       a flow that was created before its first run
 *                            /<flow>/7.mark      the mark of run 7, which is to write the flow, with its claim
 *                            /<flow>/7.log       the flow with which run 7 started and every transition since
 *                            /<flow>/7.1.mark    … the same claim acquired it a second time
 *     <two hex digits>/<book>.<unique>.taken   a book that is checked once more before it is removed for its age
 *     <two hex digits>/<book>.<unique>.gone    a destroyed book that is being removed
 *
 * Names that come from users are encoded and then contain no dot; every other name contains one. Therefore, no name of
 * a user can leave DIR, or be taken for another file.
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

/** Returns the path of the book's record after a change; record 0 is created with the book, and stays. */
export function changeRecord(folder: string, change: number): string {
  return change === 0 ? bookRecord(folder) : join(folder, `book.${change}.record`)
}

/** Returns the number of the change that a file of a book's folder contains; undefined for every other file. */
export function parseChangeNumber(name: string): number | undefined {
  const found = /^book(?:\.([1-9]\d*))?\.record$/.exec(name)
  return found ? parseSafeNumber(found[1] ?? '0') : undefined
}

/**
 * Returns the number in a file's name; undefined where it is written in a form that this release does not write (`01`)
 * or is too large to be exact: the name made of the number would be the name of another file.
 */
export function parseSafeNumber(digits: string): number | undefined {
  const number = Number(digits)
  return Number.isSafeInteger(number) && String(number) === digits ? number : undefined
}

/** Returns the path of the file that exists from the first change of a book on. */
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

/** Returns whether a folder's entry has an encoded name: a book in a shard, a flow in a book. */
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

/** Returns the folder of the book that was taken. */
export function toBookFolder(taken: string): string {
  const name = taken.slice(dirname(taken).length + 1)
  return join(dirname(taken), name.slice(0, name.indexOf('.')))
}
