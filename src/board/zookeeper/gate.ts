/** The gate: whether the board grants claims, what their fences begin at, and at which revision of the gate that is known. */
import { NodeExists, NoNode, type ReadData, type ZooKeeperDriver } from '../../zookeeper/index.ts'
import type { Layout } from './layout.ts'
import { decodeGate, encodeGate, type GateRecord, OPEN_GATE } from './records.ts'

/** The gate as it was seen. */
export interface SeenGate extends GateRecord {
  readonly version: number
}

export interface GateOptions {
  readonly zookeeper: Pick<ZooKeeperDriver, 'create' | 'getData'>
  readonly layout: Layout
  /** Hears what was seen, each time. */
  readonly told: (paused: boolean) => void
  /** A look in the background failed. */
  readonly failed: (error: unknown) => void
}

export class Gate {
  readonly #options: GateOptions
  /** Every claim checks that the gate is still as it was seen. Undefined until it is read. */
  #seen: SeenGate | undefined
  #looking: Promise<void> | undefined

  constructor(options: GateOptions) {
    this.#options = options
  }

  get seen(): SeenGate | undefined {
    return this.#seen
  }

  /** Forgets what was seen: a gate that is made again may have the version that another had. */
  forget(): void {
    this.#seen = undefined
  }

  /** What was just read of it, by whomever. */
  saw({ data, stat }: ReadData): SeenGate {
    return this.wrote({ version: stat.version, ...decodeGate(data) })
  }

  /** What was just written. */
  wrote(seen: SeenGate): SeenGate {
    this.#seen = seen
    this.#options.told(seen.paused)
    return seen
  }

  /** Something has happened to it: reads it in the background. */
  look(): void {
    this.#looking = this.read().then(() => undefined, this.#options.failed)
  }

  /** Resolves when everything is told that was looked for so far. */
  async settled(): Promise<void> {
    await this.#looking
  }

  /** One round trip. A gate that somebody took away is put up again, open. */
  async read(): Promise<SeenGate> {
    const { zookeeper, layout } = this.#options
    while (true) {
      try {
        return this.saw(await zookeeper.getData(layout.gate))
      } catch (error) {
        if (!(error instanceof NoNode)) throw error
      }
      await zookeeper.create(layout.gate, encodeGate(OPEN_GATE)).catch((error: unknown) => {
        if (!(error instanceof NodeExists)) throw error
      })
    }
  }
}
