/**
 * The window: the bounds that determine which jobs of a long board are in the view. It does no I/O; `window-reader.ts` moves it.
 *
 *     claim order  ●●●●●●●●●●●●●●●|○○○○○○○○○○○…       | the end: of unclaimed jobs behind it nothing is known
 *     by due time  ◐◐◐◐|◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌…         | the horizon: of jobs that are due later nothing is known
 *
 * The view holds
 *
 * - the due jobs before the end,
 * - the jobs that become due before the horizon, at any place in claim order, so that they are known when they become due,
 * - the claimed jobs, at any place, because they hold resources.
 *
 * So each job that could block a job in the window is in the view too: the window is a prefix of the claim order. Jobs of the view
 * that are behind the end are not offered for claiming.
 *
 * **No job is missed while a part of the board is read.** Changes that arrive meanwhile are judged by the bounds of that moment.
 * So jobs that were found to be outside are judged again after the read, and no job leaves the view before.
 *
 * A short board is in the view as a whole: there is neither end nor horizon.
 *
 * A view of some queues (`view-scope.ts`) has an end in each of them, and holds no unclaimed jobs of the others.
 */
import type { BoardListing, JobSummary, QueueKey } from '../contract/index.ts'
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { JobEntry, WindowStatus } from '../model/entry.ts'
import { queueOf } from '../model/queues.ts'
import { toResourceWants } from '../model/resources.ts'
import { dueTime } from '../queue/queue.ts'
import type { ViewScope } from './view-scope.ts'

/** The tolerance behind the horizon within which a job still belongs to the view: times are rounded in transit. */
const SLACK_MS = 5

/** A listing with which a view begins: of the board, or of the window. */
export interface ViewListing extends BoardListing {
  readonly window?: WindowListing
}

export interface WindowListing {
  readonly summaries: ReadonlyMap<string, JobSummary>
  /** The ids of jobs that were known before. */
  readonly asked: ReadonlySet<string>
  /** The ids of {@link asked} that are on the board and not in the window. */
  readonly outside: ReadonlySet<string>
  /** The end in each section that was not read to its end. */
  readonly ends: ReadonlyMap<string, ClaimOrderKey>
  readonly horizon: number
}

export class Window {
  /** Jobs that stay in the view until their pin is disposed. */
  readonly pinned = new Set<JobEntry>()
  readonly scope: ViewScope
  readonly #now: () => number
  readonly #ends = new Map<string, ClaimOrderKey>()
  #horizon = Number.POSITIVE_INFINITY
  #reading = false
  /** Jobs that were posted while a part was read, and found to be outside. */
  #postedOutside: QueueKey[] = []

  constructor({ scope, now }: { readonly scope: ViewScope; readonly now: () => number }) {
    this.scope = scope
    this.#now = now
  }

  /** The sections that the view does not hold to their ends, with the ends of the window in them. */
  get ends(): ReadonlyMap<string, ClaimOrderKey> {
    return this.#ends
  }

  get horizon(): number {
    return this.#horizon
  }

  /** Whether a part of the board is being read. */
  get isReading(): boolean {
    return this.#reading
  }

  /** Whether the whole board is in the view. */
  get isWholeBoard(): boolean {
    return this.isComplete && !this.scope.isRestricted
  }

  /** Whether all jobs of the queues of the view are in it. */
  get isComplete(): boolean {
    return this.#ends.size === 0 && this.#horizon === Number.POSITIVE_INFINITY && !this.#reading
  }

  /** Sets the bounds that a listing of the board has found. */
  reset({ ends, horizon }: Pick<WindowListing, 'ends' | 'horizon'>): void {
    this.#ends.clear()
    for (const [section, end] of ends) this.#ends.set(section, end)
    this.#horizon = horizon
    this.#postedOutside = []
  }

  /** Returns the end of the window in the section of a job; undefined if it holds the section to its end. */
  endFor(at: Pick<QueueKey, 'queue'>): ClaimOrderKey | undefined {
    return this.#ends.get(this.scope.sectionOf(at))
  }

  moveEnd(section: string, end: ClaimOrderKey | undefined): void {
    if (end) this.#ends.set(section, end)
    else this.#ends.delete(section)
  }

  moveHorizon(horizon: number): void {
    this.#horizon = horizon
  }

  beginReading(): void {
    this.#reading = true
  }

  /** Returns the jobs that have to be judged again. */
  endReading(): readonly QueueKey[] {
    const posted = this.#postedOutside
    this.#reading = false
    this.#postedOutside = []
    return posted
  }

  /** Returns the window status of an unclaimed job on the board. */
  judge(at: QueueKey): WindowStatus {
    const end = this.#ends.size === 0 ? undefined : this.endFor(at)
    const isBeforeEnd = end === undefined || compareClaimOrder(at, end) <= 0
    // A job that waits for others is brought in when they have ended.
    if (at.dueAt === Number.POSITIVE_INFINITY || this.#isForeign(at)) return 'outside'
    if (at.dueAt <= this.#now()) return isBeforeEnd ? 'inside' : 'outside'
    if (at.dueAt > this.#horizon + SLACK_MS) return 'outside'
    return isBeforeEnd ? 'inside' : 'pinned'
  }

  /** Returns the window status of a job that was just posted. */
  judgePosted(at: QueueKey): WindowStatus {
    const windowStatus = this.judge(at)
    if (windowStatus === 'outside' && this.#reading) this.#postedOutside.push(at)
    return windowStatus
  }

  /** Returns the current window status of a job of the view; undefined where too little is known of it. */
  statusOf(entry: JobEntry): WindowStatus | undefined {
    const at = toQueueKey(entry)
    if (!at) return undefined
    const judged = this.judge(at)
    return judged === 'outside' && this.#mustStay(entry) ? 'pinned' : judged
  }

  #isForeign(at: QueueKey): boolean {
    return this.scope.isRestricted && !this.scope.readsSection(queueOf(at))
  }

  #mustStay(entry: JobEntry): boolean {
    if (this.#reading || entry.claimed || entry.isReserved || this.pinned.has(entry)) return true
    // The place of such a job is known only after it has been read.
    return entry.content === 'stale' || (entry.content === 'unread' && entry.windowStatus === 'pinned')
  }
}

/** Returns the place of a job; undefined if only its id is known. */
export function toQueueKey({ stored, queueKey, cancelRequested }: JobEntry): QueueKey | undefined {
  if (!stored) return queueKey
  const { id, order, posting } = stored
  const { priority, queue } = posting
  return { id, order, priority, queue, dueAt: cancelRequested ? 0 : dueTime(stored) }
}

export function wantsResources({ stored }: JobEntry): boolean {
  if (!stored) return false
  const { exclusive, shared } = toResourceWants(stored.posting)
  return exclusive.length + shared.length > 0
}
