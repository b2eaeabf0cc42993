/** Reads the board: what is on it, what its postings say, who holds what, what is in the trash. Changes nothing. */
import type { Encoding } from '../../../../core/codec.ts'
import { asError, InvalidPosting, NotConnected } from '../../../../core/errors.ts'
import {
  NoAuth,
  NoNode,
  op,
  type ReadData,
  type ReadResult,
  SessionExpired,
  type Stat,
  toTenantError,
  type ZooKeeper,
  type ZooKeeperDriver,
  ZooKeeperError,
} from '../../../../zookeeper/index.ts'
import type { BoardListing, Cancellation, StoredJob, TrashedEntry, UnreadableJob } from '../../../backend.ts'
import { decodeSizedPosting } from '../taskflow/shared-posting.ts'
import { compareDigits, isJob, isNumberedByServer, type Layout, toLockedJob } from './layout.ts'
import { decodeCancellation, decodeKey, decodeLock, decodeTrash, decodeTrashMark } from './records.ts'
import type { ChildCounts } from './scan.ts'

/**
 * How many znodes are asked for in one request. As servers ship a znode has 1 MiB, and a client closes the connection over an
 * answer of more than 64 MiB: a batch of this many is half as large.
 */
const MAX_BATCH_ITEMS = 32
/** How many requests for znodes are under way at once: together they may be that many times as large. */
const MAX_CONCURRENT_BATCHES = 8
/** How many Stats are asked for at once. */
const STATS_AT_ONCE = 1_000
/** Entries of the trash are never written again. */
const TRASH_REVISION = 0

/** The listing, and what the Stats of its folders counted of children made and taken away when it was made. */
export type CountedListing = BoardListing & { readonly counts: ChildCounts }

/** Many znodes at once, in as few requests as there is a way; undefined where there is none. */
export type ReadMany = (paths: readonly string[]) => Promise<NodeReadResult[]>

/** Undefined where there is no znode. One that is not for us, a stranger's say, must not hide the others. */
export type NodeReadResult = ReadData | NoAuth | undefined

/** A job whose posting is marked as trashed, and has not been moved into the trash yet. */
export interface MarkedJob {
  readonly id: string
  readonly revision: number
  /** The entry that belongs into the trash. */
  readonly bytes: Uint8Array
}

/** An entry of the trash that has not been read. */
export interface TrashIndexEntry {
  readonly id: string
  /** Where it may be: the last of these that is there counts. */
  readonly paths: readonly string[]
  readonly bytes: number
}

export interface ZooKeeperReaderOptions {
  readonly zookeeper: Pick<ZooKeeperDriver, 'exists' | 'getChildren' | 'getData'>
  readonly layout: Layout
  readonly encoding: Encoding
  readonly readMany: ReadMany
  /** Called before the answer, in which such a posting is gone. */
  readonly onMarked: (marked: MarkedJob) => void
}

export class BoardReader {
  readonly #options: ZooKeeperReaderOptions
  readonly #zookeeper: ZooKeeperReaderOptions['zookeeper']
  readonly #layout: Layout
  readonly #encoding: Encoding

