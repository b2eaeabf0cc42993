/**
 * The size of a window: when it has room for more jobs, and when it must shrink. It counts jobs, and bytes of their postings.
 *
 * - **There is room** when few of its jobs still wait. A caller that finds no job in it to claim makes it grow without that.
 * - **It must shrink** when newly posted jobs of a higher priority have made it twice as long, or larger than its limit in bytes.
 */
import type { BackendSections } from '../contract/index.ts'
import type { JobIndex } from './job-index.ts'

/** The assumed size of a posting before any was read, in bytes. */
const ASSUMED_POSTING_BYTES = 1_024

export interface WindowSizeOptions {
  readonly sections: Pick<BackendSections, 'window' | 'windowBytes'>
  readonly index: JobIndex
  /** Returns whether the view must contain the whole board. */
  readonly needsWholeBoard: () => boolean
}

interface Size {
  readonly jobs: number
  readonly bytes: number
}

const UNLIMITED: Size = { jobs: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

export class WindowSize {
  readonly #options: WindowSizeOptions
  readonly #usual: Size
  /** The size above which the window shrinks. It grows when a caller finds no job to claim in a window of this size. */
  #max: Size
  /** The number of waiting jobs after the window last shrank because of its bytes. No more jobs fit until fewer jobs wait. */
  #waitingAfterShrink = Number.POSITIVE_INFINITY
  /**
   * The number of the last read request for a caller that found no job to claim. Until it is answered, the size of its postings
   * is not known, and the window does not shrink because of bytes. Later requests do not count, because a busy board always
   * has some: the window would never shrink.
   */
  #growingUntil: number | undefined

  constructor(options: WindowSizeOptions) {
    const { window, windowBytes } = options.sections
    this.#options = options
    this.#usual = { jobs: 2 * window, bytes: windowBytes }
    this.#max = this.#usual
  }

  /** The number of jobs of the view that are unclaimed and due. */
  get waiting(): number {
    const { queue } = this.#options.index
    return queue.size - queue.delayedCount
  }

  get isHalfEmpty(): boolean {
    const { sections, index } = this.#options
    const { bytes } = index.queue
    return this.waiting < Math.min(sections.window / 2, this.#waitingAfterShrink) && bytes < sections.windowBytes / 2
  }

  /** Whether the postings have more bytes than the window may have now. */
  get isOverBytes(): boolean {
    return this.#options.index.queue.bytes > this.#max.bytes
  }

  /** Whether the view must keep more jobs than there is room for, because no caller accepts the first jobs, or keys take turns. */
  get mustOutgrow(): boolean {
    const { sections, needsWholeBoard } = this.#options
    return this.#growingUntil !== undefined || this.#max.bytes > sections.windowBytes || needsWholeBoard()
  }

  /** The number of further jobs for which the window has room. */
  get roomForJobs(): number {
    const { sections, index } = this.#options
    const byBytes = Math.ceil((sections.windowBytes - index.queue.bytes) / this.#bytesOfOne)
    return Math.max(1, Math.min(sections.window - this.waiting, byBytes))
  }

  /** The number of jobs with which the window grows for a caller that found no job to claim: as many as fit into an empty window. */
  get jobsToGrow(): number {
    const { sections } = this.#options
    return Math.max(1, Math.min(sections.window, Math.ceil(sections.windowBytes / this.#bytesOfOne)))
  }

  get #bytesOfOne(): number {
    const { size, bytes } = this.#options.index.queue
    return size > 0 ? Math.max(1, bytes / size) : ASSUMED_POSTING_BYTES
  }

  /** Begins with a listing of so many jobs. */
  reset(listed: number): void {
    const { jobs, bytes } = this.#usual
    this.#max = { jobs: jobs + listed, bytes }
    this.#waitingAfterShrink = Number.POSITIVE_INFINITY
    this.#growingUntil = undefined
  }

  /** Adapts the size after changes, and returns whether the window must shrink. */
  adapt(): boolean {
    const { sections, index, needsWholeBoard } = this.#options
    const { bytes } = index.queue
    if (this.#growingUntil !== undefined && index.toRead.hasRead(this.#growingUntil)) {
      this.#growingUntil = undefined
      this.#max = { ...this.#max, bytes: Math.max(this.#max.bytes, bytes + sections.windowBytes) }
    }
    if (index.size <= sections.window && bytes <= sections.windowBytes) this.#max = this.#usual
    else if (needsWholeBoard()) this.#max = UNLIMITED
    else return index.size > this.#max.jobs || (bytes > this.#max.bytes && this.#growingUntil === undefined)
    return false
  }

  /** Notes that more jobs were read. @param options.starved whether for a caller that found no job to claim */
  noteGrown({ starved }: { readonly starved: boolean }): void {
    const { sections, index } = this.#options
    const jobs = index.size + 2 * sections.window
    this.#waitingAfterShrink = Number.POSITIVE_INFINITY
    this.#max = { ...this.#max, jobs: starved ? Math.max(this.#max.jobs, jobs) : jobs }
    if (starved) this.#growingUntil = index.toRead.requests
  }

  /** Notes that the window has shrunk. @param options.isOverBytes whether because of {@link isOverBytes} */
  noteShrunk({ isOverBytes }: { readonly isOverBytes: boolean }): void {
    const { sections, index } = this.#options
    if (isOverBytes) this.#waitingAfterShrink = this.waiting
    this.#max = {
      jobs: index.size + sections.window,
      bytes: Math.max(sections.windowBytes, index.queue.bytes + sections.windowBytes / 4),
    }
  }
}
