/** Creates, reads, lists and removes books as folders. */
import { randomUUID } from 'node:crypto'
import { readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { retry } from '../../core/async/retry.ts'
import { NotFound } from '../../core/errors.ts'
import {
  asksForFlows,
  type BookQuery,
  ignoreUnreadable,
  isUnchanged,
  matchesBookQuery,
  matchesFlowQuery,
} from '../book-query.ts'
import type { BookDetail, FlowDetail, LogBook, Meta } from '../models.ts'
import { encodeName, isShardName, shardName } from '../names.ts'
import type { BookRequest } from '../persistence.ts'
import { addRecord, readNewestRecord } from './book-changes.ts'
import { createFolder, exists, missingAsUndefined, publish, syncFolders, toErrno, translateErrors } from './files.ts'
import {
  bookFolder,
  bookRecord,
  goneName,
  isEncodedName,
  isGone,
  isTaken,
  shardFolder,
  takenName,
  toBookFolder,
} from './layout.ts'
import { readNewestFlow } from './read-flow.ts'
import { encodeBook } from './records.ts'

/**
 * Creates an empty book unless it exists; resolves to whether it was created. It is durable once the folders of {@link
 * listFolders} are synced: one fdatasync here, three syncs there.
 */
export async function makeBook(root: string, book: BookRequest): Promise<boolean> {
  const { uuid, name, meta = {} } = book
  const folder = bookFolder(root, uuid)
  if (await exists(bookRecord(folder))) return false
  const at = new Date()
  const bytes = encodeBook({ uuid, name, meta, createdAt: at, updatedAt: at })
  await createFolder(shardFolder(root, uuid))
  await createFolder(folder)
  const record = await publish(bookRecord(folder), bytes, { durable: true })
  await record?.close()
  return record !== undefined
}

/**
 * Changes keys of a book's meta. Concurrent changes are applied one after the other, each to the result of the previous
 * one.
 *
 * @throws NotFound
 */
export async function changeBook(root: string, uuid: string, meta: Meta): Promise<void> {
  const changed = (detail: BookDetail) => ({ ...detail, meta: { ...detail.meta, ...meta }, updatedAt: new Date() })
  if (!(await addRecord(bookFolder(root, uuid), changed))) throw bookNotFoundError(uuid)
}

/** Returns the folders whose entries lead to a book, from its own up. */
export function listFolders(root: string, bookUuid: string): [string, string, string] {
  return [bookFolder(root, bookUuid), shardFolder(root, bookUuid), root]
}

/** Reads a book with its flows. @throws NotFound */
export async function loadBook(root: string, uuid: string): Promise<LogBook> {
  return loadFrom(bookFolder(root, uuid), uuid)
}

async function loadFrom(folder: string, uuid: string): Promise<LogBook> {
  const detail = await readDetail(folder)
  const flows = await readFlows(folder)
  // A book that was destroyed during the read must not be returned with fewer flows.
  if (!detail || !(await exists(bookRecord(folder)))) throw bookNotFoundError(uuid)
  flows.sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.uuid < b.uuid ? -1 : 1))
  return { ...detail, flows }
}

/**
 * Lists books shard by shard, and within one by name: in this order a page can continue without reading the books
 * before it.
 */
export async function* listBooks(root: string, query: BookQuery): AsyncIterable<BookDetail> {
  const { after, limit = Number.POSITIVE_INFINITY } = query
  const first = after === undefined ? '' : shardName(after)
  let count = 0
  for (const shard of (await readdir(root)).sort()) {
    if (!isShardName(shard) || shard < first) continue
    const behind = shard === first && after !== undefined ? encodeName(after) : ''
    for (const name of (await readdir(join(root, shard))).sort()) {
      if (!isEncodedName(name) || name <= behind) continue
      const folder = join(root, shard, name)
      const detail = await ignoreUnreadable(translateErrors(`read ${folder}`, () => readMatching(folder, query)))
      if (!detail) continue
      yield detail
      count += 1
      if (count >= limit) return
    }
  }
}

async function readMatching(folder: string, query: BookQuery): Promise<BookDetail | undefined> {
  const detail = await readDetail(folder)
  if (!detail || !matchesBookQuery(query, detail)) return undefined
  return !asksForFlows(query) || matchesFlowQuery(query, detail, await readFlows(folder)) ? detail : undefined
}

