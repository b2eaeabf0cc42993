/**
 * Reads the parts of a long board that belong in the window, and moves the bounds of the window.
 *
 * - **The window grows** when it has room (`window-size.ts`), and when a caller finds no job in it to claim: the reader reads more
 *   jobs after its end. If the caller can claim no job of the board, the view finally contains the whole board. It grows in the same
 *   way while keys of limits take turns.
 * - **The window shrinks** when it has become too large: its end moves towards the head.
 * - **The horizon moves**: shortly before the horizon the reader reads the next delayed jobs. If more jobs have become due than it
 *   has read, the board is listed again.
 */
import { NotConnected } from '../../core/errors.ts'
import { sleep, startTimer } from '../../core/time.ts'
import type { BackendSections, JobSummary } from '../contract/index.ts'
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { JobEntry } from '../model/entry.ts'
import { toKeptBytes } from '../model/posting/posting-codec.ts'
import { queueOf } from '../model/queues.ts'
import type { JobIndex, SectionJob } from './job-index.ts'
import { ALL_QUEUES } from './view-scope.ts'
import { toQueueKey, type ViewListing, type Window, type WindowListing, wantsResources } from './window.ts'
import { WindowSize } from './window-size.ts'

/** The upper limit for the number of delayed jobs in one read. */
const MAX_DELAYED_PER_READ = 2_000
/** The time before the horizon at which the reader reads the next delayed jobs. */
const READ_AHEAD_MS = 1_000
/** The pause after an error. */
const RETRY_PAUSE_MS = 1_000

export interface WindowReaderOptions {
  readonly sections: BackendSections
  readonly window: Window
  readonly index: JobIndex
  readonly now: () => number
  /** Returns whether jobs may be chosen from the view, because there is no gap. */
  readonly isCurrent: () => boolean
  /** Returns whether the view must contain the whole board: keys that take turns may have jobs anywhere in claim order. */
  readonly needsWholeBoard: () => boolean
  /** Called after each read, also after a failed read. */
  readonly onRead: () => void
  /** Lists the board again. */
  readonly resync: () => void
  readonly onError: (error: unknown) => void
  readonly signal: AbortSignal
}

export class WindowReader {
  readonly #options: WindowReaderOptions
  /** The number of delayed jobs in one read. */
  readonly #delayedPerRead: number
  readonly #size: WindowSize
  /** The sections of the board that the view reads: the queues of its scope, or all queues as one. With a pattern, queues that begin later are added. */
  #parts: readonly string[] = [ALL_QUEUES]
  #reading: Promise<boolean> | undefined
  /** The number of the last read request of the part with which the board's end was reached. */
  #requestsAtEnd = 0
  /** The number of listings of the board. The answer to a read that began before the last listing is ignored. */
  #listings = 0
  /** The time at which to read the next delayed jobs, on the backend's clock. */
  #readAheadAt = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  /** Set while reads would fail, because there is no connection. */
  #pause: NodeJS.Timeout | undefined

  constructor(options: WindowReaderOptions) {
    this.#options = options
    this.#delayedPerRead = Math.min(MAX_DELAYED_PER_READ, Math.max(2, Math.ceil(options.sections.window / 2)))
    this.#size = new WindowSize(options)
  }

