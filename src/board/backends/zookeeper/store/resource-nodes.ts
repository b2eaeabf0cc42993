/**
 * The folders of resources: created when a job first needs them, and swept when they have been unused for a while.
 *
 * The transaction that claims needs the folders to exist. If they were created only after a refusal, the transaction
 * and its whole group would be refused once for each missing folder. So watch events about folders are applied too: two
 * hundred folders that were swept since their last use would cause two hundred refusals.
 */
import { keepNewest } from '../../../../core/collections/keep-newest.ts'
import { NodeExists, op, type WatchEvent, type ZooKeeper } from '../../../../zookeeper/index.ts'
import type { ZooKeeperLayout } from './layout.ts'

/** The number of folders that are cached as existing. */
const MAX_REMEMBERED_FOLDERS = 10_000

export class ResourceNodes {
  readonly #zookeeper: ZooKeeper
  readonly #layout: ZooKeeperLayout
  /** Creations by path; resolved when the folder exists. */
  readonly #known = new Map<string, Promise<void>>()

  constructor(options: { zookeeper: ZooKeeper; layout: ZooKeeperLayout }) {
    this.#zookeeper = options.zookeeper
    this.#layout = options.layout
  }

  /** Creates the folders that are not known to exist: one round trip, and a second one if folders are missing. */
  async prepare(names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#known.get(this.#layout.resource(name)) ?? this.#prepare(name)))
  }

  /**
   * Applies created and deleted folders, whichever client changed them. Claims do both at once, so the last event
   * counts.
   */
  changed(batch: readonly WatchEvent[]): void {
    for (const { type, path } of batch) {
      if (!this.#layout.isResource(path)) continue
      if (type === 'deleted') this.#known.delete(path)
      else if (type === 'created') this.#remember(path, Promise.resolve())
    }
  }

  /** Forgets all folders, because changes may have been missed. */
  clear(): void {
    this.#known.clear()
  }

  /** Creates the folder; a folder that exists already is accepted. */
  async create(name: string): Promise<void> {
    await this.#zookeeper.create(this.#layout.resource(name), null).catch((error: unknown) => {
      if (!(error instanceof NodeExists)) throw error
    })
  }

  #prepare(name: string): Promise<void> {
    const path = this.#layout.resource(name)
    const creation = this.#createIfMissing(name)
    this.#remember(path, creation)
    creation.catch(() => this.#known.delete(path))
    return creation
  }

  #remember(path: string, creation: Promise<void>): void {
    this.#known.set(path, creation)
    keepNewest(this.#known, MAX_REMEMBERED_FOLDERS)
  }

  /** Reads the folder before creating it: a read costs no transaction, and most folders exist. */
  async #createIfMissing(name: string): Promise<void> {
    const { results } = await this.#zookeeper.multiRead([op.getData(this.#layout.resource(name))])
    if (results[0].error) await this.create(name)
  }
}
