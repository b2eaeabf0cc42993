/**
 * The view as a window: of a long board it holds the head, and says of every job whether it belongs there.
 *
 *     claim order  ●●●●●●●●●●●●●●●|○○○○○○○○○○○…       | the end: behind it, of what is unclaimed nothing is known
 *     by due time  ◐◐◐◐|◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌◌…         | the horizon: of what rests longer nothing is known
 *
 * In the view is what is due and stands before the end; what rests until before the horizon, wherever it stands, so that
 * it is there when it wakes; and what is claimed, wherever it stands, because it holds resources. So whatever could block a
 * job that is shown is shown too: the window is a prefix of the claim order, of those jobs that count. What is in the view
 * beyond the end is not given to anybody.
 *
 * - **It grows** when few of its jobs wait any more, and when somebody finds nothing in it to claim: it reads on behind the
 *   end. Somebody who can claim nothing of a whole board has all of it in the view at last.
 * - **It shrinks** when it has become twice as long, since what is posted with a higher priority enters: its end moves forward.
 * - **Time passes**: shortly before the horizon it reads on by due time. Where more has woken than that, and stands before
 *   the end, the board is listed anew.
 *
 * **Nothing slips through while it reads.** What is told of meanwhile is judged by where the window ends then, so what was
 * found to be outside is judged again when the answer is there, and nothing leaves.
 *
 * A short board is all in the view: there is neither end nor horizon.
 */
import { NotConnected } from '../../core/errors.ts'
import { sleep } from '../../core/time.ts'
import type { Listing, Sections, Spot, Standpoint } from '../backend.ts'
import { compareClaimOrder, type Ordered } from '../claim-order.ts'
import type { Entry, Standing } from '../entry.ts'
import { type ClaimQueue, dueAtOf } from '../queue/queue.ts'
import { resourcesOf } from '../resources.ts'

/** How many are read of those that rest, at most. */
const MOST_RESTING = 2_000
/** How long before the horizon it is read on, in milliseconds. */
const LEAD = 1_000
/** So much behind the horizon still belongs to it: instants are rounded on their way. */
const SLACK = 5
/** How long after a fault it is tried again, in milliseconds. */
const PAUSE = 1_000
/** What a timer of Node can wait. */
const LONGEST_TIMER = 2 ** 31 - 1

/** What the window asks of the view, and does to it. */
export interface Windowed {
  readonly queue: Pick<ClaimQueue, 'size' | 'resting'>
  /** Whether it may be chosen from: there is no gap. */
  readonly current: boolean
  /** Whether postings are being read: how many wait is not known then. */
  readonly reading: boolean
  readonly size: number
  entries(): Iterable<Entry>
  /** It is in the view from now on, if it was not. */
  show(spot: Standpoint & { readonly cancelled?: boolean }): void
  stand(entry: Entry, standing: Standing): void
  leave(entry: Entry): void
  evaluate(): void
  /** The board is listed anew. */
  gap(): void
  failed(error: unknown): void
}

/** What there is when a view begins anew: of the board, or of the window. */
export interface ViewListing extends Listing {
  readonly window?: WindowListing
}

export interface WindowListing {
  readonly spots: ReadonlyMap<string, Spot>
  /** What was known before, and asked about. */
  readonly asked: ReadonlySet<string>
  /** Of that: it is on the board, and not in the window. */
  readonly outside: ReadonlySet<string>
  readonly end: Ordered | undefined
  readonly horizon: number
}

