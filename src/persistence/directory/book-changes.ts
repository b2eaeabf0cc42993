/**
 * The records of a book: reads the newest one, and adds one.
 *
 * Change `n` of a book is the file `book.<n>.record`, which contains the whole book. A change
 *  1. creates an empty file of its own, `book.<unique>.change`;
 *  2. reads the newest record, which is the record of change `n - 1`;
 *  3. writes the new record into its file, syncs it, and links it to `book.<n>.record`, which only one of several can
 *     do. The others begin again with step 1;
 *  4. syncs the folder;
 *  5. lists the folder, removes the `.change` files of all others, and then the records before its own, lowest number
 *     first, one after the other. `book.record` stays: it is the book's existence.
 *
 * **No number is linked twice.** Suppose that `n` was linked, removed, and is then linked by a slow writer. Its file
 * was there when it linked, since a file without a name cannot be linked. The removal of `n` came after all the files
 * that its remover had listed were removed, so the slow writer's file was created after that listing had begun (step
 * 1), and it read the newest record after that (step 2). At that time the remover's own record, with a higher number
 * than `n`, was there: the slow writer could not have come to `n`. Without this rule a change could be acknowledged
 * whose record no reader uses.
 *
 * **The newest record is the newest.** A listing that runs beside a change may show neither the record that is removed
 * nor the record that is added. Therefore, after it read record `n` a reader checks (a) that there is no record `n + 1`,
 * then (b) that record `n` still exists. Records are removed in the order of their numbers, and no number comes back:
 * if (b) holds, record `n + 1` had not been removed before (a), so it had not been there. For `book.record`, which is
 * never removed, (b) is that `book.changed` does not exist, which is created before the first record is removed.
 *
 * **A book that is created again is not changed.** All steps are done in the folder that was opened at the beginning
 * (`inFolder`): where the book was destroyed meanwhile and another created in its place, its records have the same
 * numbers. After step 4 the change checks whether the folder still has its name; where it has not, it begins again with
 * the book that is there. Therefore, a removal for age, which moves the folder before it checks the book once more,
 * sees every acknowledged change.
 *
 * A process that dies leaves its `.change` file to the next change.
 */
import { randomUUID } from 'node:crypto'
import { type FileHandle, link, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { StorageFailure } from '../../core/errors.ts'
import type { BookDetail } from '../models.ts'
import {
  createFile,
  exists,
  inFolder,
  missingAsUndefined,
  type OpenFolder,
  publish,
  readIfPresent,
  syncFolders,
  toErrno,
  writeAll,
} from './files.ts'
import {
  CHANGED_FILE,
  changedMark,
  changeRecord,
  isPreparedChange,
  parseChangeNumber,
  preparedChange,
} from './layout.ts'
import { decodeBook, encodeBook } from './records.ts'

export interface NewestRecord {
  /** The number of the change; 0 for the record that the book was created with. */
  readonly change: number
  readonly detail: BookDetail
}

/**
 * The limit of reads of one number. Each further read requires another change in between, so more than a few mean that
 * the folder is damaged.
 */
const MAX_READ_ATTEMPTS = 20

/**
 * Reads the newest record of the book in this folder; undefined where there is no book.
 *
 * @throws StorageFailure when the record is damaged, or its name is a link to nothing
 */
export async function readNewestRecord(folder: string): Promise<NewestRecord | undefined> {
  let before = -1
  for (let looks = 1; ; looks++) {
    const change = newestChange((await missingAsUndefined(readdir(folder))) ?? [])
    if (change === undefined) return undefined
    if (change !== before) looks = 1
    before = change
    const path = changeRecord(folder, change)
    const bytes = await readIfPresent(path)
    if (bytes && (await isNewest(folder, change))) return { change, detail: decodeBook(bytes, path) }
    if (looks === MAX_READ_ATTEMPTS) throw damagedBookError(path)
  }
}

/** Does the checks (a) and (b) of the proof above, in this order. */
async function isNewest(folder: string, change: number): Promise<boolean> {
  if (await exists(changeRecord(folder, change + 1))) return false
  return change === 0 ? !(await exists(changedMark(folder))) : exists(changeRecord(folder, change))
}

function newestChange(names: readonly string[]): number | undefined {
  return names.reduce<number | undefined>((newest, name) => {
    const change = parseChangeNumber(name)
    return change === undefined || (newest !== undefined && newest > change) ? newest : change
  }, undefined)
}

/**
 * Adds a record to the book in this folder, made of the newest one; false where there is no book. It is durable
 * afterwards.
 */
export async function addRecord(folder: string, changed: (detail: BookDetail) => BookDetail): Promise<boolean> {
  for (;;) {
    const added = await missingAsUndefined(inFolder(folder, (opened) => addRecordIn(opened, changed)))
    if (added === 'lost' || (added === undefined && (await exists(changeRecord(folder, 0))))) continue
    return added === 'added'
  }
}

async function addRecordIn(
  { path: folder, assertInPlace }: OpenFolder,
  changed: (detail: BookDetail) => BookDetail,
): Promise<'added' | 'lost' | 'no-book'> {
  const added = await tryToAdd(folder, changed)
  if (added === 'lost') return added
  if (typeof added === 'number') await makeDurable(folder, added)
  // A book that is being removed may have been checked for the last time; and another book may have its name by now.
  await assertInPlace()
  if (added === 'no-book') return added
  await removeOlder(folder, added)
  return 'added'
}

/** Does steps 1 to 3. @returns the number of the change, or why there is none */
async function tryToAdd(
  folder: string,
  changed: (detail: BookDetail) => BookDetail,
): Promise<number | 'lost' | 'no-book'> {
  const prepared = preparedChange(folder, randomUUID())
  const file = await createFile(prepared)
  try {
    const newest = await readNewestRecord(folder)
    if (!newest) return 'no-book'
    const change = newest.change + 1
    // A larger number would not be parsed as a number.
    if (!Number.isSafeInteger(change)) throw damagedBookError(changeRecord(folder, newest.change))
    await writeRecord(file, encodeBook(changed(newest.detail)))
    await link(prepared, changeRecord(folder, change))
    return change
  } catch (error) {
    if (toErrno(error) === 'EEXIST') return 'lost'
    throw error
  } finally {
    await file.close()
    await missingAsUndefined(unlink(prepared))
  }
}

async function writeRecord(file: FileHandle, bytes: Uint8Array): Promise<void> {
  await writeAll(file, bytes, 0)
  await file.datasync()
}

/** Does step 4. */
async function makeDurable(folder: string, change: number): Promise<void> {
  if (change === 1) await markChanged(folder)
  await syncFolders([folder])
}

async function markChanged(folder: string): Promise<void> {
  const mark = await publish(changedMark(folder), new Uint8Array())
  await mark?.close()
}

/** Does step 5. After the first file that cannot be removed, all later ones are left for the next change. */
async function removeOlder(folder: string, change: number): Promise<void> {
  try {
    const names = await readdir(folder)
    const older = names.map(parseChangeNumber).filter((each) => each !== undefined && each > 0 && each < change)
    if (older.length === 0) return
    if (!names.includes(CHANGED_FILE)) await markChanged(folder)
    for (const name of names.filter(isPreparedChange)) await missingAsUndefined(unlink(join(folder, name)))
    for (const each of older.toSorted((a, b) => Number(a) - Number(b)))
      await missingAsUndefined(unlink(changeRecord(folder, Number(each))))
  } catch {
    // Old records only take space.
  }
}

function damagedBookError(path: string): StorageFailure {
  return new StorageFailure(`${path} is damaged: it is not a valid record; restore it or remove it`)
}
