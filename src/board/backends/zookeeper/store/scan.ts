/**
 * The scan: makes certain what watches make fast.
 *
 * A folder's Stat counts every child made and taken away (`cversion`). Once per period that count must be what it was at the
 * last listing plus the changes told since, for postings and locks, and for cancel requests; if it is not, changes were
 * missed, and the board is listed again. The gate is read with them. Nothing is asked while nothing happens: the answers to
 * pings tell whether anything did. An idle server sees pings only, once what the last changes left behind is swept.
 */
import { op, type ReadData, type WatchEvent, type ZooKeeper } from '../../../../zookeeper/index.ts'
import type { Layout } from './layout.ts'

export interface ScanOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: Layout
  /** Milliseconds. */
  readonly period: number
  /** Changes were missed. */
  readonly onMissed: () => void
  /** The gate as it is now; undefined where it is gone. */
  readonly onGate: (node: ReadData | undefined) => void
  readonly onError: (error: unknown) => void
  /** Called now and then for what is not urgent; resolves to whether there is something to do later. */
  readonly onIdle: () => Promise<boolean>
}

/** What the Stats of both folders counted. */
export interface ChildCounts {
  readonly jobs: number
  readonly cancellations: number
}

/** So many scans, or periods of silence after a change of the board, between two leisures: clutter may lie about for a while. */
const SCANS_PER_IDLE = 6

export class Scan {
  readonly #options: ScanOptions
  readonly #jobs: string
  readonly #cancellations: string
  #timer: NodeJS.Timeout | undefined
  #counts: ChildCounts | undefined
  #newestZxid = 0n
  #scans = 0
  /** Whether the board has changed since the last leisure: a silent board would keep what the last change left behind. */
  #changed = true
  /** Periods of silence since the last scan. */
  #silent = 0
  #running: Promise<void> | undefined

  constructor(options: ScanOptions) {
    this.#options = options
    this.#jobs = `${options.layout.path}/`
    this.#cancellations = `${options.layout.cancelFolder}/`
  }

  /** Postings and locks made and taken away so far, as a 32-bit number; undefined while that is not known. */
  get count(): number | undefined {
    return this.#counts?.jobs
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#begin(), this.#options.period)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** The board was listed. Called before any later change is counted. */
  setBaseline(counts: ChildCounts): void {
    this.#counts = counts
  }

  /** A listing is to come: until then nothing is known. */
  clearBaseline(): void {
    this.#counts = undefined
  }

  countChanges(batch: readonly WatchEvent[]): void {
    this.#changed = true
    if (this.#counts === undefined) return
    let { jobs, cancellations } = this.#counts
    for (const { type, path } of batch) {
      if (type !== 'created' && type !== 'deleted') continue
      if (isIn(this.#jobs, path)) jobs = (jobs + 1) | 0
      else if (isIn(this.#cancellations, path)) cancellations = (cancellations + 1) | 0
    }
    this.#counts = { jobs, cancellations }
  }

  /** One at a time, however long a server takes to answer. */
  #begin(): void {
    this.#running ??= this.run()
      .catch(this.#options.onError)
      .finally(() => {
        this.#running = undefined
      })
  }

  /** One round trip where anything happened since the last time, else none. */
  async run(): Promise<void> {
    const { zookeeper, layout, onMissed, onGate } = this.#options
    const newest = zookeeper.session?.newestZxid ?? 0n
    if (zookeeper.state !== 'connected' || this.#counts === undefined) return
    if (newest === this.#newestZxid) return this.#skipSilent()
    this.#silent = 0
    const { results } = await zookeeper.multiRead([
      op.getData(layout.path),
      op.getData(layout.cancelFolder),
      op.getData(layout.gate),
    ])
    const [jobs, cancellations, gateNode] = results
    onGate(gateNode.error ? undefined : gateNode)
    // Every change before this answer has been told, so the counts agree if none was missed.
    const counts = this.#counts
    if (counts && (hasChanged(counts.jobs, jobs.stat) || hasChanged(counts.cancellations, cancellations.stat))) {
      onMissed()
      return
    }
    this.#newestZxid = newest
    this.#scans += 1
    if (this.#scans % SCANS_PER_IDLE === 0) await this.#runIdleWork()
  }

  async #skipSilent(): Promise<void> {
    if (!this.#changed) return
    this.#silent += 1
    if (this.#silent < SCANS_PER_IDLE) return
    this.#silent = 0
    await this.#runIdleWork()
  }

  async #runIdleWork(): Promise<void> {
    this.#changed = false
    try {
      if (await this.#options.onIdle()) this.#changed = true
    } catch (error) {
      this.#changed = true
      throw error
    }
  }
}

/** Directly in the folder, not further down. */
function isIn(folder: string, path: string): boolean {
  return path.startsWith(folder) && !path.includes('/', folder.length)
}

function hasChanged(count: number, stat: { readonly cversion: number } | undefined): boolean {
  return stat !== undefined && stat.cversion !== count
}
