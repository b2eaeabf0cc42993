/** The gate: whether the board grants claims, and at which revision of the gate that is known. */
import { NodeExists, NoNode, type ZooKeeper } from '../../zookeeper/index.ts'
import type { Layout } from './layout.ts'
import { decodeGate, encodeGate } from './records.ts'

export class Gate {
  readonly #zookeeper: ZooKeeper
  readonly #layout: Layout
  /** Every claim checks that the gate is still as it was seen. Undefined until it is read. */
  #seen: { readonly version: number; readonly paused: boolean } | undefined

  constructor(options: { zookeeper: ZooKeeper; layout: Layout }) {
    this.#zookeeper = options.zookeeper
    this.#layout = options.layout
  }

  get version(): number | undefined {
    return this.#seen?.version
  }

  /** One round trip. A gate that somebody took away is put up again, open. */
  async read(): Promise<{ readonly version: number; readonly paused: boolean }> {
    while (true) {
      try {
        const { data, stat } = await this.#zookeeper.getData(this.#layout.gate)
        this.#seen = { version: stat.version, ...decodeGate(data) }
        return this.#seen
      } catch (error) {
        if (!(error instanceof NoNode)) throw error
      }
      await this.#zookeeper.create(this.#layout.gate, encodeGate({ paused: false })).catch((error: unknown) => {
        if (!(error instanceof NodeExists)) throw error
      })
    }
  }
}
