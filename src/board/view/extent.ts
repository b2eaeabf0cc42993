/**
 * The extent of a view: how much of the board it contains, and how callers get more of it. A view without a window contains the whole board.
 *
 * A job that a caller waits for is pinned: it stays in the view. If a caller finds nothing to claim, the next section is read.
 */
import type { Stoppable } from '../../core/async/abort-flag.ts'
import type { JobEntry } from '../model/entry.ts'
import type { ContentReader } from './content-reader.ts'
import type { JobIndex } from './job-index.ts'
import type { JobReports } from './job-reports.ts'
import type { Readiness } from './readiness.ts'
import type { Subscription } from './subscription.ts'
import { wantsResources } from './window.ts'
import type { WindowReader } from './window-reader.ts'

export interface ViewExtentOptions {
  readonly index: JobIndex
  readonly reports: Pick<JobReports, 'jobCount'>
  /** Absent where the view holds the whole board. */
  readonly windowReader: WindowReader | undefined
  readonly contentReader: Pick<ContentReader, 'isBusy' | 'start'>
  readonly subscription: Pick<Subscription, 'isOpen'>
  readonly readiness: Pick<Readiness, 'isCurrent' | 'whenSettled'>
  /** The signal that ends the background work. */
  readonly signal: AbortSignal
}

export class ViewExtent {
  readonly #options: ViewExtentOptions

  constructor(options: ViewExtentOptions) {
    this.#options = options
  }

  /** Whether everything that is on the board is in the view. A window leaves out jobs that wait for others. */
  get isWholeBoard(): boolean {
    const { index, reports, subscription } = this.#options
    if (!index.window) return subscription.isOpen
    return subscription.isOpen && index.window.isWholeBoard && index.size >= reports.jobCount
  }

  /**
   * Whether the view shows every job of the board, with its posting if that can be read. In a view with a window, a job that has just entered may be
   * old: it counts only when its posting is read.
   */
  get showsWholeBoard(): boolean {
    const { index, contentReader } = this.#options
    return this.isWholeBoard && !(index.window && contentReader.isBusy)
  }

  /** Whether the view contains all due jobs of the board with their postings, so that another section has none. */
  get isReadToEnd(): boolean {
    const { subscription, windowReader } = this.#options
    return subscription.isOpen && (windowReader?.isReadToEnd ?? true)
  }

  /** The queues of a view of some queues that have more due jobs on the board than in the view. */
  get continuedQueues(): readonly string[] {
    const { window } = this.#options.index
    return window?.scope.isRestricted ? [...window.ends.keys()] : []
  }

  /** Returns whether a caller wants more jobs than the window contains, while the board has more. */
  isTooShortFor(jobs: number): boolean {
    const { readiness, windowReader } = this.#options
    return readiness.isCurrent && windowReader?.isTooShortFor(jobs) === true
  }

  /** Whether there may be a next section that can be read now. */
  get canReadOn(): boolean {
    const { index, windowReader, readiness } = this.#options
    return windowReader !== undefined && index.window?.isComplete !== true && readiness.isCurrent
  }

  /**
   * Reads the next section for a caller that finds nothing to claim in the view. Resolves with false if there is none, or it cannot be
   * read now.
   */
  async readOn(options: { signal?: Stoppable | undefined } = {}): Promise<boolean> {
    const { index, windowReader, subscription, readiness } = this.#options
    if (!windowReader || !this.canReadOn) return false
    // A read under way whose jobs have all left the board does not count: nothing waits for it, and a caller that tries again at once would keep its answer
    // from arriving, and the whole process from doing anything else.
    const hasMore = !index.toRead.isEmpty || (await windowReader.readOn())
    // A view that was closed meanwhile must not be opened again: nothing would close it.
    if (!hasMore || !subscription.isOpen) return false
    await readiness.whenSettled(options)
    return true
  }

  /**
   * Keeps the job in the view until the pin is disposed. If the job wants resources, everything before it is kept, too. For a job outside the window
   * this takes one or two round trips, and one more for each section before it.
   */
  async pin(entry: JobEntry): Promise<Disposable> {
    const { index, windowReader, contentReader, readiness, signal } = this.#options
    if (!windowReader || entry.ended || entry.id === undefined) return { [Symbol.dispose]: () => undefined }
    const pin = windowReader.pin(entry)
    try {
      if (entry.windowStatus === 'outside') {
        index.addPinned(entry.id)
        contentReader.start()
        await readiness.whenSettled({ signal })
      }
      if (entry.windowStatus !== 'pinned' || !wantsResources(entry)) return pin
      let isRead: boolean
      do {
        isRead = await windowReader.readUpTo(entry)
        await readiness.whenSettled({ signal })
      } while (!isRead && !entry.ended)
      return pin
    } catch (error) {
      pin[Symbol.dispose]()
      throw error
    }
  }
}