  /**
   * Reads everything that a view needs at first: two round trips, and on Redis some more for a long window. Claimed jobs are read
   * first. If they were read last, a job that is released between the reads would be in neither answer. A job that is claimed
   * between the reads is reported as a change.
   */
  async list(known: readonly string[]): Promise<ViewListing> {
    const { sections, now } = this.#options
    const before = now()
    const claimed = (await sections.claimed()).filter((summary) => this.#mustShowClaimed(summary))
    this.#parts = await this.#options.window.scope.sections(sections)
    const limit = Math.ceil(sections.window / Math.max(1, this.#parts.length))
    const [heads, firstDelayed, statuses] = await Promise.all([
      Promise.all(this.#parts.map((part) => sections.range({ queue: toQueueOf(part), limit, due: true }))),
      this.#readDelayed(before),
      known.length > 0 ? sections.statusOf(known) : [],
    ])
    // Before the first answer, the local estimate of the server's clock may be ahead of that clock.
    const after = Math.min(before, ...heads.map(({ at }) => at))
    const delayed = after < before ? await this.#readDelayed(after) : firstDelayed
    const due = heads.flatMap(({ jobs }) => jobs)
    const summaries = new Map([...claimed, ...due, ...delayed].map((summary) => [summary.id, summary]))
    const ends = new Map<string, ClaimOrderKey>()
    for (const [index, { jobs, end }] of heads.entries()) {
      const last = end ? undefined : jobs.at(-1)
      if (last) ends.set(this.#parts[index] ?? ALL_QUEUES, last)
    }
    const idsWithStatus = (status: (typeof statuses)[number]) =>
      new Set(known.filter((_, index) => statuses[index] === status))
    const idsWhere = (isWanted: (summary: JobSummary) => boolean) =>
      [...summaries.values()].filter(isWanted).map(({ id }) => id)
    return {
      jobs: [...summaries.keys()],
      claimed: new Set(idsWhere((summary) => summary.claimed)),
      cancelled: new Set(idsWhere((summary) => summary.cancelled)),
      trashed: idsWithStatus('trashed'),
      window: {
        summaries,
        asked: new Set(known),
        outside: idsWithStatus('there'),
        ends,
        horizon: this.#horizonAfter(delayed, after),
      },
    }
  }

  #readDelayed(after: number): Promise<readonly JobSummary[]> {
    const { sections, window } = this.#options
    const queues = window.scope.isRestricted ? this.#parts : undefined
    return sections.delayed({ queues, after, limit: this.#delayedPerRead })
  }

  /** Returns whether a claimed job belongs to the view: others, of queues that it leaves out, hold nothing for which its jobs could wait. */
  #mustShowClaimed(summary: JobSummary): boolean {
    const { scope } = this.#options.window
    return !scope.isRestricted || summary.holds === true || scope.includes(queueOf(summary))
  }

  /** Sets the bounds of the window from a listing, before the index applies the listing. */
  begin(listing: WindowListing): void {
    this.#listings += 1
    this.#size.reset(listing.summaries.size)
    this.#endPause()
    this.#options.window.reset(listing)
    this.#afterSearch(listing.horizon - READ_AHEAD_MS)
  }

  /** Grows or shrinks the window if needed. Called after changes; does almost nothing if neither is needed. */
  tend(): void {
    const { window, index, now, isCurrent, needsWholeBoard, signal } = this.#options
    if (this.#reading || this.#pause || !isCurrent() || signal.aborted) return
    if (needsWholeBoard() && window.ends.size > 0) {
      if (index.toRead.isEmpty) void this.#read(() => this.#readOn({ starved: true }))
      return
    }
    if (this.#size.adapt()) this.#shrink()
    if (now() >= this.#readAheadAt) void this.#read(() => this.#readAhead())
    else if (window.ends.size > 0 && index.toRead.isEmpty && this.#hasHalfEmptyPart())
      void this.#read(() => this.#readOn())
  }

  /** Returns whether a caller wants more jobs at once than the window shows, while the board has more. */
  isTooShortFor(jobs: number): boolean {
    const { sections, window } = this.#options
    return window.ends.size > 0 && sections.window < jobs && this.#size.waiting < jobs
  }

  /** Whether all due jobs of the board are in the view, and their postings read: reading on finds no more. */
  get isReadToEnd(): boolean {
    const { window, index } = this.#options
    return window.ends.size === 0 && index.toRead.hasRead(this.#requestsAtEnd)
  }

  /** Whether the view must keep more jobs than there is room for. */
  get mustOutgrow(): boolean {
    return this.#size.mustOutgrow
  }

  /** Reads more jobs for a caller that finds none to claim. Resolves to false if there are no more, or the read failed. */
  async readOn(): Promise<boolean> {
    if (this.#pause || (this.#options.window.ends.size === 0 && !this.#reading)) return false
    return this.#reading ?? this.#read(() => this.#readOn({ starved: true }))
  }

  /** Keeps the job in the view until the pin is disposed. */
  pin(entry: JobEntry): Disposable {
    const { window, index } = this.#options
    window.pinned.add(entry)
    return {
      [Symbol.dispose]: () => {
        window.pinned.delete(entry)
        index.updateWindowStatus(entry)
      },
    }
  }

  /** Reads until all jobs before this job in claim order are in the view. The job must be pinned. Resolves with false if a gap has ended the read. */
  async readUpTo(entry: JobEntry): Promise<boolean> {
    const { window, isCurrent } = this.#options
    const at = toQueueKey(entry)
    // After a gap, the answers to reads are ignored until the board is listed: the end would stay where it is, and each read would be followed by another one.
    for (let end = at && window.endFor(at); at && end && compareClaimOrder(end, at) < 0; end = window.endFor(at)) {
      if (!isCurrent()) return false
      if (!(await this.readOn())) return isCurrent()
    }
    return true
  }

  /** Reads the jobs before the pinned jobs again, after a listing has set the window to its usual length. */
  readUpToPinned(): void {
    for (const entry of this.#options.window.pinned) if (wantsResources(entry)) void this.readUpTo(entry)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#endPause()
  }

  #read(read: () => Promise<void>): Promise<boolean> {
    const { window, index, isCurrent, onRead } = this.#options
    window.beginReading()
    const reading = this.#readOrPause(read).finally(() => {
      this.#reading = undefined
      const posted = window.endReading()
      if (isCurrent()) {
        this.#show(posted)
        index.updateWindowStatuses()
      }
      onRead()
    })
    this.#reading = reading
    return reading
  }

  async #readOrPause(read: () => Promise<void>): Promise<boolean> {
    try {
      await read()
      return true
    } catch (error) {
      // Without a connection a retry is useless: the board is listed again after the reconnect.
      if (error instanceof NotConnected) {
        this.#beginPause()
        return false
      }
      this.#options.onError(error)
      await sleep(RETRY_PAUSE_MS, { signal: this.#options.signal }).catch(() => undefined)
      return false
    }
  }

  /**
   * Reads nothing until the board is listed again, which follows the connection's return, or for a second. Without the pause each read would fail
   * at once and be followed by another one in the same turn of the event loop, so that no timer of the process would run.
   */
  #beginPause(): void {
    this.#endPause()
    if (this.#options.signal.aborted) return
    this.#pause = startTimer(() => {
      this.#pause = undefined
      this.#options.onRead()
    }, RETRY_PAUSE_MS).unref()
  }

  #endPause(): void {
    clearTimeout(this.#pause)
    this.#pause = undefined
  }

  async #readOn({ starved = false } = {}): Promise<void> {
    const { sections, window, index, isCurrent } = this.#options
    const ends = [...window.ends].filter(([part]) => starved || this.#isHalfEmpty(part))
    const room = starved ? this.#size.jobsToGrow : this.#size.roomForJobs
    const limit = Math.ceil(room / Math.max(1, ends.length))
    const listing = this.#listings
    const parts = await Promise.all(
      ends.map(([part, after]) => sections.range({ queue: toQueueOf(part), after, limit, due: true })),
    )
    if (listing !== this.#listings || !isCurrent()) return
    for (const [index, { jobs, end }] of parts.entries()) {
      window.moveEnd(ends[index]?.[0] ?? ALL_QUEUES, end ? undefined : jobs.at(-1))
      this.#show(jobs)
    }
    this.#requestsAtEnd = index.toRead.requests
    this.#size.noteGrown({ starved })
  }

  async #readAhead(): Promise<void> {
    const { sections, window, now, isCurrent, resync } = this.#options
    const listing = this.#listings
    const after = window.horizon
    const parts = await window.scope.sections(sections)
    if (listing !== this.#listings || !isCurrent()) return
    this.#addParts(parts)
    const summaries = await this.#readDelayed(after)
    if (listing !== this.#listings || !isCurrent()) return
    const horizon = this.#horizonAfter(summaries, after)
    if (horizon <= now()) {
      // More jobs have become due at once than were read: this read does not show which of them are first in claim order.
      resync()
      return
    }
    window.moveHorizon(horizon)
    // The horizon is unchanged if more jobs become due at one instant than one read returns: the reader waits until it has passed.
    this.#afterSearch(horizon === after ? horizon + 1 : horizon - READ_AHEAD_MS)
    this.#show(summaries)
  }

  /** Returns the time up to which all delayed jobs are known after this read. More jobs may become due with the last one. */
  #horizonAfter(summaries: readonly JobSummary[], after: number): number {
    const last = summaries.at(-1)
    if (!last || summaries.length < this.#delayedPerRead) return Number.POSITIVE_INFINITY
    return summaries.findLast(({ dueAt }) => dueAt < last.dueAt)?.dueAt ?? Math.max(after, last.dueAt - 1)
  }

  #afterSearch(at: number): void {
    this.#readAheadAt = at
    clearTimeout(this.#timer)
    if (at === Number.POSITIVE_INFINITY) return
    const left = Math.max(1, at - this.#options.now())
    this.#timer = startTimer(() => this.tend(), left)
    this.#timer.unref()
  }

  #show(summaries: readonly SectionJob[]): void {
    const { window, index } = this.#options
    for (const summary of summaries) if (window.judge(summary) !== 'outside') index.addFromSection(summary)
  }

  /** Removes jobs outside the window from the view. If that is not enough, moves the horizon and the end towards the head. */
  #shrink(): void {
    const { sections, window, index, now } = this.#options
    index.updateWindowStatuses()
    const free = [...index.entries()].filter(
      (entry) => !entry.claimed && !window.pinned.has(entry) && !entry.isReserved,
    )
    const places = free.flatMap((entry) => {
      const at = toQueueKey(entry)
      return at ? [{ ...at, bytes: entry.stored ? toKeptBytes(entry.stored) : 0 }] : []
    })
    const delayed = places.filter(({ dueAt }) => dueAt > now()).sort((a, b) => a.dueAt - b.dueAt)
    const keptDelayed = countFitting(delayed, { jobs: this.#delayedPerRead, bytes: sections.windowBytes / 2 })
    const lastKept = delayed[keptDelayed - 1]
    if (lastKept && delayed.length > 2 * keptDelayed) {
      const horizon = Math.min(window.horizon, lastKept.dueAt)
      window.moveHorizon(horizon)
      this.#afterSearch(horizon - READ_AHEAD_MS)
    }
    const inside = places.filter((at) => window.judge(at) === 'inside')
    this.#addParts(inside.map((at) => window.scope.sectionOf(at)))
    const { isOverBytes } = this.#size
    for (const part of this.#parts) {
      const own = inside.filter((at) => window.scope.sectionOf(at) === part).sort(compareClaimOrder)
      const jobs = sections.window / this.#parts.length
      const kept = countFitting(own, { jobs, bytes: (sections.windowBytes * 3) / 4 / this.#parts.length })
      const last = own[kept - 1]
      if (last && (own.length > 2 * jobs || isOverBytes)) window.moveEnd(part, this.#endAfterPinned(part, last))
    }
    index.updateWindowStatuses()
    this.#size.noteShrunk({ isOverBytes })
  }

  /** Returns this end of a section, or the place of the last pinned job after it that wants resources. */
  #endAfterPinned(part: string, end: ClaimOrderKey): ClaimOrderKey {
    const { window } = this.#options
    let furthest = end
    for (const entry of window.pinned) {
      const at = wantsResources(entry) ? toQueueKey(entry) : undefined
      if (at && window.scope.sectionOf(at) === part && compareClaimOrder(furthest, at) < 0) furthest = at
    }
    return furthest
  }

  #addParts(parts: readonly string[]): void {
    this.#parts = [...new Set([...this.#parts, ...parts])]
  }

  /** Returns whether there is room for more jobs, of the board or of one of several queues. */
  #hasHalfEmptyPart(): boolean {
    if (this.#parts.length <= 1) return this.#size.isHalfEmpty
    for (const part of this.#options.window.ends.keys()) if (this.#isHalfEmpty(part)) return true
    return false
  }

  /** Returns whether few jobs of a section wait. One with fewer than its share is read on although the others are full. */
  #isHalfEmpty(part: string): boolean {
    if (this.#size.isHalfEmpty) return true
    const { sections, index } = this.#options
    const share = sections.window / this.#parts.length
    return this.#parts.length > 1 && index.queue.countWaiting(part) < share / 4 && !this.#size.isOverBytes
  }
}

/** Returns the queue of a section; undefined for the section of all queues. */
function toQueueOf(section: string): string | undefined {
  return section === ALL_QUEUES ? undefined : section
}

/** Returns how many of the first items fit into the limits; at least one, if there is any. */
function countFitting(items: readonly { readonly bytes: number }[], room: { jobs: number; bytes: number }): number {
  let bytes = 0
  const tooMany = items.findIndex((item, index) => {
    bytes += item.bytes
    return index >= room.jobs || (index > 0 && bytes > room.bytes)
  })
  return tooMany === -1 ? items.length : tooMany
}
