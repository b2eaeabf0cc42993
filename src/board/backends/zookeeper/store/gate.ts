/**
 * The gate: whether the board grants claims, the base of their fences, and the revision of the gate at which this is
 * known.
 */
import { RetryRounds } from '../../../../core/async/retry.ts'

import { NodeExists, NoNode, type ReadData, type ZooKeeper } from '../../../../zookeeper/index.ts'
import { decodeGate, encodeGate, type GateRecord, OPEN_GATE } from './encoding.ts'
import type { ZooKeeperLayout } from './layout.ts'

/** The gate with the revision at which it was read. */
export interface GateSnapshot extends GateRecord {
  readonly version: number
}

export interface BoardGateOptions {
  readonly zookeeper: Pick<ZooKeeper, 'create' | 'getData'>
  readonly layout: ZooKeeperLayout
  /** Receives the state of the gate after each read or write. */
  readonly onGate: (paused: boolean) => void
  /** Called when a read in the background fails. */
  readonly onError: (error: unknown) => void
}

export class BoardGate {
  readonly #options: BoardGateOptions
  /** The gate as it was last read; every claim checks that it has not changed. Undefined until it is read. */
  #seen: GateSnapshot | undefined
  #refreshing: Promise<void> | undefined

  constructor(options: BoardGateOptions) {
    this.#options = options
  }

  get seen(): GateSnapshot | undefined {
    return this.#seen
  }

  /** Forgets the gate: a gate that is created again may have the same version as the former gate. */
  forget(): void {
    this.#seen = undefined
  }

  /** Notes a read of the gate that any component made. */
  noteRead({ data, stat }: ReadData): GateSnapshot {
    return this.noteWritten({ version: stat.version, ...decodeGate(data) })
  }

  /** Notes a write of the gate. */
  noteWritten(seen: GateSnapshot): GateSnapshot {
    this.#seen = seen
    this.#options.onGate(seen.paused)
    return seen
  }

  /** Reads the gate in the background, because it may have changed. */
  refresh(): void {
    this.#refreshing = this.read().then(() => undefined, this.#options.onError)
  }

  /** Resolves when the latest read in the background is over. */
  async whenSettled(): Promise<void> {
    await this.#refreshing
  }

  /** Reads the gate, in one round trip. A gate that was deleted is created again, open. */
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
