/** Books as folders: making, reading, listing and removing them. */
import { randomUUID } from 'node:crypto'
import { readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { NotFound } from '../../core/errors.ts'
import type { FlowDetail, LogBook, Meta } from '../models.ts'
import { exists, makeFolder, publish, readIfThere, syncFolders, unlessMissing } from './files.ts'
import { bookFolder, bookRecord, goneName, isEncodedName, isGone, shardOf } from './layout.ts'
import { readNewestFlow } from './read-flow.ts'
import { type BookDetail, bookBytes, readBook } from './records.ts'

/**
 * Makes an empty book unless it is there; resolves to whether it was made. Durable once the folders that
 * {@link foldersOf} names are synced: one fdatasync here, three syncs there.
 */
export async function makeBook(root: string, book: { uuid: string; name: string; meta?: Meta }): Promise<boolean> {
  const { uuid, name, meta = {} } = book
  const folder = bookFolder(root, uuid)
  if (await exists(bookRecord(folder))) return false
  const bytes = bookBytes({ uuid, name, meta, createdAt: new Date() })
  await makeFolder(shardOf(root, uuid))
  await makeFolder(folder)
  const record = await publish(bookRecord(folder), bytes, { durable: true })
  await record?.close()
  return record !== undefined
}

/** The folders whose entries lead to a book, from its own up. */
export function foldersOf(root: string, bookUuid: string): [string, string, string] {
  return [bookFolder(root, bookUuid), shardOf(root, bookUuid), root]
}

/** @throws NotFound */
export async function loadBook(root: string, uuid: string): Promise<LogBook> {
  const folder = bookFolder(root, uuid)
  const detail = await readDetail(folder)
  const flows: FlowDetail[] = []
  for (const name of (await unlessMissing(readdir(folder))) ?? []) {
    const flow = isEncodedName(name) ? await unlessMissing(readNewestFlow(join(folder, name))) : undefined
    if (flow) flows.push(flow)
  }
  // A book that was destroyed while it was read is not a book with fewer flows.
  if (!detail || !(await exists(bookRecord(folder)))) throw notFound(uuid)
  flows.sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.uuid < b.uuid ? -1 : 1))
  return { ...detail, flows }
}

export async function* listBooks(root: string): AsyncIterable<BookDetail> {
  for (const shard of await readdir(root)) {
    if (!/^[0-9a-f]{2}$/.test(shard)) continue
    for (const name of await readdir(join(root, shard))) {
      const detail = isEncodedName(name) ? await readDetail(join(root, shard, name)) : undefined
      if (detail) yield detail
    }
  }
}

/**
 * Takes the book away in one step, then removes it at leisure, with what others left that died over the same.
 *
 * @throws NotFound
 */
export async function removeBook(root: string, uuid: string): Promise<void> {
  const folder = bookFolder(root, uuid)
  const gone = goneName(folder, randomUUID())
  const taken = (await exists(bookRecord(folder))) && (await unlessMissing(rename(folder, gone).then(() => true)))
  if (!taken) throw notFound(uuid)
  const shard = dirname(folder)
  await syncFolders([shard])
  for (const name of (await readdir(shard)).filter(isGone))
    await rm(join(shard, name), { recursive: true, force: true })
}

async function readDetail(folder: string): Promise<BookDetail | undefined> {
  const path = bookRecord(folder)
  const bytes = await readIfThere(path)
  return bytes && readBook(bytes, path)
}

function notFound(uuid: string): NotFound {
  return new NotFound(`there is no logbook ${uuid}`)
}
