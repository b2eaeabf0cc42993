/**
 * Makes certain what one-shot watches make fast: once per period it compares what the folders' Stats count of children with
 * the newest listing, and looks at the gate. Three reads, also of an idle board: the C client does not tell what the answers
 * to its pings said.
 */
import type { ZooKeeperDriver } from '../../../../zookeeper/index.ts'
import type { BoardGateOptions } from '../store/gate.ts'
import type { Layout } from '../store/layout.ts'
import { sweepCancellations } from '../store/sweep.ts'
import type { BoardSnapshot } from './snapshot.ts'

export interface ConsistencyCheckOptions {
  readonly zookeeper: ZooKeeperDriver
  readonly layout: Layout
  readonly mirror: BoardSnapshot
  /** Milliseconds. */
  readonly period: number
  /** Something may have happened to it. */
  readonly onGateChange: () => void
  readonly onError: (error: unknown) => void
}

/** So many rounds between two sweeps: clutter may lie about for a while. */
const ROUNDS_PER_SWEEP = 6

export class ConsistencyCheck {
  readonly #options: ConsistencyCheckOptions
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  #rounds = 0
  #gateWatched = false

  constructor(options: ConsistencyCheckOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#begin(), this.#options.period)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Another session: nothing is watched any more. */
  forgetWatches(): void {
    this.#gateWatched = false
  }

  /** Reads the gate with a watch, whoever wants to read it. */
  get watchingGate(): BoardGateOptions['zookeeper'] {
    const { zookeeper, onGateChange } = this.#options
    const written = () => {
      this.#gateWatched = false
      onGateChange()
    }
    return {
      create: (...args) => zookeeper.create(...args),
      getData: async (path) => {
        if (this.#gateWatched) return zookeeper.getData(path)
        this.#gateWatched = true
        return zookeeper.getData(path, { watch: written }).catch((error: unknown) => {
          this.#gateWatched = false
          throw error
        })
      },
    }
  }

  #begin(): void {
    this.#round ??= this.run()
      .catch(this.#options.onError)
      .finally(() => {
        this.#round = undefined
      })
  }

  async run(): Promise<void> {
    const { zookeeper, layout, mirror, onGateChange } = this.#options
    if (zookeeper.state !== 'connected') return
    onGateChange()
    const [jobs, cancellations] = await Promise.all([
      zookeeper.exists(layout.path),
      zookeeper.exists(layout.cancelFolder),
    ])
    const listed = mirror.versions
    if (jobs?.cversion !== listed?.jobs || cancellations?.cversion !== listed?.cancellations) await mirror.whenFresh()
    mirror.reportUnwatched()
    this.#rounds += 1
    if (this.#rounds % ROUNDS_PER_SWEEP === 0) await sweepCancellations({ zookeeper, layout })
  }
}
