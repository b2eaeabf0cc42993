/**
 * Reads the keys of the board, and removes unused ones.
 *
 * A key is deleted together with its job, unless it has a window: then it stays, and the next post that finds the window over and the job gone
 * takes it over at the version that was read. So of several such posts one succeeds. The window counts from the last write of the znode, by the
 * servers' clock; this process estimates that clock from answers, which are never ahead of it.
 */
import type { Encoding } from '../../../../core/codec.ts'
import type { Stat, ZooKeeper } from '../../../../zookeeper/index.ts'
import { decodeKey, type KeyRecord } from './encoding.ts'
import type { ZooKeeperLayout } from './layout.ts'
import { missingAsUndefined, translateErrors } from './reader.ts'

/**
 * The holder of a key. `taken`: its job may be on the board; for a key without a window, the view knows. `window`: its job has left the board,
 * and the window is not over. `free`: a post may take the key over at this revision.
 */
export interface KeyHolder {
  readonly uuid: string | undefined
  readonly revision: number
  readonly state: 'taken' | 'window' | 'free'
  /** The id of the job, for a key with a window. */
  readonly id: string | undefined
}

export interface KeyNodesOptions {
  readonly zookeeper: Pick<ZooKeeper, 'exists' | 'getData'>
  readonly layout: ZooKeeperLayout
  readonly encoding: Encoding
  /** Returns the time of the servers' clock, in milliseconds since 1970. */
  readonly now: () => number
}

export class KeyNodes {
  readonly #options: KeyNodesOptions

  constructor(options: KeyNodesOptions) {
    this.#options = options
  }

  /**
   * Returns the holder of the key; undefined if there is none. One round trip, or two for a key with a window.
   *
   * @throws NotConnected
   */
  find(what: string, name: string): Promise<KeyHolder | undefined> {
    return translateErrors(what, () => this.#find(name))
  }

  async #find(name: string): Promise<KeyHolder | undefined> {
    const { zookeeper, layout, encoding, now } = this.#options
    const node = await missingAsUndefined(zookeeper.getData(layout.key(name)))
    if (!node) return undefined
    const key = decodeKey(node.data, encoding)
    const found = { uuid: key.uuid, revision: node.stat.version, id: key.window?.id }
    // An id never returns: a job that is missing after its key was read has left the board for good.
    if (!key.window || (await zookeeper.exists(layout.posting(key.window.id)))) return { ...found, state: 'taken' }
    return { ...found, state: isInWindow(key, node.stat, now()) ? 'window' : 'free' }
  }
}

/** Returns whether the window of a key is not over. @param now the time of the servers' clock in milliseconds since 1970 */
export function isInWindow(
  { window }: Pick<KeyRecord, 'window'>,
  { mtime }: Pick<Stat, 'mtime'>,
  now: number,
): boolean {
  return window !== undefined && now < mtime + window.ms
}
