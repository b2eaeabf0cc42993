/**
 * Reads and watches the records of a board.
 *
 * A znode's version is the revision of its record. A znode that is deleted and created again would begin at version 0, and a process that
 * knew the old record could change the new one. So a removed record stays as a znode without a value, until no process can know the old one.
 */

import { decode, encodePlain, toFields } from '../../../../core/codec.ts'
import { isError } from '../../../../core/errors.ts'
import { BadVersion, NoNode, type Watch, type WatchEvent, type ZooKeeper } from '../../../../zookeeper/index.ts'
import type { RecordName, StoredRecord } from '../../../model/record.ts'
import { decodeName, isHashed, type ZooKeeperLayout } from './layout.ts'
import { missingAsUndefined, type NodeReadResult, type ReadMany } from './reader.ts'

/**
 * The time after which a removed record is deleted. A change that was prepared before the removal cannot arrive later: no session lives as
 * long without a connection, and a change is never sent in another session.
 */
const REMOVED_FOR_MS = 3_600_000
/** The number of removed records that one listing deletes: the work is not urgent. */
const MAX_DELETED = 100

/** A record as it is found: removed, where it has no value. */
export interface RecordNode {
  readonly id: string
  readonly revision: number
  readonly bytes: Uint8Array | undefined
  /** The time of the last write in milliseconds since 1970, by the servers' clock. */
  readonly writtenAt: number
}

export interface RecordNodesOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: ZooKeeperLayout
  readonly readMany: ReadMany
  /** Returns the servers' time in milliseconds since 1970. */
  readonly now: () => number
  readonly onChanges: (names: readonly RecordName[]) => void
  readonly onError: (error: unknown) => void
}

export class RecordNodes {
  readonly #options: RecordNodesOptions
  readonly #watches = new Map<string, Promise<Watch>>()

  constructor(options: RecordNodesOptions) {
    this.#options = options
  }

  async list(kind: string): Promise<StoredRecord[]> {
    const { zookeeper, layout, readMany } = this.#options
    const folder = layout.recordKind(kind)
    const listed = await missingAsUndefined(zookeeper.getChildren(folder))
    const nodes = await readMany((listed?.names ?? []).map((name) => `${folder}/${name}`))
    const found = nodes.flatMap((node) => toRecordNode(node) ?? [])
    this.#deleteRemoved(kind, found)
    const records = found.flatMap(({ id, revision, bytes }) => (bytes ? [{ kind, id, revision, bytes }] : []))
    return records.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  async get(name: RecordName): Promise<StoredRecord | undefined> {
    const { revision, bytes } = (await this.find(name)) ?? {}
    return revision === undefined || !bytes ? undefined : { ...name, revision, bytes }
  }

  /** Returns the znode of a record, also of a removed record. */
  async find(name: RecordName): Promise<RecordNode | undefined> {
    const [node] = await this.#options.readMany([this.#options.layout.record(name)])
    return toRecordNode(node)
  }

  /** Creates the folder of a kind. */
  async createFolder(kind: string): Promise<void> {
    await this.#options.zookeeper.mkdirp(this.#options.layout.recordKind(kind))
  }

  async watch(kind: string): Promise<void> {
    const { zookeeper, layout } = this.#options
    if (this.#watches.has(kind)) return
    const path = layout.recordKind(kind)
    const handler = {
      events: (batch: readonly WatchEvent[]) => void this.#onEvents(kind, batch),
      // The session reports the gap.
      gap: () => undefined,
    }
    const watching = zookeeper.watch(path, { mode: 'recursive' }, handler)
    this.#watches.set(kind, watching)
    try {
      await watching
    } catch (error) {
      this.#watches.delete(kind)
      throw error
    }
  }

  async unwatch(kind: string): Promise<void> {
    const watching = this.#watches.get(kind)
    this.#watches.delete(kind)
    const watch = await watching?.catch(() => undefined)
    await watch?.remove().catch(() => undefined)
  }

  async #onEvents(kind: string, batch: readonly WatchEvent[]): Promise<void> {
    const folder = `${this.#options.layout.recordKind(kind)}/`
    // A deletion changes nothing: the record was removed before.
    const paths = batch.flatMap(({ path, type }) => (path.startsWith(folder) && type !== 'deleted' ? [path] : []))
    const names = paths.map((path) => path.slice(folder.length))
    const readable = names.flatMap((name) => {
      const id = isHashed(name) ? undefined : decodeName(name)
      return id === undefined ? [] : [{ kind, id }]
    })
    if (readable.length > 0) this.#options.onChanges(readable)
    const hashed = paths.filter((_, index) => isHashed(names[index] ?? ''))
    if (hashed.length === 0) return
    try {
      const nodes = await this.#options.readMany(hashed)
      const found = nodes.flatMap((node) => toRecordNode(node) ?? [])
      this.#options.onChanges(found.map(({ id }) => ({ kind, id })))
    } catch (error) {
      this.#options.onError(error)
    }
  }

  /** Deletes what was removed long ago, in the background. */
  #deleteRemoved(kind: string, nodes: readonly RecordNode[]): void {
    const { zookeeper, layout, now, onError } = this.#options
    const old = nodes.filter(({ bytes, writtenAt }) => !bytes && now() - writtenAt > REMOVED_FOR_MS)
    for (const { id, revision } of old.slice(0, MAX_DELETED)) {
      zookeeper.delete(layout.record({ kind, id }), { version: revision }).catch((error: unknown) => {
        if (!(error instanceof NoNode || error instanceof BadVersion)) onError(error)
      })
    }
  }
}

/** Encodes a record with its id, which the name of a znode need not show. @param bytes undefined for a removed record */
export function encodeRecordNode(id: string, bytes: Uint8Array | undefined): Uint8Array {
  return encodePlain(bytes ? { id, value: bytes } : { id }, 'msgpack')
}

/** Returns undefined for a znode that is missing, cannot be read, or holds something else. */
function toRecordNode(node: NodeReadResult): RecordNode | undefined {
  if (!node || isError(node) || !node.data) return undefined
  const fields = readFields(node.data)
  const id = fields?.['id']
  if (typeof id !== 'string') return undefined
  const value = fields?.['value']
  const bytes = value instanceof Uint8Array ? value : undefined
  return { id, revision: node.stat.version, bytes, writtenAt: node.stat.mtime }
}

function readFields(data: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    return toFields(decode(data, 'msgpack'))
  } catch {
    return undefined
  }
}
