/** Books as folders: making, reading, listing and removing them. */
import { randomUUID } from 'node:crypto'
import { readdir, rename, rm, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { NotFound } from '../../core/errors.ts'
import { asksForFlows, type BookQuery, bookMatches, flowsMatch, isUnchanged, unlessUnreadable } from '../book-query.ts'
import type { BookDetail, FlowDetail, LogBook, Meta } from '../models.ts'
import { encodeName, isShardName, shardName } from '../names.ts'
import type { BookRequest } from '../persistence.ts'
import { exists, makeFolder, publish, readIfThere, syncFolders, unlessMissing } from './files.ts'
import { bookFolder, bookRecord, changeOf, changeRecord, goneName, isEncodedName, isGone, shardOf } from './layout.ts'
import { readNewestFlow } from './read-flow.ts'
import { bookBytes, readBook } from './records.ts'

/**
 * Makes an empty book unless it is there; resolves to whether it was made. Durable once the folders that
 * {@link foldersOf} names are synced: one fdatasync here, three syncs there.
 */
export async function makeBook(root: string, book: BookRequest): Promise<boolean> {
  const { uuid, name, meta = {} } = book
  const folder = bookFolder(root, uuid)
  if (await exists(bookRecord(folder))) return false
  const at = new Date()
  const bytes = bookBytes({ uuid, name, meta, createdAt: at, updatedAt: at })
  await makeFolder(shardOf(root, uuid))
  await makeFolder(folder)
  const record = await publish(bookRecord(folder), bytes, { durable: true })
  await record?.close()
  return record !== undefined
}

/**
 * Of several who change a book at once each adds to what the one before has written: the next number has one winner.
 *
 * @throws NotFound
 */
export async function changeBook(root: string, uuid: string, meta: Meta): Promise<void> {
  const folder = bookFolder(root, uuid)
  for (;;) {
    const { change, detail } = await readNewestRecord(folder)
    if (!detail) throw notFound(uuid)
    const bytes = bookBytes({ ...detail, meta: { ...detail.meta, ...meta }, updatedAt: new Date() })
    const record = await publish(changeRecord(folder, change + 1), bytes, { durable: true })
    if (!record) continue
    await record.close()
    await syncFolders([folder])
    // The first record is the book's being there.
    if (change > 0) await unlessMissing(unlink(changeRecord(folder, change)))
    return
  }
}

/** The folders whose entries lead to a book, from its own up. */
export function foldersOf(root: string, bookUuid: string): [string, string, string] {
  return [bookFolder(root, bookUuid), shardOf(root, bookUuid), root]
}

/** @throws NotFound */
export async function loadBook(root: string, uuid: string): Promise<LogBook> {
  const folder = bookFolder(root, uuid)
  const detail = await readDetail(folder)
  const flows = await readFlows(folder)
  // A book that was destroyed while it was read is not a book with fewer flows.
  if (!detail || !(await exists(bookRecord(folder)))) throw notFound(uuid)
  flows.sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.uuid < b.uuid ? -1 : 1))
  return { ...detail, flows }
}

/** Shard by shard, and within one by name: an order that a page can go on in without having read what is before. */
export async function* listBooks(root: string, query: BookQuery): AsyncIterable<BookDetail> {
  const { after, limit = Number.POSITIVE_INFINITY } = query
  const first = after === undefined ? '' : shardName(after)
  let given = 0
  for (const shard of (await readdir(root)).sort()) {
    if (!isShardName(shard) || shard < first) continue
    const behind = shard === first && after !== undefined ? encodeName(after) : ''
    for (const name of (await readdir(join(root, shard))).sort()) {
      if (!isEncodedName(name) || name <= behind) continue
      const detail = await unlessUnreadable(readMatching(join(root, shard, name), query))
      if (!detail) continue
      yield detail
      given += 1
      if (given >= limit) return
    }
  }
}

async function readMatching(folder: string, query: BookQuery): Promise<BookDetail | undefined> {
  const detail = await readDetail(folder)
  if (!detail || !bookMatches(query, detail)) return undefined
  return !asksForFlows(query) || flowsMatch(query, detail, await readFlows(folder)) ? detail : undefined
}

/**
 * Takes the book away in one step, then removes it at leisure, with what others left that died over the same.
 *
 * @returns false when something of it has changed after `unchangedSince`
 * @throws NotFound
 */
export async function removeBook(
  root: string,
  uuid: string,
  { unchangedSince }: { unchangedSince?: Date },
): Promise<boolean> {
  const folder = bookFolder(root, uuid)
  if (unchangedSince) {
    const { flows, ...book } = await loadBook(root, uuid)
    if (!isUnchanged(unchangedSince, book, flows)) return false
  }
  const gone = goneName(folder, randomUUID())
  const taken = (await exists(bookRecord(folder))) && (await unlessMissing(rename(folder, gone).then(() => true)))
  if (!taken) throw notFound(uuid)
  const shard = dirname(folder)
  await syncFolders([shard])
  for (const name of (await readdir(shard)).filter(isGone))
    await rm(join(shard, name), { recursive: true, force: true })
  return true
}

async function readFlows(folder: string): Promise<FlowDetail[]> {
  const flows: FlowDetail[] = []
  for (const name of (await unlessMissing(readdir(folder))) ?? []) {
    const flow = isEncodedName(name) ? await unlessMissing(readNewestFlow(join(folder, name))) : undefined
    if (flow) flows.push(flow)
  }
  return flows
}

async function readDetail(folder: string): Promise<BookDetail | undefined> {
  return (await readNewestRecord(folder)).detail
}

/** A record goes when a newer one is there, so one that is gone means: look again. */
async function readNewestRecord(folder: string): Promise<{ change: number; detail?: BookDetail }> {
  for (;;) {
    const names = (await unlessMissing(readdir(folder))) ?? []
    const change = Math.max(...names.map((name) => changeOf(name) ?? -1))
    if (change < 0) return { change }
    const path = changeRecord(folder, change)
    const bytes = await readIfThere(path)
    if (bytes) return { change, detail: readBook(bytes, path) }
  }
}

function notFound(uuid: string): NotFound {
  return new NotFound(`there is no logbook ${uuid}`)
}
