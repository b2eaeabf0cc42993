/**
 * Lists books shard by shard, and within one by name: in this order a page can continue without reading the books
 * before it.
 */
import { NoAuth, op, type ZooKeeper } from '../../zookeeper/index.ts'
import { asksForFlows, type BookQuery, ignoreUnreadable, matchesBookQuery, matchesFlowQuery } from '../book-query.ts'
import type { BookDetail } from '../models.ts'
import { encodeName, isShardName, shardName } from '../names.ts'
import type { LogbookLayout } from './layout.ts'
import { missingAsUndefined, readFlows } from './reader.ts'
import { decodeBook } from './records.ts'
import { finishRemoval } from './removal.ts'

const BOOKS_PER_REQUEST = 100

export interface ListBooksOptions {
  readonly layout: LogbookLayout
  readonly query: BookQuery
  readonly storing: <T>(work: () => Promise<T>) => Promise<T>
}

/** Lists the books that match. Finishes the removals that it finds. */
export async function* listBooks(zookeeper: ZooKeeper, listing: ListBooksOptions): AsyncIterable<BookDetail> {
  const { layout, query, storing } = listing
  const { after, limit = Number.POSITIVE_INFINITY } = query
  const first = after === undefined ? '' : shardName(after)
  let count = 0
  const shards = await storing(() => zookeeper.sync(layout.path).then(() => zookeeper.getChildren(layout.path)))
  for (const shard of shards.names.filter((name) => isShardName(name) && name >= first).sort()) {
    const path = `${layout.path}/${shard}`
    const behind = shard === first && after !== undefined ? encodeName(after) : ''
    const names = await storing(async () => (await missingAsUndefined(zookeeper.getChildren(path)))?.names ?? [])
    const books = names.filter((name) => name > behind).sort()
    for (let from = 0; from < books.length; from += BOOKS_PER_REQUEST) {
      const paths = books.slice(from, from + BOOKS_PER_REQUEST).map((name) => `${path}/${name}`)
      for (const book of await storing(() => readMatching(zookeeper, paths, query))) {
        yield book
        count += 1
        if (count >= limit) return
      }
    }
  }
}

async function readMatching(zookeeper: ZooKeeper, paths: readonly string[], query: BookQuery): Promise<BookDetail[]> {
  const { results } = await zookeeper.multiRead(paths.map((path) => op.getData(path)))
  const found: BookDetail[] = []
  for (const [index, path] of paths.entries()) {
    const result = results[index]
    if (!result || result.error) continue
    const book = await ignoreUnreadable(matching(zookeeper, { path, data: result.data, query }))
    if (book) found.push(book)
  }
  return found
}

async function matching(
  zookeeper: ZooKeeper,
  { path, data, query }: { path: string; data: Uint8Array | null; query: BookQuery },
): Promise<BookDetail | undefined> {
  const { book, gone } = decodeBook(data, path)
  if (gone !== undefined) await finishRemoval(zookeeper, path, gone).catch(ignoreForbidden)
  else if (matchesBookQuery(query, book) && (await matchesFlows(zookeeper, { path, book, query }))) return book
  return undefined
}

/** Ignores a missing right: a client that may only read leaves the removal to others. */
function ignoreForbidden(error: unknown): void {
  if (!(error instanceof NoAuth)) throw error
}

async function matchesFlows(
  zookeeper: ZooKeeper,
  { path, book, query }: { path: string; book: BookDetail; query: BookQuery },
): Promise<boolean> {
  return !asksForFlows(query) || matchesFlowQuery(query, book, await readFlows(zookeeper, path))
}