/**
 * Moves the book away in one step, then deletes its files, and the files of earlier removals whose process died.
 *
 * @returns false when something in it has changed after `unchangedSince`
 * @throws NotFound
 */
export async function removeBook(
  root: string,
  uuid: string,
  { unchangedSince }: { unchangedSince?: Date },
): Promise<boolean> {
  const folder = bookFolder(root, uuid)
  const shard = dirname(folder)
  const gone = goneName(folder, randomUUID())
  if (unchangedSince) {
    if (!(await takeUnchanged(root, { uuid, unchangedSince, gone }))) return false
  } else if (!(await exists(bookRecord(folder))) || !(await tryMove(folder, gone))) throw bookNotFoundError(uuid)
  await syncFolders([shard])
  const names = await readdir(shard)
  for (const name of names.filter(isGone)) await removeFolder(join(shard, name))
  // A book with a third name belongs to a removal whose process died, or is slow and will find the book put back.
  for (const name of names.filter(isTaken)) await putBack(join(shard, name))
  return true
}

/** The number of times that the deletion of a folder is tried while runs create files in it. */
const MAX_REMOVALS = 10

/**
 * Deletes a folder. A run that still has a folder of the book open can create a file between the listing of this folder
 * and its deletion, which then fails with ENOTEMPTY: it is tried again. The run soon notices that its folder was moved,
 * and stops: see `assertInPlace` of {@link inFolder}. The option `maxRetries` of `rm` would count for each level of
 * folders, and for errors that stay: one file on another device would take more than a minute.
 */
function removeFolder(path: string): Promise<void> {
  return retry(() => rm(path, { recursive: true, force: true }), {
    ...{ firstPauseMs: 10, maxPauseMs: 100, jitter: 'none' },
    isRetryable: (error, attempt) => toErrno(error) === 'ENOTEMPTY' && attempt < MAX_REMOVALS,
  })
}

/**
 * Moves a book to `gone` if nothing in it has changed. A change that was acknowledged between the check and the move
 * would be lost. Therefore, the book is moved to a third name first, checked once more, and put back where it has
 * changed. Meanwhile it is not found, and a run that writes to it is refused.
 *
 * @throws NotFound
 */
async function takeUnchanged(
  root: string,
  { uuid, unchangedSince, gone }: { uuid: string; unchangedSince: Date; gone: string },
): Promise<boolean> {
  const folder = bookFolder(root, uuid)
  const isOld = async (of: string) => {
    const { flows, ...book } = await loadFrom(of, uuid)
    return isUnchanged(unchangedSince, book, flows)
  }
  if (!(await isOld(folder))) return false
  const taken = takenName(folder, randomUUID())
  if (!(await tryMove(folder, taken))) throw bookNotFoundError(uuid)
  try {
    // The book is missing here when another removal has put it back, because it took this process for dead.
    if ((await isOld(taken)) && (await tryMove(taken, gone))) return true
  } catch (error) {
    await putBack(taken)
    if (error instanceof NotFound) return false
    throw error
  }
  await putBack(taken)
  return false
}

async function tryMove(from: string, to: string): Promise<boolean> {
  return (await missingAsUndefined(rename(from, to).then(() => true))) ?? false
}

/** Gives a book its name again, unless it was created again meanwhile. */
async function putBack(taken: string): Promise<void> {
  const shard = dirname(taken)
  try {
    await missingAsUndefined(syncFolders([taken]))
    if (await tryMove(taken, toBookFolder(taken))) await syncFolders([shard])
  } catch (error) {
    if (!RECREATED_CODES.has(toErrno(error) ?? '')) throw error
    await tryMove(taken, goneName(toBookFolder(taken), randomUUID()))
  }
}

const RECREATED_CODES: ReadonlySet<string> = new Set(['ENOTEMPTY', 'EEXIST'])

async function readFlows(folder: string): Promise<FlowDetail[]> {
  const flows: FlowDetail[] = []
  for (const name of (await missingAsUndefined(readdir(folder))) ?? []) {
    const flow = isEncodedName(name) ? await missingAsUndefined(readNewestFlow(join(folder, name))) : undefined
    if (flow) flows.push(flow)
  }
  return flows
}

async function readDetail(folder: string): Promise<BookDetail | undefined> {
  return (await readNewestRecord(folder))?.detail
}

function bookNotFoundError(uuid: string): NotFound {
  return new NotFound(`there is no logbook ${uuid}`)
}
