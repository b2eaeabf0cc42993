/**
 * The scan: makes certain what watches make fast.
 *
 * A folder's Stat counts every child made and taken away (`cversion`). Once per period that count must be what it was at the
 * last listing plus the changes told since; if it is not, changes were missed, and the board is listed again. Nothing is
 * asked while nothing happens: the answers to pings tell whether anything did. An idle server sees pings only.
 */
import type { WatchEvent, ZooKeeper } from '../../zookeeper/index.ts'
import type { Layout } from './layout.ts'
import { unlessGone } from './reading.ts'

export interface ScanOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: Layout
  /** Milliseconds. */
  readonly period: number
  /** Changes were missed. */
  readonly missed: () => void
  readonly failed: (error: unknown) => void
  /** Called now and then, after a scan, for what is not urgent. */
  readonly atLeisure: () => Promise<void>
}

/** So many scans between two leisures: clutter may lie about for a while. */
const SCANS_PER_LEISURE = 6

export class Scan {
  readonly #options: ScanOptions
  readonly #prefix: string
  #timer: NodeJS.Timeout | undefined
  #count: number | undefined
  #newestZxid = 0n
  #scans = 0

  constructor(options: ScanOptions) {
    this.#options = options
    this.#prefix = `${options.layout.path}/`
  }

  /** Children made and taken away so far, as a 32-bit number; undefined while that is not known. */
  get count(): number | undefined {
    return this.#count
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      this.now().catch(this.#options.failed)
    }, this.#options.period)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** The board was listed. Called before any later change is counted. */
  listed(cversion: number): void {
    this.#count = cversion
  }

  /** A listing is to come: until then nothing is known. */
  unlisted(): void {
    this.#count = undefined
  }

  counted(batch: readonly WatchEvent[]): void {
    if (this.#count === undefined) return
    for (const { type, path } of batch) {
      const made = type === 'created' || type === 'deleted'
      if (made && path.startsWith(this.#prefix) && !path.includes('/', this.#prefix.length)) {
        this.#count = (this.#count + 1) | 0
      }
    }
  }

  /** One round trip where anything happened since the last time, else none. */
  async now(): Promise<void> {
    const { zookeeper, layout, missed, atLeisure } = this.#options
    const newest = zookeeper.session?.newestZxid ?? 0n
    if (zookeeper.state !== 'connected' || newest === this.#newestZxid || this.#count === undefined) return
    const stat = await unlessGone(zookeeper.exists(layout.path))
    // Every change before this answer has been told, so the counts agree if none was missed.
    if (stat && this.#count !== undefined && stat.cversion !== this.#count) {
      missed()
      return
    }
    this.#newestZxid = newest
    this.#scans += 1
    if (this.#scans % SCANS_PER_LEISURE === 0) await atLeisure()
  }
}
