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
import { join } from 'node:path'
import { encodeName, shardName } from '../names.ts'

export function shardOf(root: string, bookUuid: string): string {
  return join(root, shardName(bookUuid))
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