export class ViewWindow {
  readonly #sections: Sections
  readonly #view: Windowed
  readonly #now: () => number
  readonly #signal: AbortSignal
  /** How many of those that rest are read at once. */
  readonly #ahead: number
  readonly #held = new Set<Entry>()
  #end: Ordered | undefined
  #horizon = Number.POSITIVE_INFINITY
  /** How long it may be before it is looked whether it has to shrink; more where somebody found nothing in less. */
  #room: number
  #reading: Promise<boolean> | undefined
  /** Told of while it reads, and found to be outside. */
  #outside: Standpoint[] = []
  /** Counts beginnings: what was asked for before one says nothing after it. */
  #beginnings = 0
  /** When it has to be read on by due time. */
  #lookAt = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(options: { sections: Sections; view: Windowed; now: () => number; signal: AbortSignal }) {
    this.#sections = options.sections
    this.#view = options.view
    this.#now = options.now
    this.#signal = options.signal
    this.#ahead = Math.min(MOST_RESTING, Math.max(2, Math.ceil(options.sections.window / 2)))
    this.#room = 2 * options.sections.window
  }

  /** Whether the whole board is in the view. */
  get complete(): boolean {
    return this.#end === undefined && this.#horizon === Number.POSITIVE_INFINITY && !this.#isReading
  }

  /** Where a job stands that is on the board and unclaimed. */
  judge(at: Standpoint): Standing {
    const before = this.#end === undefined || compareClaimOrder(at, this.#end) <= 0
    if (at.dueAt <= this.#now()) return before ? 'inside' : 'outside'
    if (at.dueAt > this.#horizon + SLACK) return 'outside'
    return before ? 'inside' : 'beyond'
  }

  /** The same of one that was told to be posted. */
  judgePosted(at: Standpoint): Standing {
    const standing = this.judge(at)
    if (standing === 'outside' && this.#isReading) this.#outside.push(at)
    return standing
  }

  /** Something about a job in the view has changed: it may stand otherwise, or have no business there any more. */
  settle(entry: Entry): void {
    const at = standpointOf(entry)
    if (!at || entry.ended || entry.standing === 'outside') return
    const judged = this.judge(at)
    const standing = judged === 'outside' && this.#keeps(entry) ? 'beyond' : judged
    if (standing === 'outside') this.#view.leave(entry)
    else if (standing !== entry.standing) this.#view.stand(entry, standing)
  }

  /**
   * Everything that a view needs to begin with: two round trips, and on Redis some more for a long window. What is claimed is
   * asked for first: a job that is released between two answers would be in neither if its claim were looked for last, and
   * one that is claimed between them is told of.
   */
  async list(known: readonly string[]): Promise<ViewListing> {
    const { window } = this.#sections
    const before = this.#now()
    const claimed = await this.#sections.claimed()
    const [head, soon, fates] = await Promise.all([
      this.#sections.stretch({ limit: window, due: true }),
      this.#sections.resting({ after: before, limit: this.#ahead }),
      known.length > 0 ? this.#sections.fates(known) : [],
    ])
    // A clock that nobody has set by the server's yet may be ahead of it.
    const after = Math.min(before, head.at)
    const resting = after < before ? await this.#sections.resting({ after, limit: this.#ahead }) : soon
    const spots = new Map([...claimed, ...head.spots, ...resting].map((spot) => [spot.id, spot]))
    const those = (fate: (typeof fates)[number]) => new Set(known.filter((_, index) => fates[index] === fate))
    const ids = (which: (spot: Spot) => boolean) => [...spots.values()].filter(which).map(({ id }) => id)
    return {
      jobs: [...spots.keys()],
      claimed: new Set(ids((spot) => spot.claimed)),
      cancelled: new Set(ids((spot) => spot.cancelled)),
      trashed: those('trashed'),
      window: {
        spots,
        asked: new Set(known),
        outside: those('there'),
        end: head.end ? undefined : head.spots.at(-1),
        horizon: this.#horizonOf(resting, after),
      },
    }
  }

  begin({ end, horizon, spots }: WindowListing): void {
    this.#beginnings += 1
    this.#end = end
    this.#outside = []
    this.#room = 2 * this.#sections.window + spots.size
    this.#lookFrom(horizon)
  }

  /** To be called after changes; costs nothing where there is nothing to do. */
  tend(): void {
    if (this.#isReading || !this.#view.current || this.#signal.aborted) return
    const { window } = this.#sections
    if (this.#view.size <= window) this.#room = 2 * window
    else if (this.#view.size > this.#room) this.#shrink()
    if (this.#now() >= this.#lookAt) void this.#read(() => this.#readWaking())
    else if (this.#end && !this.#view.reading && this.#waiting < window / 2) void this.#read(() => this.#readOn())
  }

  /** Whether somebody wants more jobs at once than a window as large as this one shows. */
  isShortFor(jobs: number): boolean {
    return this.#end !== undefined && this.#sections.window < jobs && this.#waiting < jobs
  }

  /** For who finds nothing in the window: reads on behind its end. False where nothing is behind it, or can be read now. */
  async more(): Promise<boolean> {
    if (!this.#end && !this.#isReading) return false
    return this.#reading ?? this.#read(() => this.#readOn({ hungry: true }))
  }

  /** Until it is disposed the job stays in the view. */
  hold(entry: Entry): Disposable {
    this.#held.add(entry)
    return {
      [Symbol.dispose]: () => {
        this.#held.delete(entry)
        this.settle(entry)
      },
    }
  }

  holds(entry: Entry): boolean {
    return this.#held.has(entry)
  }

  /** After a gap the window has its usual length: what stands before those that are held is read again. */
  reachHeld(): void {
    for (const entry of this.#held) if (wantsAny(entry)) void this.reach(entry)
  }

  /** Everything before the job is in the view, as long as it is held. */
  async reach(entry: Entry): Promise<void> {
    for (let at = standpointOf(entry); at && this.#end && compareClaimOrder(this.#end, at) < 0; ) {
      if (!(await this.more())) return
    }
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  /** How many are in the view that neither are claimed nor rest. */
  get #waiting(): number {
    return this.#view.queue.size - this.#view.queue.resting
  }

  get #isReading(): boolean {
    return this.#reading !== undefined
  }

  #keeps(entry: Entry): boolean {
    if (this.#isReading || entry.claimed || entry.chosen || this.#held.has(entry)) return true
    // What it is now will be known when it is read.
    return entry.content === 'stale' || (entry.content === 'unread' && entry.standing === 'beyond')
  }

  #read(read: () => Promise<void>): Promise<boolean> {
    const reading = this.#tried(read).finally(() => {
      this.#reading = undefined
      if (this.#view.current) this.#judgeAgain()
      this.#view.evaluate()
    })
    this.#reading = reading
    return reading
  }

  async #tried(read: () => Promise<void>): Promise<boolean> {
    try {
      await read()
      return true
    } catch (error) {
      // Without a connection there is nothing to try: its return is a gap.
      if (error instanceof NotConnected) return false
      this.#view.failed(error)
      await sleep(PAUSE, { signal: this.#signal }).catch(() => undefined)
      return false
    }
  }

  async #readOn({ hungry = false } = {}): Promise<void> {
    const { window } = this.#sections
    const limit = hungry ? window : window - this.#waiting
    const beginning = this.#beginnings
    const { spots, end } = await this.#sections.stretch({ after: this.#end, limit: Math.max(limit, 1), due: true })
    if (beginning !== this.#beginnings || !this.#view.current) return
    this.#end = end ? undefined : spots.at(-1)
    this.#show(spots)
    this.#room = hungry ? Math.max(this.#room, this.#view.size + 2 * window) : this.#view.size + 2 * window
  }

  async #readWaking(): Promise<void> {
    const beginning = this.#beginnings
    const after = this.#horizon
    const spots = await this.#sections.resting({ after, limit: this.#ahead })
    if (beginning !== this.#beginnings || !this.#view.current) return
    const horizon = this.#horizonOf(spots, after)
    if (horizon <= this.#now()) {
      // More than that has woken at once: who comes first of them is not known in this way.
      this.#view.gap()
      return
    }
    // Where nothing was learnt, more wake at one instant than are read: that has to come first.
    this.#lookFrom(horizon, horizon === after ? horizon + 1 : horizon - LEAD)
    this.#show(spots)
  }

  /** Until when all are known that rest, where these are the first to wake. Of those that wake last there may be more. */
  #horizonOf(spots: readonly Spot[], after: number): number {
    const last = spots.at(-1)
    if (!last || spots.length < this.#ahead) return Number.POSITIVE_INFINITY
    return spots.findLast(({ dueAt }) => dueAt < last.dueAt)?.dueAt ?? Math.max(after, last.dueAt - 1)
  }

  #lookFrom(horizon: number, at = horizon - LEAD): void {
    this.#horizon = horizon
    this.#lookAt = at
    clearTimeout(this.#timer)
    if (horizon === Number.POSITIVE_INFINITY) return
    const left = Math.max(1, this.#lookAt - this.#now())
    this.#timer = setTimeout(() => this.tend(), Math.min(left, LONGEST_TIMER))
    this.#timer.unref()
  }

  #show(spots: readonly Spot[]): void {
    for (const spot of spots) if (this.judge(spot) !== 'outside') this.#view.show(spot)
  }

  #judgeAgain(): void {
    const outside = this.#outside
    this.#outside = []
    for (const at of outside) if (this.judge(at) !== 'outside') this.#view.show(at)
    for (const entry of [...this.#view.entries()]) this.settle(entry)
  }

  /** What waits beyond the end goes; where that is not enough, the horizon and the end come nearer. */
  #shrink(): void {
    const { window } = this.#sections
    for (const entry of [...this.#view.entries()]) this.settle(entry)
    const free = [...this.#view.entries()].filter((entry) => !entry.claimed && !this.#held.has(entry) && !entry.chosen)
    const places = free.flatMap((entry) => standpointOf(entry) ?? [])
    const resting = places.filter(({ dueAt }) => dueAt > this.#now()).sort((a, b) => a.dueAt - b.dueAt)
    const soon = resting[this.#ahead - 1]
    if (soon && resting.length > 2 * this.#ahead) this.#lookFrom(Math.min(this.#horizon, soon.dueAt))
    const inside = places.filter((at) => this.judge(at) === 'inside').sort(compareClaimOrder)
    const last = inside[window - 1]
    if (last && inside.length > 2 * window) this.#end = this.#furthest(last)
    for (const entry of [...this.#view.entries()]) this.settle(entry)
    this.#room = this.#view.size + window
  }

  /** Not before those whose resources somebody waits for. */
  #furthest(end: Ordered): Ordered {
    let furthest = end
    for (const entry of this.#held) {
      const at = wantsAny(entry) ? standpointOf(entry) : undefined
      if (at && compareClaimOrder(furthest, at) < 0) furthest = at
    }
    return furthest
  }
}

/** Undefined of one that is known by its id alone. */
export function standpointOf({ stored, at, cancelRequested }: Entry): Standpoint | undefined {
  if (!stored) return at
  const { id, order, posting } = stored
  return { id, order, priority: posting.priority, dueAt: cancelRequested ? 0 : dueAtOf(stored) }
}

export function wantsAny({ stored }: Entry): boolean {
  if (!stored) return false
  const { exclusive, shared } = resourcesOf(stored.posting)
  return exclusive.length + shared.length > 0
}
