/** Reads the board: what is on it, what its postings say, who holds what, what is in the trash. Changes nothing. */
import type { Encoding } from '../../core/codec.ts'
import { InvalidPosting, JobboardError, NotConnected } from '../../core/errors.ts'
import {
  NoAuth,
  NoNode,
  op,
  type ReadData,
  type Reading,
  SessionExpired,
  type Stat,
  type ZooKeeper,
  ZooKeeperError,
} from '../../zookeeper/index.ts'
import type { Cancellation, Listing, Stored, TrashedEntry, Unreadable } from '../backend.ts'
import { inBoardsWords } from './access.ts'
import { isJob, isNumberedByServer, type Layout, lockedJob } from './layout.ts'
import { decodeCancellation, decodeKey, decodeLock, decodeTrash } from './records.ts'
import type { Counts } from './scan.ts'
import { readPosting } from './shared-posting.ts'

/** How many znodes are asked for in one request: an answer of that many large postings is still bearable. */
const BATCH = 64

/** The listing, and what the Stats of its folders counted of children made and taken away when it was made. */
export type CountedListing = Listing & { readonly counts: Counts }

export class BoardReader {
  readonly #zookeeper: ZooKeeper
  readonly #layout: Layout
  readonly #encoding: Encoding

  constructor(options: { zookeeper: ZooKeeper; layout: Layout; encoding: Encoding }) {
    this.#zookeeper = options.zookeeper
    this.#layout = options.layout
    this.#encoding = options.encoding
  }

