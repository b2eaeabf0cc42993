/** Reads the board: its jobs, their postings, who owns what, and the trash. Changes nothing. */
import { asError, InvalidPosting, isError, messageOf, NotConnected } from '../../../../core/errors.ts'
import {
  type GetDataOp,
  NoAuth,
  NoNode,
  op,
  type ReadData,
  type ReadResult,
  SessionExpired,
  type Stat,
  toTenantError,
  type ZooKeeper,
  ZooKeeperError,
} from '../../../../zookeeper/index.ts'
import type {
  BoardListing,
  Cancellation,
  StoredJob,
  TrashedEntry,
  UnclaimedJobs,
  UnreadableJob,
} from '../../../contract/index.ts'
import { findByUuid, type TrashArrivals, TrashIndex } from '../../trash-index.ts'
import { pagesOf } from '../../trash-pages.ts'
import type { BoardKind } from './board-kind.ts'
import { decodeCancellation, decodeLock } from './encoding.ts'
import { compareDigits, isJob, isNumberedByServer, toLockedJob, type ZooKeeperLayout } from './layout.ts'
import type { ChildCounts } from './scan.ts'

/**
 * The number of znodes that one request reads. By default a znode has at most 1 MiB, and a client closes the connection
 * if an answer is larger than 64 MiB: a read of this size is at most half as large.
 */
const MAX_READ_ITEMS = 32
/** The number of concurrent requests for znodes. Their answers together may be this many times as large. */
const MAX_CONCURRENT_BATCHES = 8
/** The number of concurrent requests for Stats. */
const STATS_AT_ONCE = 1_000
/** The revision of every trash entry: entries are never written again. */
const TRASH_REVISION = 0

/** A listing with the child counts of its folders at the same moment. */
export type CountedListing = BoardListing & { readonly counts: ChildCounts }

/**
 * Reads many znodes in as few requests as possible; a missing znode reads as undefined.
 *
 * @param options.isDecoded whether the data are decoded at once: then they are not copied
 */
export type ReadMany = (
  paths: readonly string[],
  options?: { readonly isDecoded: boolean },
) => Promise<NodeReadResult[]>

/**
 * The result for one znode: undefined if it does not exist, NoAuth if this client may not read it. Another client's
 * znode with another ACL must not hide the others.
 */
export type NodeReadResult = ReadData | NoAuth | undefined

/** A trash entry that has not been read. */
export interface TrashIndexEntry {
  readonly id: string
  readonly bytes: number
}

export interface ZooKeeperReaderOptions {
  readonly zookeeper: Pick<ZooKeeper, 'exists' | 'getChildren' | 'getData'>
  readonly layout: ZooKeeperLayout
  readonly kind: BoardKind
  readonly readMany: ReadMany
  /** Called for a posting that has znodes below it: other jobs depend on the job. */
  readonly onDependedOn?: (id: string, count: number) => void
}

