/**
 * Detects changes that one-shot watches missed: once per period it compares the child counts in the folders' Stats with
 * the newest listing, and reads the gate. It sends three reads even when the board is idle: the C client does not
 * expose what the answers to its pings contain.
 */
import { startInterval } from '../../../../core/time.ts'
import type { ZooKeeperDriver } from '../../../../zookeeper/index.ts'
import type { BoardGateOptions } from '../store/gate.ts'
import type { Layout } from '../store/layout.ts'
import { sweepCancellations } from '../store/sweep.ts'
import type { BoardSnapshot } from './snapshot.ts'

export interface ConsistencyCheckOptions {
  readonly zookeeper: ZooKeeperDriver
  readonly layout: Layout
  readonly mirror: BoardSnapshot
  /** The time between two checks, in milliseconds. */
  readonly period: number
  /** Called when the gate may have changed. */
  readonly onGateChange: () => void
  readonly onError: (error: unknown) => void
}

/** The number of rounds between two sweeps; unused znodes may stay for a while. */
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
    this.#timer ??= startInterval(() => this.#begin(), this.#options.period)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Forgets the watch of the gate, because it ended with its session. */
  forgetWatches(): void {
    this.#gateWatched = false
  }

  /** A client for the gate that sets a watch with every read, unless one is set already. */
  get watchingGate(): BoardGateOptions['zookeeper'] {
    const { zookeeper, onGateChange } = this.#options
    const onWritten = () => {
      this.#gateWatched = false
      onGateChange()
    }
    return {
      create: (...args) => zookeeper.create(...args),
      getData: async (path) => {
        if (this.#gateWatched) return zookeeper.getData(path)
        this.#gateWatched = true
        return zookeeper.getData(path, { watch: onWritten }).catch((error: unknown) => {
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
