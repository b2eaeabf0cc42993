/**
 * Single writes that know what became of them: each looks for its trace where its answer was lost, and is sent again only in
 * the session it began in. What makes the traces certain is the lock: while it is ours nobody else writes the posting.
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

  /** Makes the lock of this session. @throws NodeExists when another holds it */
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
          return { refused: new NodeExists(`create ${path}: another holds it`, { path }) }
        },
      },
    )
  }

  /** Takes the lock of this session away; that it is gone already is as good. */
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

  /** Whether the lock is this session's. */
  async isLockOwned(id: string, bound: SessionBound): Promise<boolean> {
    return (await this.#readSynced(this.#layout.lock(id), bound))?.ephemeralOwner === bound.session
  }

  /** Writes the posting, whose lock is ours, at the revision it is to have. @throws BadVersion, NoNode */
  rewrite(
    id: string,
    data: Uint8Array,
    { revision, session }: SessionBound & { readonly revision: number },
  ): Promise<Stat> {
    return versionedSetData(this.#zookeeper, this.#layout.posting(id), data, { version: revision }, { session })
  }

  /** Takes the posting away, whose lock is ours. @throws BadVersion, NoNode */
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

  /** Takes a znode away that is at this revision, or any, in whichever session there is; false where it was gone already. */
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
        // Gone by now: by this one or another, nobody can tell.
        look: async ({ session }) => ((await this.#readSynced(path, { session })) ? 'not-done' : 'unknown'),
      },
    )
  }

  /** Behind a sync, on the same connection: what was sent before has happened by then, or never will. */
  async #readSynced(path: string, bound: SessionBound): Promise<Stat | undefined> {
    const [, stat] = await Promise.all([this.#zookeeper.sync(path, bound), this.#zookeeper.exists(path, bound)])
    return stat
  }
}
