/**
 * The folders of resources: they are made when somebody first wants them, and swept when nobody has for a while.
 *
 * The transaction that claims needs them to be there. Were it left to that one to find out, it would be refused once for
 * each that is missing, and everything that goes out with it. So what watches tell of them counts, too: two hundred that
 * were swept since they were last wanted would be two hundred refusals.
 */
import { NodeExists, op, type WatchEvent, type ZooKeeper } from '../../../../zookeeper/index.ts'
import type { Layout } from './layout.ts'

/** Of how many is remembered that they were there. */
const MAX_REMEMBERED_FOLDERS = 10_000

export class ResourceNodes {
  readonly #zookeeper: ZooKeeper
  readonly #layout: Layout
  /** By path; settled once it is there. */
  readonly #known = new Map<string, Promise<void>>()

  constructor(options: { zookeeper: ZooKeeper; layout: Layout }) {
    this.#zookeeper = options.zookeeper
    this.#layout = options.layout
  }

  /** Makes sure that they are there, as far as that is not known; a round trip, two where it has to be made. */
  async prepare(names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#known.get(this.#layout.resource(name)) ?? this.#prepare(name)))
  }

  /** Made and taken away, by anybody. Claims do both at once, so that the last word counts. */
  changed(batch: readonly WatchEvent[]): void {
    for (const { type, path } of batch) {
      if (!this.#layout.isResource(path)) continue
      if (type === 'deleted') this.#known.delete(path)
      else if (type === 'created') this.#remember(path, Promise.resolve())
    }
  }

  /** Changes may have been missed. */
  clear(): void {
    this.#known.clear()
  }

  /** Makes it; one that is there already is as good. */
  async create(name: string): Promise<void> {
    await this.#zookeeper.create(this.#layout.resource(name), null).catch((error: unknown) => {
      if (!(error instanceof NodeExists)) throw error
    })
  }

  #prepare(name: string): Promise<void> {
    const path = this.#layout.resource(name)
    const there = this.#createIfMissing(name)
    this.#remember(path, there)
    there.catch(() => this.#known.delete(path))
    return there
  }

  #remember(path: string, there: Promise<void>): void {
    this.#known.set(path, there)
    const [oldest] = this.#known.keys()
    if (this.#known.size > MAX_REMEMBERED_FOLDERS && oldest !== undefined) this.#known.delete(oldest)
  }

  /** To look costs no transaction, and most are there. */
  async #createIfMissing(name: string): Promise<void> {
    const { results } = await this.#zookeeper.multiRead([op.getData(this.#layout.resource(name))])
    if (results[0].error) await this.create(name)
  }
}