  constructor(options: ZooKeeperReaderOptions) {
    this.#options = options
    this.#zookeeper = options.zookeeper
    this.#layout = options.layout
    this.#encoding = options.encoding
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    const nodes = await this.#options.readMany(ids.map((id) => this.#layout.posting(id)))
    return nodes.map((node, index) => node && this.#toReadResult(ids[index] ?? '', node))
  }

  async owner(id: string): Promise<string | undefined> {
    const lock = await missingAsUndefined(this.#zookeeper.getData(this.#layout.lock(id)))
    return lock && (decodeLock(lock.data, this.#encoding) ?? 'an unknown owner')
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    const request = await missingAsUndefined(this.#zookeeper.getData(this.#layout.cancel(id)))
    return request && decodeCancellation(request.data, this.#encoding)
  }

  /** Whose the key is, and its revision. The uuid is undefined where the key does not say. */
  async key(name: string): Promise<{ readonly uuid: string | undefined; readonly revision: number } | undefined> {
    const key = await missingAsUndefined(this.#zookeeper.getData(this.#layout.key(name)))
    return key && { uuid: decodeKey(key.data, this.#encoding), revision: key.stat.version }
  }

  /**
   * Returns which entries the trash has and how large they are, in the order in which they were trashed.
   *
   * @param marked jobs that lie on the board still, with the mark
   */
  async trashIndex(marked: Iterable<string> = []): Promise<TrashIndexEntry[]> {
    const layout = this.#layout
    const ids = [...marked]
    // Those first: one that is moved meanwhile is found in both places, rather than in none.
    const onBoard = await this.#stats(ids.map((id) => layout.posting(id)))
    const moved = (await this.#zookeeper.getChildren(layout.trashFolder)).names.filter(isJob)
    const inTrash = await this.#stats(moved.map((id) => layout.trash(id)))
    const there = new Map<string, { readonly stat: Stat; readonly paths: readonly string[] }>()
    ids.forEach((id, index) => {
      const stat = onBoard[index]
      if (stat) there.set(id, { stat, paths: [layout.posting(id), layout.trash(id)] })
    })
    moved.forEach((id, index) => {
      const stat = inTrash[index]
      if (stat) there.set(id, { stat, paths: [layout.trash(id)] })
    })
    return [...there]
      .sort(([, { stat: a }], [, { stat: b }]) => (a.mzxid < b.mzxid ? -1 : a.mzxid > b.mzxid ? 1 : 0))
      .map(([id, { stat, paths }]) => ({ id, paths, bytes: stat.dataLength }))
  }

  /** Returns these entries, as far as they are there still; one that cannot be read as the error that says so. */
  async trashPage(page: readonly TrashIndexEntry[]): Promise<(TrashedEntry | Error)[]> {
    const nodes = await this.#options.readMany(page.flatMap(({ paths }) => paths))
    let read = 0
    return page.flatMap(({ id, paths }) => {
      const found = nodes.slice(read, read + paths.length)
      read += paths.length
      const node = found.findLast((each) => each !== undefined && !(each instanceof NoAuth)) ?? found.at(-1)
      if (!node || node instanceof NoAuth) return node ?? []
      return this.#toTrashedEntry({ id, revision: TRASH_REVISION }, node.data)
    })
  }

  /** Without the contents: an entry of the trash may have a megabyte. */
  async #stats(paths: readonly string[]): Promise<(Stat | undefined)[]> {
    const stats: (Stat | undefined)[] = []
    for (let from = 0; from < paths.length; from += STATS_AT_ONCE) {
      const some = paths.slice(from, from + STATS_AT_ONCE)
      stats.push(...(await Promise.all(some.map((path) => this.#zookeeper.exists(path)))))
    }
    return stats
  }

  /** Returns those of the ids that are in the trash; without ids, asks for nothing. */
  async readTrashedIds(ids: readonly string[]): Promise<string[]> {
    if (ids.length === 0) return []
    const found = await this.#options.readMany(ids.map((id) => this.#layout.trash(id)))
    return ids.filter((_, index) => found[index] !== undefined)
  }

  /** Returns the trash entry of a job, also of one that is marked and has not been moved yet. */
  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    const [marked, moved] = await this.#options.readMany([this.#layout.posting(id), this.#layout.trash(id)])
    const node = moved ?? marked
    if (!node || node instanceof NoAuth) return undefined
    const entry = this.#toTrashedEntry({ id, revision: TRASH_REVISION }, node.data)
    return entry instanceof Error ? undefined : entry
  }

  /** Whether the job is in the trash. */
  async isTrashed(id: string): Promise<boolean> {
    return (await missingAsUndefined(this.#zookeeper.getData(this.#layout.trash(id)))) !== undefined
  }

  /**
   * The postings that a transaction made under numbers of ZooKeeper's, by uuid. Such ids grow with transactions, so they
   * are near the end; numbers that posters made go by their clocks, and are passed over.
   */
  async readPostedIn(zxid: bigint): Promise<ReadonlyMap<string, string>> {
    const { names } = await this.#zookeeper.getChildren(this.#layout.path)
    const ids = names.filter(isNumberedByServer).sort((a, b) => compareDigits(b, a))
    const posted = new Map<string, string>()
    for (let start = 0; start < ids.length; start += MAX_BATCH_ITEMS) {
      const batch = ids.slice(start, start + MAX_BATCH_ITEMS)
      const found = (await this.read(batch)).filter((stored) => stored !== undefined && 'posting' in stored)
      for (const { id, order, posting } of found) if (order === zxid) posted.set(posting.uuid, id)
      if (found.some(({ order }) => order < zxid)) break
    }
    return posted
  }

  #toReadResult(id: string, node: ReadData | NoAuth): StoredJob | UnreadableJob | undefined {
    if (!(node instanceof NoAuth)) return this.#toStoredJob(id, node)
    const what = `${this.#layout.posting(id)} has an ACL that is not the board's and keeps this client out`
    return { id, error: new InvalidPosting(`${what}; it is not claimed here, give it the board's`, { cause: node }) }
  }

  #toStoredJob(
    id: string,
    { data, stat }: { data: Uint8Array | null; stat: Stat },
  ): StoredJob | UnreadableJob | undefined {
    const { czxid: order, version: revision, ctime: postedAt, mtime: writtenAt } = stat
    const encoded = data ?? new Uint8Array()
    try {
      return { id, ...decodeSizedPosting(encoded, this.#encoding), revision, order, postedAt, writtenAt }
    } catch (cause) {
      if (decodeTrashMark(id, encoded, this.#encoding)) {
        this.#options.onMarked({ id, revision, bytes: encoded })
        return undefined
      }
      // Whatever was thrown: an error that left here would hide every posting that was asked for with this one.
      const what = `${this.#layout.posting(id)} ${cause instanceof Error ? cause.message : String(cause)}`
      const error = new InvalidPosting(`${what}; it is not claimed here, remove or repair it`, { cause })
      return { id, error, bytes: encoded.length }
    }
  }

  #toTrashedEntry(at: { id: string; revision: number }, data: Uint8Array | null): TrashedEntry | Error {
    try {
      return decodeTrash(at, data, this.#encoding)
    } catch (error) {
      return asError(error)
    }
  }
}

/** One request: names and counts are of one and the same moment. */
export async function listBoard(
  zookeeper: ZooKeeper,
  { path, trashFolder, cancelFolder }: Layout,
): Promise<CountedListing> {
  const { results } = await zookeeper.multiRead([
    op.getChildren(trashFolder),
    op.getChildren(cancelFolder),
    op.getData(cancelFolder),
    op.getChildren(path),
    op.getData(path),
  ])
  const [trash, cancel, cancelFolderItself, board, boardItself] = results
  if (board.error) throw board.error
  const claimed = board.names.flatMap((name) => toLockedJob(name) ?? [])
  return {
    jobs: board.names.filter(isJob),
    claimed: new Set(claimed),
    trashed: new Set(trash.names),
    cancelled: new Set(cancel.names),
    counts: { jobs: boardItself.stat?.cversion ?? 0, cancellations: cancelFolderItself.stat?.cversion ?? 0 },
  }
}

/**
 * Returns a reader that sends one request for every so many znodes. Servers may be configured to keep larger ones: after an
 * answer that was too large for this client the next requests are for half as many, or the same answer would break each
 * connection for ever.
 */
export function batchedReader(zookeeper: Pick<ZooKeeper, 'multiRead'>): ReadMany {
  let size = MAX_BATCH_ITEMS
  const readBatch = async (paths: readonly string[]) => {
    try {
      const { results } = await zookeeper.multiRead(paths.map((path) => op.getData(path)))
      return results.map(toNodeReadResult)
    } catch (error) {
      if (isReplyTooLarge(error)) size = Math.max(1, Math.min(size, Math.floor(paths.length / 2)))
      throw error
    }
  }
  return async (paths) => {
    const found: NodeReadResult[] = []
    while (found.length < paths.length) {
      const batches: (readonly string[])[] = []
      for (let from = found.length; from < paths.length && batches.length < MAX_CONCURRENT_BATCHES; from += size)
        batches.push(paths.slice(from, from + size))
      for (const batch of await Promise.all(batches.map(readBatch))) found.push(...batch)
    }
    return found
  }
}

/** Whether the connection was closed because of an answer that this client does not take; the class is the client's own. */
function isReplyTooLarge(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (at.name === 'MalformedBytes') return true
  return false
}

/** One that is not for us, a stranger's say, is an answer among others. */
export function deniedAsValue<T>(asked: Promise<T>): Promise<T | NoAuth> {
  return asked.catch((error: unknown) => {
    if (error instanceof NoAuth) return error
    throw error
  })
}

function toNodeReadResult(reading: ReadResult<ReadData>): NodeReadResult {
  if (!reading.error) return reading
  if (reading.error instanceof NoNode) return undefined
  if (reading.error instanceof NoAuth) return reading.error
  throw reading.error
}

/** What was asked of a znode; undefined where there is none. */
export async function missingAsUndefined<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof NoNode) return undefined
    throw error
  }
}

/** For what changes nothing on the queue: whatever the connection did to it, asking again is right. */
export async function translateErrors<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof ZooKeeperError)) throw error
    // A server that has just ended the session says so in answers, before it hangs up.
    if (error.outcome === 'refused' && !(error instanceof SessionExpired)) throw toTenantError('board', what, error)
    throw new NotConnected(`${what}: ${error.message}`, { cause: error })
  }
}
