/** Reads the board: what is on it, what its postings say, who holds what, what is in the trash. Changes nothing. */
import type { Encoding } from '../../core/codec.ts'
import { InvalidPosting, JobboardError, NotConnected } from '../../core/errors.ts'
import { NoNode, type ZooKeeper, ZooKeeperError } from '../../zookeeper/index.ts'
import type { Listing, Stored, TrashedEntry, Unreadable } from '../backend.ts'
import { decodePosting } from '../posting.ts'
import { isJob, type Layout, lockedJob } from './layout.ts'
import { decodeLock, decodeTrash } from './records.ts'

/** How many znodes are asked for at once while looking for the one that a lost answer was about. */
const SEARCH_BATCH = 64

export class BoardReader {
  readonly #zookeeper: ZooKeeper
  readonly #layout: Layout
  readonly #encoding: Encoding

  constructor(options: { zookeeper: ZooKeeper; layout: Layout; encoding: Encoding }) {
    this.#zookeeper = options.zookeeper
    this.#layout = options.layout
    this.#encoding = options.encoding
  }

  async list(): Promise<Listing> {
    const [{ names }, { names: trashed }] = await Promise.all([
      this.#zookeeper.getChildren(this.#layout.path),
      this.#zookeeper.getChildren(this.#layout.trashFolder),
    ])
    const claimed = names.flatMap((name) => lockedJob(name) ?? [])
    return { jobs: names.filter(isJob), claimed: new Set(claimed), trashed: new Set(trashed) }
  }

  async read(id: string): Promise<Stored | Unreadable | undefined> {
    const path = this.#layout.posting(id)
    const node = await unlessGone(this.#zookeeper.getData(path))
    if (!node) return undefined
    const { czxid, version, ctime } = node.stat
    try {
      const posting = decodePosting(node.data ?? new Uint8Array(), this.#encoding)
      return { id, posting, revision: version, order: czxid, postedAt: new Date(ctime) }
    } catch (cause) {
      if (!(cause instanceof JobboardError)) throw cause
      return {
        id,
        error: new InvalidPosting(`${path} ${cause.message}; it is not claimed here, remove or repair it`, { cause }),
      }
    }
  }

  async owner(id: string): Promise<string | undefined> {
    const lock = await unlessGone(this.#zookeeper.getData(this.#layout.lock(id)))
    return lock && (decodeLock(lock.data, this.#encoding) ?? 'an unknown owner')
  }

  /** In the order in which they were trashed; unreadable entries come as the error that says so. */
  async trashed(): Promise<(TrashedEntry | Error)[]> {
    const { names } = await this.#zookeeper.getChildren(this.#layout.trashFolder)
    const nodes = await Promise.all(names.filter(isJob).map((id) => this.#trashNode(id)))
    const there = nodes.filter((node) => node !== undefined)
    there.sort((a, b) => (a.czxid < b.czxid ? -1 : a.czxid > b.czxid ? 1 : 0))
    return there.map(({ id, data }) => this.#trashedEntry(id, data))
  }

  /** The posting that a transaction made: ids grow with transactions, so it is near the end. */
  async postedIn(zxid: bigint): Promise<string | undefined> {
    const { names } = await this.#zookeeper.getChildren(this.#layout.path)
    const ids = names.filter(isJob).sort((a, b) => b.length - a.length || (a < b ? 1 : -1))
    for (let start = 0; start < ids.length; start += SEARCH_BATCH) {
      const batch = ids.slice(start, start + SEARCH_BATCH)
      const stats = await Promise.all(batch.map((id) => this.#zookeeper.exists(this.#layout.posting(id))))
      const found = stats.findIndex((stat) => stat?.czxid === zxid)
      if (found >= 0) return batch[found]
      if (stats.some((stat) => stat !== undefined && stat.czxid < zxid)) return undefined
    }
    return undefined
  }

  async #trashNode(id: string): Promise<{ id: string; data: Uint8Array | null; czxid: bigint } | undefined> {
    const node = await unlessGone(this.#zookeeper.getData(this.#layout.trash(id)))
    return node && { id, data: node.data, czxid: node.stat.czxid }
  }

  #trashedEntry(id: string, data: Uint8Array | null): TrashedEntry | Error {
    try {
      return decodeTrash(id, data, this.#encoding)
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
  }
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
    if (!(error instanceof ZooKeeperError) || error.outcome === 'refused') throw error
    throw new NotConnected(`${what}: ${error.message}`, { cause: error })
  }
}
