/** The gate: whether the board grants claims, what their fences begin at, and at which revision of the gate that is known. */
import { RetryRounds } from '../../../../core/async/rounds.ts'

import { NodeExists, NoNode, type ReadData, type ZooKeeperDriver } from '../../../../zookeeper/index.ts'
import type { Layout } from './layout.ts'
import { decodeGate, encodeGate, type GateRecord, OPEN_GATE } from './records.ts'

/** The gate as it was seen. */
export interface GateSnapshot extends GateRecord {
  readonly version: number
}

export interface BoardGateOptions {
  readonly zookeeper: Pick<ZooKeeperDriver, 'create' | 'getData'>
  readonly layout: Layout
  /** Hears what was seen, each time. */
  readonly onGate: (paused: boolean) => void
  /** A look in the background failed. */
  readonly onError: (error: unknown) => void
}

export class BoardGate {
  readonly #options: BoardGateOptions
  /** Every claim checks that the gate is still as it was seen. Undefined until it is read. */
  #seen: GateSnapshot | undefined
  #looking: Promise<void> | undefined

  constructor(options: BoardGateOptions) {
    this.#options = options
  }

  get seen(): GateSnapshot | undefined {
    return this.#seen
  }

  /** Forgets what was seen: a gate that is made again may have the version that another had. */
  forget(): void {
    this.#seen = undefined
  }

  /** What was just read of it, by whomever. */
  noteRead({ data, stat }: ReadData): GateSnapshot {
    return this.noteWritten({ version: stat.version, ...decodeGate(data) })
  }

  /** What was just written. */
  noteWritten(seen: GateSnapshot): GateSnapshot {
    this.#seen = seen
    this.#options.onGate(seen.paused)
    return seen
  }

  /** Something has happened to it: reads it in the background. */
  refresh(): void {
    this.#looking = this.read().then(() => undefined, this.#options.onError)
  }

  /** Resolves when everything is told that was looked for so far. */
  async whenSettled(): Promise<void> {
    await this.#looking
  }

  /** One round trip. A gate that somebody took away is put up again, open. */
  async read(): Promise<GateSnapshot> {
    const { zookeeper, layout } = this.#options
    const rounds = new RetryRounds(`reading ${layout.gate}`)
    while (true) {
      await rounds.next()
      try {
        return this.noteRead(await zookeeper.getData(layout.gate))
      } catch (error) {
        if (!(error instanceof NoNode)) throw error
      }
      await zookeeper.create(layout.gate, encodeGate(OPEN_GATE)).catch((error: unknown) => {
        if (!(error instanceof NodeExists)) throw error
      })
    }
  }
}
