/**
 * The scan: detects changes that watches missed.
 *
 * A folder's Stat counts every child created or deleted (`cversion`). Once per period this count must equal the count
 * of the last listing plus the changes received since, for postings and locks, and for cancel requests. If it does not,
 * changes were missed, and the board is listed again. The gate is read in the same request. No request is sent while
 * nothing happens: the answers to pings show whether anything did. An idle server receives only pings, once the znodes
 * that became unused by the last changes are swept.
 */
import { startInterval } from '../../../../core/time.ts'
import { op, type ReadData, type WatchEvent, type ZooKeeper } from '../../../../zookeeper/index.ts'
import type { ZooKeeperLayout } from './layout.ts'

export interface ScanOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: ZooKeeperLayout
  /** The time between two scans, in milliseconds. */
  readonly period: number
  /** Called when changes were missed. */
  readonly onMissed: () => void
  /** Receives the current gate; undefined if it does not exist. */
  readonly onGate: (node: ReadData | undefined) => void
  readonly onError: (error: unknown) => void
  /**
   * Called from time to time for work that is not urgent; resolves to whether there is more to do later.
   *
   * @param board.isViewed whether this process knows which jobs are on the board
   */
  readonly onIdle: (board: { readonly isViewed: boolean }) => Promise<boolean>
}

/** The child counts in the Stats of both folders. */
export interface ChildCounts {
  readonly jobs: number
  readonly cancellations: number
}

/**
 * The number of scans, or of idle periods after a change of the board, between two runs of `onIdle`; unused znodes may
 * stay for a while.
 */
const SCANS_PER_IDLE = 6

export class Scan {
  readonly #options: ScanOptions
  readonly #jobs: string
  readonly #cancellations: string
  #timer: NodeJS.Timeout | undefined
  #workTimer: NodeJS.Timeout | undefined
  /** The newest transaction when idle work was last done without a view. */
  #sweptZxid = 0n
  #counts: ChildCounts | undefined
  #newestZxid = 0n
  #scans = 0
  /**
   * Whether the board has changed since `onIdle` last ran: an idle board would keep znodes that became unused by the
   * last change.
   */
  #changed = true
  /** The number of idle periods since the last scan. */
  #silent = 0
  #running: Promise<void> | undefined

  constructor(options: ScanOptions) {
    this.#options = options
    this.#jobs = `${options.layout.path}/`
    this.#cancellations = `${options.layout.cancelFolder}/`
  }

  /**
   * The number of postings and locks created and deleted so far, as a 32-bit number; undefined while it is not known.
   */
  get count(): number | undefined {
    return this.#counts?.jobs
  }

  start(): void {
    this.#timer ??= startInterval(() => this.#begin(), this.#options.period)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /**
   * Starts to do idle work also while the board is not viewed: if all conductors poll, no process would do it otherwise. The periods differ
   * between processes, so that they do not all do it at once.
   */
  startWork(): void {
    const period = this.#options.period * SCANS_PER_IDLE * (1 + Math.random())
    this.#workTimer ??= startInterval(() => void this.#workUnviewed().catch(this.#options.onError), period).unref()
  }

  close(): void {
    this.stop()
    clearInterval(this.#workTimer)
  }

  async #workUnviewed(): Promise<void> {
    const { zookeeper, onIdle } = this.#options
    const newest = zookeeper.session?.newestZxid ?? 0n
    if (this.#timer || zookeeper.state !== 'connected' || newest === this.#sweptZxid) return
    this.#sweptZxid = newest
    if (await onIdle({ isViewed: false })) this.#sweptZxid = 0n
  }

  /** Sets the counts of a listing. Called before any later change is counted. */
  setBaseline(counts: ChildCounts): void {
    this.#counts = counts
  }

  /** Forgets the counts until the next listing. */
  clearBaseline(): void {
    this.#counts = undefined
  }

  /** Adds received changes to the counts. @param counted.jobs the number of created and deleted postings and locks, which are not in the batch */
  countChanges(batch: readonly WatchEvent[], counted: { readonly jobs: number }): void {
    this.#changed = true
    if (this.#counts === undefined) return
    let { jobs, cancellations } = this.#counts
    jobs = (jobs + counted.jobs) | 0
    for (const { type, path } of batch) {
      if (type !== 'created' && type !== 'deleted') continue
      if (isIn(this.#jobs, path)) jobs = (jobs + 1) | 0
      else if (isIn(this.#cancellations, path)) cancellations = (cancellations + 1) | 0
    }
    this.#counts = { jobs, cancellations }
  }

  /** Starts a scan, unless one is running: a server may take long to answer. */
  #begin(): void {
    this.#running ??= this.run()
      .catch(this.#options.onError)
      .finally(() => {
        this.#running = undefined
      })
  }

  /** Scans the board, in one round trip if anything happened since the last scan, else without a request. */
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
    // Every change before this answer has been received, so the counts agree if none was missed.
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
      if (await this.#options.onIdle({ isViewed: true })) this.#changed = true
    } catch (error) {
      this.#changed = true
      throw error
    }
  }
}

/** Returns whether the path is a direct child of the folder. */
function isIn(folder: string, path: string): boolean {
  return path.startsWith(folder) && !path.includes('/', folder.length)
}

function hasChanged(count: number, stat: { readonly cversion: number } | undefined): boolean {
  return stat !== undefined && stat.cversion !== count
}
