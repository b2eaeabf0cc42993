/** The gate: whether the board grants claims, and at which revision of the gate that is known. */
import { NodeExists, NoNode, type ReadData, type ZooKeeper } from '../../zookeeper/index.ts'
import type { Layout } from './layout.ts'
import { decodeGate, encodeGate } from './records.ts'

/** The gate as it was seen. */
export interface SeenGate {
  readonly version: number
  readonly paused: boolean
}

export class Gate {
  readonly #zookeeper: ZooKeeper
  readonly #layout: Layout
  /** Every claim checks that the gate is still as it was seen. Undefined until it is read. */
  #seen: SeenGate | undefined

  constructor(options: { zookeeper: ZooKeeper; layout: Layout }) {
    this.#zookeeper = options.zookeeper
    this.#layout = options.layout
  }

  get seen(): SeenGate | undefined {
    return this.#seen
  }

  /** What was just read of it, by whomever. */
  saw({ data, stat }: ReadData): SeenGate {
    this.#seen = { version: stat.version, ...decodeGate(data) }
    return this.#seen
  }

  /** One round trip. A gate that somebody took away is put up again, open. */
  async read(): Promise<SeenGate> {
    while (true) {
      try {
        return this.saw(await this.#zookeeper.getData(this.#layout.gate))
      } catch (error) {
        if (!(error instanceof NoNode)) throw error
      }
      await this.#zookeeper.create(this.#layout.gate, encodeGate({ paused: false })).catch((error: unknown) => {
        if (!(error instanceof NodeExists)) throw error
      })
    }
  }
}
