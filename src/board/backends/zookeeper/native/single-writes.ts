/**
 * Single writes that determine their outcome: a write whose answer was lost reads the trace it leaves, and is sent
 * again only in the session in which it began. The lock makes the traces reliable: while this process owns it, no other
 * client writes the posting.
 */
import {
  NodeExists,
  NoNode,
  type Stat,
  versionedSetData,
  writeExactlyOnce,
  type ZooKeeperDriver,
} from '../../../../zookeeper/index.ts'
import type { Layout } from '../store/layout.ts'
import { missingAsUndefined } from '../store/reader.ts'

type SessionBound = { readonly session: bigint }

export class Steps {
  readonly #zookeeper: ZooKeeperDriver
  readonly #layout: Layout

  constructor(options: { zookeeper: ZooKeeperDriver; layout: Layout }) {
    this.#zookeeper = options.zookeeper
    this.#layout = options.layout
  }

  /** Creates the lock of this session. @throws NodeExists when another client holds it */
  async lock(id: string, data: Uint8Array, { session }: SessionBound): Promise<void> {
    const path = this.#layout.lock(id)
    await writeExactlyOnce<unknown>(
      this.#zookeeper,
      { session },
      {
        attempt: (bound) => this.#zookeeper.create(path, data, { ephemeral: true, ...bound }),
        look: async () => {
          const there = await this.#readSynced(path, { session })
          if (!there) return 'not-done'
          if (there.ephemeralOwner === session) return { happened: undefined }
          return { refused: new NodeExists(`create ${path}: another client holds it`, { path }) }
        },
      },
    )
  }

  /** Deletes the lock of this session. A lock that does not exist counts as deleted. */
  async unlock(id: string, { session }: SessionBound): Promise<void> {
    const path = this.#layout.lock(id)
    await writeExactlyOnce<unknown>(
      this.#zookeeper,
      { session },
      {
        attempt: (bound) => missingAsUndefined(this.#zookeeper.delete(path, bound)),
        look: async () => {
          const there = await this.#readSynced(path, { session })
          return there?.ephemeralOwner === session ? 'not-done' : { happened: undefined }
        },
      },
    )
  }

  /** Returns whether this session owns the lock. */
  async isLockOwned(id: string, bound: SessionBound): Promise<boolean> {
    return (await this.#readSynced(this.#layout.lock(id), bound))?.ephemeralOwner === bound.session
  }

  /** Writes the posting, whose lock this session owns, if it has this revision. @throws BadVersion, NoNode */
  rewrite(
    id: string,
    data: Uint8Array,
    { revision, session }: SessionBound & { readonly revision: number },
  ): Promise<Stat> {
    return versionedSetData(this.#zookeeper, this.#layout.posting(id), data, { version: revision }, { session })
  }

  /** Deletes the posting, whose lock this session owns. @throws BadVersion, NoNode */
  async remove(id: string, { revision, session }: SessionBound & { readonly revision: number }): Promise<void> {
    const path = this.#layout.posting(id)
    await writeExactlyOnce<unknown>(
      this.#zookeeper,
      { session },
      {
        attempt: (bound) => this.#zookeeper.delete(path, { version: revision, ...bound }),
        look: async () => ((await this.#readSynced(path, { session })) ? 'not-done' : { happened: undefined }),
      },
    )
  }

  /** Deletes a znode at this revision, or at any, in any session. @returns false if it did not exist */
  async discard(path: string, options: { readonly revision?: number } = {}): Promise<boolean> {
    const { revision } = options
    const version = revision === undefined ? {} : { version: revision }
    return writeExactlyOnce(
      this.#zookeeper,
      {},
      {
        attempt: async (bound) => {
          try {
            await this.#zookeeper.delete(path, { ...version, ...bound })
            return true
          } catch (error) {
            if (error instanceof NoNode) return false
            throw error
          }
        },
        // It is deleted, and there is no way to know whether this request or another client deleted it.
        look: async ({ session }) => ((await this.#readSynced(path, { session })) ? 'not-done' : 'unknown'),
      },
    )
  }

  /**
   * Returns the Stat after a sync on the same connection: requests that were sent before are applied by then, or never
   * will be.
   */
  async #readSynced(path: string, bound: SessionBound): Promise<Stat | undefined> {
    const [, stat] = await Promise.all([this.#zookeeper.sync(path, bound), this.#zookeeper.exists(path, bound)])
    return stat
  }
}
