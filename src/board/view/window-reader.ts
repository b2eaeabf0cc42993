/**
 * Reads the parts of a long board that belong into the window, and moves its bounds.
 *
 * - **The window grows** when few of its jobs still wait, and when a caller finds no job in it to claim: the reader reads on behind
 *   its end. A caller that can claim no job of the whole board finally has the whole board in the view.
 * - **The window shrinks** when it has become twice as long, or larger than its limit of bytes, because newly posted jobs of a
 *   higher priority enter it: its end moves towards the head.
 * - **The horizon moves**: shortly before the horizon the reader reads on by due time. If more jobs have become due than it has
 *   read, the board is listed again.
 */
import { NotConnected } from '../../core/errors.ts'
import { MAX_TIMER_MS, sleep } from '../../core/time.ts'
import type { BoardSections, JobSummary } from '../backend.ts'
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { JobEntry } from '../model/entry.ts'
import type { JobIndex, ShownJob } from './job-index.ts'
import { toQueueKey, type ViewListing, type Window, type WindowListing, wantsResources } from './window.ts'

/** The upper limit for the number of delayed jobs in one read. */
const MAX_AHEAD = 2_000
/** The time before the horizon at which the reader reads on. */
const LEAD_MS = 1_000
/** The pause after an error. */
const RETRY_PAUSE_MS = 1_000
/** The size that is assumed of a posting before any was read, in bytes. */
const USUAL_BYTES = 1_024

export interface WindowReaderOptions {
  readonly sections: BoardSections
  readonly window: Window
  readonly index: JobIndex
  readonly now: () => number
  /** Whether jobs may be chosen from the view: there is no gap. */
  readonly isCurrent: () => boolean
  /** Called when a part was read. */
  readonly onRead: () => void
  /** Lists the board anew. */
  readonly resync: () => void
  readonly onError: (error: unknown) => void
  readonly signal: AbortSignal
}