  /** One request: names and counts are of one and the same moment. */
  async list(): Promise<CountedListing> {
    const { path, trashFolder, cancelFolder } = this.#layout
    const { results } = await this.#zookeeper.multiRead([
      op.getChildren(trashFolder),
      op.getChildren(cancelFolder),
      op.getData(cancelFolder),
      op.getChildren(path),
      op.getData(path),
    ])
    const [trash, cancel, cancelFolderItself, board, boardItself] = results
    if (board.error) throw board.error
    const claimed = board.names.flatMap((name) => lockedJob(name) ?? [])
    return {
      jobs: board.names.filter(isJob),
      claimed: new Set(claimed),
      trashed: new Set(trash.names),
      cancelled: new Set(cancel.names),
      counts: { jobs: boardItself.stat?.cversion ?? 0, cancellations: cancelFolderItself.stat?.cversion ?? 0 },
    }
  }

  /** One request for every so many. */
  async read(ids: readonly string[]): Promise<(Stored | Unreadable | undefined)[]> {
    const nodes = await this.#nodes(ids.map((id) => this.#layout.posting(id)))
    return nodes.map((node, index) => node && this.#read(ids[index] ?? '', node))
  }

  async owner(id: string): Promise<string | undefined> {
    const lock = await unlessGone(this.#zookeeper.getData(this.#layout.lock(id)))
    return lock && (decodeLock(lock.data, this.#encoding) ?? 'an unknown owner')
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    const request = await unlessGone(this.#zookeeper.getData(this.#layout.cancel(id)))
    return request && decodeCancellation(request.data, this.#encoding)
  }

  /** Whose the key is, and its revision. The uuid is undefined where the key does not say. */
  async key(name: string): Promise<{ readonly uuid: string | undefined; readonly revision: number } | undefined> {
    const key = await unlessGone(this.#zookeeper.getData(this.#layout.key(name)))
    return key && { uuid: decodeKey(key.data, this.#encoding), revision: key.stat.version }
  }

  /** In the order in which they were trashed; unreadable entries come as the error that says so. */
  async trashed(): Promise<(TrashedEntry | Error)[]> {
    const { names } = await this.#zookeeper.getChildren(this.#layout.trashFolder)
    const ids = names.filter(isJob)
    const nodes = await this.#nodes(ids.map((id) => this.#layout.trash(id)))
    const denied = nodes.filter((node) => node instanceof NoAuth)
    const there = nodes.flatMap((node, index) =>
      node && !(node instanceof NoAuth) ? [{ ...node, id: ids[index] ?? '' }] : [],
    )
    there.sort((a, b) => (a.stat.czxid < b.stat.czxid ? -1 : a.stat.czxid > b.stat.czxid ? 1 : 0))
    return [...denied, ...there.map(({ id, data, stat }) => this.#trashedEntry({ id, revision: stat.version }, data))]
  }

  /** Whether the job is in the trash. */
  async isTrashed(id: string): Promise<boolean> {
    return (await unlessGone(this.#zookeeper.getData(this.#layout.trash(id)))) !== undefined
  }

  /**
   * The postings that a transaction made under numbers of ZooKeeper's, by uuid. Such ids grow with transactions, so they
   * are near the end; numbers that posters made go by their clocks, and are passed over.
   */
  async postedIn(zxid: bigint): Promise<ReadonlyMap<string, string>> {
    const { names } = await this.#zookeeper.getChildren(this.#layout.path)
    const ids = names.filter(isNumberedByServer).sort((a, b) => (a < b ? 1 : -1))
    const posted = new Map<string, string>()
    for (let start = 0; start < ids.length; start += BATCH) {
      const batch = ids.slice(start, start + BATCH)
      const found = (await this.read(batch)).filter((stored) => stored !== undefined && 'posting' in stored)
      for (const { id, order, posting } of found) if (order === zxid) posted.set(posting.uuid, id)
      if (found.some(({ order }) => order < zxid)) break
    }
    return posted
  }

  async #nodes(paths: readonly string[]): Promise<Found[]> {
    const batches = Array.from({ length: Math.ceil(paths.length / BATCH) }, (_, n) =>
      paths.slice(n * BATCH, (n + 1) * BATCH),
    )
    const answers = await Promise.all(
      batches.map((batch) => this.#zookeeper.multiRead(batch.map((path) => op.getData(path)))),
    )
    return answers.flatMap(({ results }) => results.map(foundData))
  }

  #read(id: string, node: ReadData | NoAuth): Stored | Unreadable {
    if (!(node instanceof NoAuth)) return this.#stored(id, node)
    const what = `${this.#layout.posting(id)} has an ACL that is not the board's and keeps this client out`
    return { id, error: new InvalidPosting(`${what}; it is not claimed here, give it the board's`, { cause: node }) }
  }

  #stored(id: string, { data, stat }: { data: Uint8Array | null; stat: Stat }): Stored | Unreadable {
    const { czxid: order, version: revision, ctime: postedAt, mtime: writtenAt } = stat
    const encoded = data ?? new Uint8Array()
    try {
      const posting = readPosting(encoded, this.#encoding)
      return { id, posting, revision, order, postedAt, writtenAt, bytes: encoded.length }
    } catch (cause) {
      if (!(cause instanceof JobboardError)) throw cause
      const what = this.#layout.posting(id)
      return {
        id,
        error: new InvalidPosting(`${what} ${cause.message}; it is not claimed here, remove or repair it`, { cause }),
      }
    }
  }

  #trashedEntry(at: { id: string; revision: number }, data: Uint8Array | null): TrashedEntry | Error {
    try {
      return decodeTrash(at, data, this.#encoding)
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
  }
}

/** Undefined where there is no znode. One that is not for us, a stranger's say, must not hide the others. */
type Found = ReadData | NoAuth | undefined

function foundData(reading: Reading<ReadData>): Found {
  if (!reading.error) return reading
  if (reading.error instanceof NoNode) return undefined
  if (reading.error instanceof NoAuth) return reading.error
  throw reading.error
}

/** What was asked of a znode; undefined where there is none. */
export async function unlessGone<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof NoNode) return undefined
    throw error
  }
}

/** For what changes nothing on the queue: whatever the connection did to it, asking again is right. */
export async function asking<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof ZooKeeperError)) throw error
    // A server that has just ended the session says so in answers, before it hangs up.
    if (error.outcome === 'refused' && !(error instanceof SessionExpired)) throw inBoardsWords(what, error)
    throw new NotConnected(`${what}: ${error.message}`, { cause: error })
  }
}