export class ZooKeeperReader {
  readonly #options: ZooKeeperReaderOptions
  readonly #zookeeper: ZooKeeperReaderOptions['zookeeper']
  readonly #layout: ZooKeeperLayout
  readonly #kind: BoardKind
  readonly #trashIndex = new TrashIndex({
    arrivedSince: (position) => this.#trashedSince(position),
    readUuids: (ids) => this.#trashedUuids(ids),
  })

  constructor(options: ZooKeeperReaderOptions) {
    this.#options = options
    this.#zookeeper = options.zookeeper
    this.#layout = options.layout
    this.#kind = options.kind
  }

  /** Reads the postings of these jobs; a job that does not exist reads as undefined. */
  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    const nodes = await this.#options.readMany(
      ids.map((id) => this.#layout.posting(id)),
      { isDecoded: true },
    )
    return nodes.map((node, index) => node && this.#toReadResult(ids[index] ?? '', node))
  }

  async owner(id: string): Promise<string | undefined> {
    const lock = await missingAsUndefined(this.#zookeeper.getData(this.#layout.lock(id)))
    return lock && (decodeLock(lock.data, this.#kind.encoding) ?? 'an unknown owner')
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    const request = await missingAsUndefined(this.#zookeeper.getData(this.#layout.cancel(id)))
    return request && decodeCancellation(request.data, this.#kind.encoding)
  }

  /** Returns the newest entry with this uuid. */
  findTrashed(uuid: string): Promise<TrashedEntry | undefined> {
    return findByUuid(uuid, { index: this.#trashIndex, read: (id) => this.trashedEntry(id) })
  }

  /** Returns all ids of the trash if one was created or deleted since: the Stat of the folder has the number of the last such transaction. */
  async #trashedSince(position: string | undefined): Promise<TrashArrivals> {
    const stat = await this.#zookeeper.exists(this.#layout.trashFolder)
    const current = String(stat?.pzxid)
    if (current === position || !stat) return { ids: [], position: current, count: stat?.numChildren ?? 0 }
    const { names, stat: listed } = await this.#zookeeper.getChildren(this.#layout.trashFolder)
    return { ids: names.filter(isJob), position: String(listed.pzxid), count: names.length }
  }

  async #trashedUuids(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const stats = await this.#stats(ids.map((id) => this.#layout.trash(id)))
    const entries = ids.flatMap((id, index) => {
      const bytes = stats[index]?.dataLength
      return bytes === undefined ? [] : [{ id, bytes }]
    })
    const uuids = new Map<string, string>()
    for (const page of pagesOf(entries))
      for (const entry of await this.trashPage(page)) if (!isError(entry)) uuids.set(entry.id, entry.posting.uuid)
    return uuids
  }

  /** Returns the entries of the trash with their sizes, in the order in which they were trashed. */
  async trashIndex(): Promise<TrashIndexEntry[]> {
    const { names } = await this.#zookeeper.getChildren(this.#layout.trashFolder)
    const ids = names.filter(isJob)
    const stats = await this.#stats(ids.map((id) => this.#layout.trash(id)))
    return ids
      .flatMap((id, index) => {
        const stat = stats[index]
        return stat ? [{ id, stat }] : []
      })
      .sort(({ stat: a }, { stat: b }) => (a.mzxid < b.mzxid ? -1 : a.mzxid > b.mzxid ? 1 : 0))
      .map(({ id, stat }) => ({ id, bytes: stat.dataLength }))
  }

  /** Returns the entries that still exist. An entry that cannot be read is returned as the error. */
  async trashPage(page: readonly TrashIndexEntry[]): Promise<(TrashedEntry | Error)[]> {
    const nodes = await this.#options.readMany(page.map(({ id }) => this.#layout.trash(id)))
    return page.flatMap(({ id }, index) => {
      const node = nodes[index]
      if (!node || node instanceof NoAuth) return node ?? []
      return this.#toTrashedEntry({ id, revision: TRASH_REVISION }, node.data)
    })
  }

  /** Reads Stats only, without contents: a trash entry may have a megabyte. */
  async #stats(paths: readonly string[]): Promise<(Stat | undefined)[]> {
    const stats: (Stat | undefined)[] = []
    for (let from = 0; from < paths.length; from += STATS_AT_ONCE) {
      const some = paths.slice(from, from + STATS_AT_ONCE)
      stats.push(...(await Promise.all(some.map((path) => this.#zookeeper.exists(path)))))
    }
    return stats
  }

  /** Returns the ids that are in the trash. Sends no request for an empty list. */
  async readTrashedIds(ids: readonly string[]): Promise<string[]> {
    if (ids.length === 0) return []
    const found = await this.#options.readMany(ids.map((id) => this.#layout.trash(id)))
    return ids.filter((_, index) => found[index] !== undefined)
  }

  /** Returns the trash entry of a job. */
  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    const [node] = await this.#options.readMany([this.#layout.trash(id)])
    if (!node || node instanceof NoAuth) return undefined
    const entry = this.#toTrashedEntry({ id, revision: TRASH_REVISION }, node.data)
    return isError(entry) ? undefined : entry
  }

  /** Returns whether the job is in the trash. */
  async isTrashed(id: string): Promise<boolean> {
    return (await missingAsUndefined(this.#zookeeper.getData(this.#layout.trash(id)))) !== undefined
  }

  /**
   * Returns the ids of the postings that a transaction created with ZooKeeper's numbers, by uuid. These numbers grow
   * with the transactions, so the postings are near the end. Numbers created by posters follow the posters' clocks, and
   * are ignored.
   */
  async readPostedIn(zxid: bigint): Promise<ReadonlyMap<string, string>> {
    const { names } = await this.#zookeeper.getChildren(this.#layout.path)
    const ids = names.filter(isNumberedByServer).sort((a, b) => compareDigits(b, a))
    const posted = new Map<string, string>()
    for (let start = 0; start < ids.length; start += MAX_READ_ITEMS) {
      const batch = ids.slice(start, start + MAX_READ_ITEMS)
      const found = (await this.read(batch)).filter((stored) => stored !== undefined && 'posting' in stored)
      for (const { id, order, posting } of found) if (order === zxid) posted.set(posting.uuid, id)
      if (found.some(({ order }) => order < zxid)) break
    }
    return posted
  }

  #toReadResult(id: string, node: ReadData | NoAuth): StoredJob | UnreadableJob | undefined {
    if (!(node instanceof NoAuth)) return this.#toStoredJob(id, node)
    const what = `${this.#layout.posting(id)} has an ACL that is not the board's and this client cannot read it`
    return {
      id,
      error: new InvalidPosting(`${what}; it is not claimed here, set the board's ACL on it`, { cause: node }),
    }
  }

  #toStoredJob(
    id: string,
    { data, stat }: { data: Uint8Array | null; stat: Stat },
  ): StoredJob | UnreadableJob | undefined {
    const { czxid: order, version: revision, ctime: postedAt, mtime: writtenAt } = stat
    const encoded = data ?? new Uint8Array()
    if (stat.numChildren > 0) this.#options.onDependedOn?.(id, stat.numChildren)
    try {
      return { id, ...this.#kind.decodePosting(encoded), revision, order, postedAt, writtenAt }
    } catch (cause) {
      // Any error is caught: if it were thrown from here, it would hide all other postings of the same request.
      const what = `${this.#layout.posting(id)} ${messageOf(cause)}`
      const error = new InvalidPosting(`${what}; it is not claimed here, remove or repair it`, { cause })
      return { id, error, bytes: encoded.length }
    }
  }

  #toTrashedEntry(at: { id: string; revision: number }, data: Uint8Array | null): TrashedEntry | Error {
    try {
      return this.#kind.decodeTrash(at, data)
    } catch (error) {
      return asError(error)
    }
  }
}

/** Lists the board in one request, so names and counts are from the same moment. */
export async function listBoard(
  zookeeper: ZooKeeper,
  { path, trashFolder, cancelFolder }: ZooKeeperLayout,
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

/** Lists the jobs without a lock, the cancel requests, and the jobs that wait for others, in one request. */
export async function listUnclaimed(
  zookeeper: Pick<ZooKeeper, 'multiRead'>,
  { path, cancelFolder, waitsFolder }: ZooKeeperLayout,
): Promise<UnclaimedJobs> {
  const { results } = await zookeeper.multiRead([
    op.getChildren(path),
    op.getChildren(cancelFolder),
    op.getChildren(waitsFolder),
  ])
  const [board, cancel, waits] = results
  if (board.error) throw board.error
  const claimed = new Set(board.names.map(toLockedJob))
  const jobs = board.names.filter((name) => isJob(name) && !claimed.has(name))
  return { jobs, cancelled: new Set(cancel.names), waiting: new Set(waits.error ? [] : waits.names) }
}

/**
 * Returns a reader that reads znodes in batches. Servers may be configured to store larger znodes: after an answer that
 * was too large for this client the following batches have half the size, because the same answer would break every
 * connection.
 */
export function batchedReader(zookeeper: Pick<ZooKeeper, 'multiRead'>): ReadMany {
  let size = MAX_READ_ITEMS
  const readBatch = async (paths: readonly string[], isDecoded: boolean) => {
    const toRead = (path: string): GetDataOp => (isDecoded ? { type: 'getData', path, isView: true } : op.getData(path))
    try {
      const { results } = await zookeeper.multiRead(paths.map(toRead))
      return results.map(toNodeReadResult)
    } catch (error) {
      if (isReplyTooLarge(error)) size = Math.max(1, Math.min(size, Math.floor(paths.length / 2)))
      throw error
    }
  }
  return async (paths, { isDecoded } = { isDecoded: false }) => {
    const found: NodeReadResult[] = []
    while (found.length < paths.length) {
      const batches: (readonly string[])[] = []
      for (let from = found.length; from < paths.length && batches.length < MAX_CONCURRENT_BATCHES; from += size)
        batches.push(paths.slice(from, from + size))
      for (const batch of await Promise.all(batches.map((each) => readBatch(each, isDecoded)))) found.push(...batch)
    }
    return found
  }
}

/**
 * Returns whether the connection was closed because an answer was too large for this client. The error's class is
 * internal to the client.
 */
function isReplyTooLarge(error: unknown): boolean {
  for (let at = error; isError(at); at = at.cause) if (at.name === 'MalformedBytes') return true
  return false
}

function toNodeReadResult(reading: ReadResult<ReadData>): NodeReadResult {
  if (!reading.error) return reading
  if (reading.error instanceof NoNode) return undefined
  if (reading.error instanceof NoAuth) return reading.error
  throw reading.error
}

/** Resolves to the answer, or to undefined if the znode does not exist. */
export async function missingAsUndefined<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    if (error instanceof NoNode) return undefined
    throw error
  }
}

/**
 * Translates the errors of operations that do not change jobs: if the connection fails, it is always safe to try again. An operation that
 * the end of the session has interrupted is tried again once: the client has a new session by then, or waits for one.
 */
export async function translateErrors<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask().catch((error: unknown) => {
      if (error instanceof SessionExpired) return ask()
      throw error
    })
  } catch (error) {
    if (!(error instanceof ZooKeeperError)) throw error
    // A server that has just ended the session answers with SessionExpired before it closes the connection.
    if (error.outcome === 'refused' && !(error instanceof SessionExpired)) throw toTenantError('board', what, error)
    throw new NotConnected(`${what}: ${error.message}`, { cause: error })
  }
}