export class WindowReader {
  readonly #options: WindowReaderOptions
  /** The number of delayed jobs in one read. */
  readonly #ahead: number
  /** The size above which the window shrinks; larger after a caller found no job to claim in less. */
  #room: { readonly jobs: number; readonly bytes: number }
  /** The number of waiting jobs when the window last shrank because of its bytes: until there are fewer, no more jobs fit. */
  #fitting = Number.POSITIVE_INFINITY
  /**
   * The number of read requests up to which postings are read for a caller that found no job to claim: their size is not known
   * yet. Requests after it do not count: on a busy board there are always some, and the window would never shrink.
   */
  #growingUntil: number | undefined
  #reading: Promise<boolean> | undefined
  /** Counts listings of the board: an answer to what was asked before the last one is ignored. */
  #listings = 0
  /** The time at which to read on by due time, on the backend's clock. */
  #readAheadAt = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(options: WindowReaderOptions) {
    const { window: jobs, windowBytes: bytes } = options.sections
    this.#options = options
    this.#ahead = Math.min(MAX_AHEAD, Math.max(2, Math.ceil(jobs / 2)))
    this.#room = { jobs: 2 * jobs, bytes }
  }

  /**
   * Reads everything that a view needs to begin with: two round trips, and on Redis some more for a long window. Claimed jobs are
   * asked for first: a job that is released between two answers would be in neither if they were asked for last, and a job that
   * is claimed between them is reported as a change.
   */
  async list(known: readonly string[]): Promise<ViewListing> {
    const { sections, now } = this.#options
    const before = now()
    const claimed = await sections.claimed()
    const [head, soon, statuses] = await Promise.all([
      sections.range({ limit: sections.window, due: true }),
      sections.delayed({ after: before, limit: this.#ahead }),
      known.length > 0 ? sections.statusOf(known) : [],
    ])
    // The local estimate of the server's clock may be ahead of it before the first answer.
    const after = Math.min(before, head.at)
    const resting = after < before ? await sections.delayed({ after, limit: this.#ahead }) : soon
    const summaries = new Map([...claimed, ...head.jobs, ...resting].map((summary) => [summary.id, summary]))
    const those = (status: (typeof statuses)[number]) => new Set(known.filter((_, index) => statuses[index] === status))
    const ids = (which: (summary: JobSummary) => boolean) => [...summaries.values()].filter(which).map(({ id }) => id)
    return {
      jobs: [...summaries.keys()],
      claimed: new Set(ids((summary) => summary.claimed)),
      cancelled: new Set(ids((summary) => summary.cancelled)),
      trashed: those('trashed'),
      window: {
        summaries,
        asked: new Set(known),
        outside: those('there'),
        end: head.end ? undefined : head.jobs.at(-1),
        horizon: this.#horizonAfter(resting, after),
      },
    }
  }

  /** Sets the bounds that a listing has found, before the index takes the listing in. */
  begin(listing: WindowListing): void {
    const { window, sections } = this.#options
    this.#listings += 1
    this.#room = { jobs: 2 * sections.window + listing.summaries.size, bytes: sections.windowBytes }
    this.#fitting = Number.POSITIVE_INFINITY
    this.#growingUntil = undefined
    window.reset(listing)
    this.#setAlarm(listing.horizon - LEAD_MS)
  }

  /** Grows or shrinks the window where that is due. Called after changes; costs nothing otherwise. */
  tend(): void {
    const { sections, window, index, now, isCurrent, signal } = this.#options
    if (this.#reading || !isCurrent() || signal.aborted) return
    const { bytes } = index.queue
    if (this.#growingUntil !== undefined && index.toRead.hasRead(this.#growingUntil)) {
      this.#growingUntil = undefined
      this.#room = { ...this.#room, bytes: Math.max(this.#room.bytes, bytes + sections.windowBytes) }
    }
    if (index.size <= sections.window && bytes <= sections.windowBytes)
      this.#room = { jobs: 2 * sections.window, bytes: sections.windowBytes }
    else if (index.size > this.#room.jobs || (bytes > this.#room.bytes && this.#growingUntil === undefined))
      this.#shrink()
    if (now() >= this.#readAheadAt) void this.#read(() => this.#readAhead())
    else if (window.end && index.toRead.isEmpty && this.#isHalfEmpty) void this.#read(() => this.#readOn())
  }

  /** Returns whether a caller wants more jobs at once than a window of this size shows, and there are more. */
  isTooShortFor(jobs: number): boolean {
    const { sections, window } = this.#options
    return window.end !== undefined && sections.window < jobs && this.#waiting < jobs
  }

  /** Reads on behind the end for a caller that finds nothing to claim. Resolves with false where there is nothing to read. */
  async readOn(): Promise<boolean> {
    if (!this.#options.window.end && !this.#reading) return false
    return this.#reading ?? this.#read(() => this.#readOn({ starved: true }))
  }

  /** Keeps the job in the view until the pin is disposed. */
  pin(entry: JobEntry): Disposable {
    const { window, index } = this.#options
    window.pinned.add(entry)
    return {
      [Symbol.dispose]: () => {
        window.pinned.delete(entry)
        index.settle(entry)
      },
    }
  }

  /** Reads until everything before the job is in the view. The job has to be pinned. */
  async readUpTo(entry: JobEntry): Promise<void> {
    const { window } = this.#options
    for (let at = toQueueKey(entry); at && window.end && compareClaimOrder(window.end, at) < 0; ) {
      if (!(await this.readOn())) return
    }
  }

  /** Reads again what stands before the pinned jobs: after a listing the window has its usual length. */
  readUpToPinned(): void {
    for (const entry of this.#options.window.pinned) if (wantsResources(entry)) void this.readUpTo(entry)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  /** The number of jobs of the view that are unclaimed and due. */
  get #waiting(): number {
    const { queue } = this.#options.index
    return queue.size - queue.delayedCount
  }

  get #isHalfEmpty(): boolean {
    const { sections, index } = this.#options
    const { bytes } = index.queue
    return this.#waiting < Math.min(sections.window / 2, this.#fitting) && bytes < sections.windowBytes / 2
  }

  /** The number of further jobs for which the window has room. */
  get #free(): number {
    const { sections, index } = this.#options
    const { size, bytes } = index.queue
    const each = size > 0 ? Math.max(1, bytes / size) : USUAL_BYTES
    const byBytes = Math.ceil((sections.windowBytes - bytes) / each)
    return Math.max(1, Math.min(sections.window - this.#waiting, byBytes))
  }

  #read(read: () => Promise<void>): Promise<boolean> {
    const { window, index, isCurrent, onRead } = this.#options
    window.beginReading()
    const reading = this.#tryTo(read).finally(() => {
      this.#reading = undefined
      const posted = window.endReading()
      if (isCurrent()) {
        this.#show(posted)
        index.settleAll()
      }
      onRead()
    })
    this.#reading = reading
    return reading
  }

  async #tryTo(read: () => Promise<void>): Promise<boolean> {
    try {
      await read()
      return true
    } catch (error) {
      // Without a connection a retry is useless: the reconnect is a gap.
      if (error instanceof NotConnected) return false
      this.#options.onError(error)
      await sleep(RETRY_PAUSE_MS, { signal: this.#options.signal }).catch(() => undefined)
      return false
    }
  }

  async #readOn({ starved = false } = {}): Promise<void> {
    const { sections, window, index, isCurrent } = this.#options
    const limit = starved ? Math.max(1, Math.min(sections.window, this.#affordable)) : this.#free
    const listing = this.#listings
    const { jobs: summaries, end } = await sections.range({ after: window.end, limit, due: true })
    if (listing !== this.#listings || !isCurrent()) return
    window.moveEnd(end ? undefined : summaries.at(-1))
    this.#fitting = Number.POSITIVE_INFINITY
    this.#show(summaries)
    const jobs = index.size + 2 * sections.window
    this.#room = { ...this.#room, jobs: starved ? Math.max(this.#room.jobs, jobs) : jobs }
    if (starved) this.#growingUntil = index.toRead.requests
  }

  /** The number of jobs of the average size that fit into the bytes of a window. */
  get #affordable(): number {
    const { sections, index } = this.#options
    const { size, bytes } = index.queue
    return Math.ceil(sections.windowBytes / (size > 0 ? Math.max(1, bytes / size) : USUAL_BYTES))
  }

  async #readAhead(): Promise<void> {
    const { sections, window, now, isCurrent, resync } = this.#options
    const listing = this.#listings
    const after = window.horizon
    const summaries = await sections.delayed({ after, limit: this.#ahead })
    if (listing !== this.#listings || !isCurrent()) return
    const horizon = this.#horizonAfter(summaries, after)
    if (horizon <= now()) {
      // More jobs have become due at once than were read: this read does not show which of them are first in claim order.
      resync()
      return
    }
    window.moveHorizon(horizon)
    // An unchanged horizon means that more jobs become due at one instant than are read: the reader waits until it has passed.
    this.#setAlarm(horizon === after ? horizon + 1 : horizon - LEAD_MS)
    this.#show(summaries)
  }

  /** Returns the time up to which all delayed jobs are known, given the first to become due: at the last instant there may be more. */
  #horizonAfter(summaries: readonly JobSummary[], after: number): number {
    const last = summaries.at(-1)
    if (!last || summaries.length < this.#ahead) return Number.POSITIVE_INFINITY
    return summaries.findLast(({ dueAt }) => dueAt < last.dueAt)?.dueAt ?? Math.max(after, last.dueAt - 1)
  }

  #setAlarm(at: number): void {
    this.#readAheadAt = at
    clearTimeout(this.#timer)
    if (at === Number.POSITIVE_INFINITY) return
    const left = Math.max(1, at - this.#options.now())
    this.#timer = setTimeout(() => this.tend(), Math.min(left, MAX_TIMER_MS))
    this.#timer.unref()
  }

  #show(summaries: readonly ShownJob[]): void {
    const { window, index } = this.#options
    for (const summary of summaries) if (window.judge(summary) !== 'outside') index.show(summary)
  }

  /** Removes jobs behind the end from the view; where that is not enough, moves the horizon and the end. */
  #shrink(): void {
    const { sections, window, index, now } = this.#options
    index.settleAll()
    const free = [...index.entries()].filter(
      (entry) => !entry.claimed && !window.pinned.has(entry) && !entry.isReserved,
    )
    const places = free.flatMap((entry) => {
      const at = toQueueKey(entry)
      return at ? [{ ...at, bytes: entry.stored?.bytes ?? 0 }] : []
    })
    const resting = places.filter(({ dueAt }) => dueAt > now()).sort((a, b) => a.dueAt - b.dueAt)
    const ahead = fitting(resting, { jobs: this.#ahead, bytes: sections.windowBytes / 2 })
    const soon = resting[ahead - 1]
    if (soon && resting.length > 2 * ahead) {
      const horizon = Math.min(window.horizon, soon.dueAt)
      window.moveHorizon(horizon)
      this.#setAlarm(horizon - LEAD_MS)
    }
    const inside = places.filter((at) => window.judge(at) === 'inside').sort(compareClaimOrder)
    const kept = fitting(inside, { jobs: sections.window, bytes: (sections.windowBytes * 3) / 4 })
    const last = inside[kept - 1]
    const isTooLarge = index.queue.bytes > this.#room.bytes
    if (last && (inside.length > 2 * sections.window || isTooLarge)) window.moveEnd(this.#notBeforePinned(last))
    index.settleAll()
    if (isTooLarge) this.#fitting = this.#waiting
    this.#room = {
      jobs: index.size + sections.window,
      bytes: Math.max(sections.windowBytes, index.queue.bytes + sections.windowBytes / 4),
    }
  }

  /** Returns the end, or the place of the last pinned job behind it that wants resources. */
  #notBeforePinned(end: ClaimOrderKey): ClaimOrderKey {
    let furthest = end
    for (const entry of this.#options.window.pinned) {
      const at = wantsResources(entry) ? toQueueKey(entry) : undefined
      if (at && compareClaimOrder(furthest, at) < 0) furthest = at
    }
    return furthest
  }
}

/** Returns how many of the first items fit; at least one. */
function fitting(items: readonly { readonly bytes: number }[], room: { jobs: number; bytes: number }): number {
  let bytes = 0
  const tooMany = items.findIndex((item, index) => {
    bytes += item.bytes
    return index >= room.jobs || (index > 0 && bytes > room.bytes)
  })
  return tooMany === -1 ? items.length : tooMany
}
