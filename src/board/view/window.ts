/**
 * The window: which jobs of a long board are in the view. A pure value; `window-reader.ts` moves it.
 *
 *     claim order  ●●●●●●●●●●●●●●●|○○○○○○○○○○○…       | the end: of unclaimed jobs behind it nothing is known
 *     by due time  ◐◐◐◐|◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌…         | the horizon: of jobs that are due later nothing is known
 *
 * In the view is
 *
 * - what is due and stands before the end,
 * - what is due before the horizon, wherever it stands, so that it is known when it becomes due,
 * - what is claimed, wherever it stands, because it holds resources.
 *
 * So whatever could block a job in the window is in the view too: the window is a prefix of the claim order. Jobs that are in
 * the view and stand behind the end are not given to anybody.
 *
 * **Nothing is missed while a part of the board is read.** Changes that arrive meanwhile are judged by the bounds of that moment.
 * So jobs that were found to be outside are judged again when the part has been read, and nothing leaves the view before.
 *
 * A short board is in the view as a whole: there is neither end nor horizon.
 */
import type { BoardListing, JobSummary, QueueKey } from '../backend.ts'
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { JobEntry, WindowStatus } from '../model/entry.ts'
import { toResourceWants } from '../model/resources.ts'
import { dueTime } from '../queue/queue.ts'

/** So far behind the horizon still belongs to it, in milliseconds: times are rounded on their way. */
const SLACK_MS = 5

/** What a view begins with: the board, or the window. */
export interface ViewListing extends BoardListing {
  readonly window?: WindowListing
}

export interface WindowListing {
  readonly spots: ReadonlyMap<string, JobSummary>
  /** The ids of jobs that were known before. */
  readonly asked: ReadonlySet<string>
  /** Those of {@link asked} that are on the board and not in the window. */
  readonly outside: ReadonlySet<string>
  readonly end: ClaimOrderKey | undefined
  readonly horizon: number
}

export class Window {
  /** Jobs that stay in the view until their pin is disposed. */
  readonly pinned = new Set<JobEntry>()
  readonly #now: () => number
  #end: ClaimOrderKey | undefined
  #horizon = Number.POSITIVE_INFINITY
  #reading = false
  /** Jobs that were posted while a part was read, and found to be outside. */
  #postedOutside: QueueKey[] = []

  constructor(options: { readonly now: () => number }) {
    this.#now = options.now
  }

  get end(): ClaimOrderKey | undefined {
    return this.#end
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
    return this.#end === undefined && this.#horizon === Number.POSITIVE_INFINITY && !this.#reading
  }

  /** Sets the bounds that a listing of the board has found. */
  reset({ end, horizon }: { readonly end: ClaimOrderKey | undefined; readonly horizon: number }): void {
    this.#end = end
    this.#horizon = horizon
    this.#postedOutside = []
  }

  moveEnd(end: ClaimOrderKey | undefined): void {
    this.#end = end
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

  /** Returns where a job stands that is on the board and unclaimed. */
  judge(at: QueueKey): WindowStatus {
    const isBeforeEnd = this.#end === undefined || compareClaimOrder(at, this.#end) <= 0
    if (at.dueAt <= this.#now()) return isBeforeEnd ? 'inside' : 'outside'
    if (at.dueAt > this.#horizon + SLACK_MS) return 'outside'
    return isBeforeEnd ? 'inside' : 'pinned'
  }

  /** Returns where a job stands that was just posted. */
  judgePosted(at: QueueKey): WindowStatus {
    const windowStatus = this.judge(at)
    if (windowStatus === 'outside' && this.#reading) this.#postedOutside.push(at)
    return windowStatus
  }

  /** Returns where a job of the view stands now; undefined where too little is known of it. */
  standingOf(entry: JobEntry): WindowStatus | undefined {
    const at = toQueueKey(entry)
    if (!at) return undefined
    const judged = this.judge(at)
    return judged === 'outside' && this.#mustStay(entry) ? 'pinned' : judged
  }

  #mustStay(entry: JobEntry): boolean {
    if (this.#reading || entry.claimed || entry.isReserved || this.pinned.has(entry)) return true
    // Where such a job stands now is known when it has been read.
    return entry.content === 'stale' || (entry.content === 'unread' && entry.windowStatus === 'pinned')
  }
}

/** Returns undefined for a job that is known by its id alone. */
export function toQueueKey({ stored, queueKey, cancelRequested }: JobEntry): QueueKey | undefined {
  if (!stored) return queueKey
  const { id, order, posting } = stored
  return { id, order, priority: posting.priority, dueAt: cancelRequested ? 0 : dueTime(stored) }
}

export function wantsResources({ stored }: JobEntry): boolean {
  if (!stored) return false
  const { exclusive, shared } = toResourceWants(stored.posting)
  return exclusive.length + shared.length > 0
}
