/**
 * Who holds a resource, and who stands in line for it.
 *
 * A line lets pass whom nobody before it contradicts: the writer that nobody holds back and no reader is before, or the
 * readers before the first writer. So those that pass never conflict with each other, and a waiting writer holds later
 * readers back. Everybody else is blocked, and is looked at only when the head of the line moves past it.
 *
 * **In two steps**, because a claim turns who stood first into a holder: `leave` and `enter` move without telling anybody,
 * `settle` then tells those for whom something has changed. One step at a time, ten thousand readers behind the writer
 * would be let in and out again by its claim.
 *
 * **Set aside** are the jobs of flows that no conductor has known for long (`view/unaccepted-flows.ts`): nobody waits for them
 * any more. Those of one flow are a line of their own (`set-aside.ts`). They still wait for whoever holds the resource, and
 * for jobs before them that are not set aside.
 */
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { JobEntry, QueueEntry } from '../model/entry.ts'
import type { ResourceWants } from '../model/resources.ts'
import { SetAside } from './set-aside.ts'
import { SortedList } from './sorted.ts'
import { Threshold } from './threshold.ts'

type ResourceMode = keyof ResourceWants

export interface Blocker {
  readonly resource: string
  readonly entry: JobEntry
}

export class ResourceLines {
  readonly #lines = new Map<string, ResourceLine>()
  readonly #onPasses: (place: QueueEntry, passes: boolean) => void
  /** The places that are set aside, each with the group of those that it waits with: a place leaves the line it entered. */
  readonly #setAside = new Map<QueueEntry, string>()
  #contended = false

  /** @param onPasses hears of every place in line that passes from now on in one of its lines, or does not any more */
  constructor(onPasses: (place: QueueEntry, passes: boolean) => void) {
    this.#onPasses = onPasses
  }

  /** How many resources are wanted or held. */
  get size(): number {
    return this.#lines.size
  }

  /** Whether one job may have waited behind another, neither of them claimed, since {@link contendingEntries} were asked for last. */
  get contended(): boolean {
    return this.#contended
  }

  /**
   * Takes hold of the resources, or stands in line for them; counts into `place.blocks` the lines in which it waits.
   *
   * @param aside the group with which it is set aside, if it is
   */
  enter(place: QueueEntry, aside?: string): void {
    if (aside !== undefined) this.#setAside.set(place, aside)
    for (const name of place.resources.exclusive) this.#enter(name, { place, mode: 'exclusive', aside })
    for (const name of place.resources.shared) this.#enter(name, { place, mode: 'shared', aside })
  }

  leave(place: QueueEntry): void {
    const aside = this.#setAside.get(place)
    if (aside !== undefined) this.#setAside.delete(place)
    for (const name of place.resources.exclusive) this.#line(name).leave({ place, mode: 'exclusive', aside })
    for (const name of place.resources.shared) this.#line(name).leave({ place, mode: 'shared', aside })
  }

  /**
   * Returns the places in all lines where one that waits may wait for another that waits. A place is there once for each of its
   * lines. Nothing may change during the walk, which has to come to its end.
   */
  *contendingEntries(): Generator<QueueEntry, void, undefined> {
    this.#contended = false
    for (const line of this.#lines.values()) {
      if (!line.contended) continue
      this.#contended = true
      yield* line.waiting()
    }
  }

  /** Returns the places in all lines, once for each line, those that are set aside too. Nothing may change during the walk. */
  *waitingEntries(): Generator<QueueEntry, void, undefined> {
    for (const line of this.#lines.values()) yield* line.waiting()
  }

  #enter(name: string, entering: LineEntry): void {
    const line = this.#line(name)
    line.enter(entering)
    this.#contended ||= line.contended
  }

  /** To be called after `enter` and `leave`, for what was entered and left. */
  settle({ exclusive, shared }: ResourceWants): void {
    for (const name of exclusive) this.#settleLine(name)
    for (const name of shared) this.#settleLine(name)
  }

  /** Of those that keep it waiting in the first line where somebody does: who holds the resource, else who is first. */
  findBlocker(place: QueueEntry): Blocker | undefined {
    for (const mode of ['exclusive', 'shared'] as const) {
      for (const resource of place.resources[mode]) {
        const entry = this.#lines.get(resource)?.findBlocker(place, { mode, aside: this.#setAside.get(place) })
        if (entry) return { resource, entry }
      }
    }
    return undefined
  }

  #settleLine(name: string): void {
    const line = this.#lines.get(name)
    line?.settle(this.#onPasses)
    if (line?.empty) this.#lines.delete(name)
  }

  #line(name: string): ResourceLine {
    const known = this.#lines.get(name)
    if (known) return known
    const line = new ResourceLine()
    this.#lines.set(name, line)
    return line
  }
}

/** A place in one line. */
interface LineEntry {
  readonly place: QueueEntry
  readonly mode: ResourceMode
  readonly aside: string | undefined
}

/** One resource. Its parts are made on first use: a board may have as many resources as jobs, each wanted by one. */
class ResourceLine {
  #holders: Record<ResourceMode, Set<JobEntry>> | undefined
  #writers: SortedList<QueueEntry, ClaimOrderKey> | undefined
  #readers: Threshold<QueueEntry, ClaimOrderKey> | undefined
  /** The writer that passes. */
  #next: QueueEntry | undefined
  #setAside: SetAside | undefined

  get empty(): boolean {
    return !this.#isHeld() && this.#waitingCount === 0
  }

  /** Whether one that waits may wait for another that waits: readers alone never do. */
  get contended(): boolean {
    return this.#waitingCount > 1 && this.#waitingCount > (this.#readers?.size ?? 0)
  }

  *waiting(): Generator<QueueEntry, void, undefined> {
    yield* this.#writers ?? []
    yield* this.#readers ?? []
    yield* this.#setAside ?? []
  }

  enter({ place, mode, aside }: LineEntry): void {
    if (place.state === 'claimed') {
      this.#holders ??= { exclusive: new Set(), shared: new Set() }
      this.#holders[mode].add(place.entry)
    } else if (aside !== undefined) {
      this.#setAside ??= new SetAside()
      this.#setAside.add(place, { group: aside, mode })
      place.blockerCount += 1
    } else if (mode === 'exclusive') {
      this.#writers ??= new SortedList<QueueEntry, ClaimOrderKey>(compareClaimOrder)
      this.#writers.add(place)
      place.blockerCount += 1
    } else {
      this.#readers ??= new Threshold<QueueEntry, ClaimOrderKey>(compareClaimOrder)
      if (!this.#readers.add(place)) place.blockerCount += 1
    }
  }

  leave({ place, mode, aside }: LineEntry): void {
    if (place.state === 'claimed') this.#holders?.[mode].delete(place.entry)
    else if (aside !== undefined) this.#setAside?.delete(place, aside)
    else if (mode === 'exclusive') {
      this.#writers?.delete(place)
      if (this.#next === place) this.#next = undefined
    } else this.#readers?.delete(place)
  }

  settle(onPasses: (place: QueueEntry, passes: boolean) => void): void {
    const writer = this.#writers?.first
    this.#readers?.move(this.#holders?.exclusive.size ? 'none' : (writer ?? 'all'), onPasses)
    const next = writer && !this.#isHeld() && !isBefore(this.#readers?.first, writer) ? writer : undefined
    if (next !== this.#next) {
      const former = this.#next
      this.#next = next
      if (former) onPasses(former, false)
      if (next) onPasses(next, true)
    }
    this.#setAside?.settle((first, mode) => this.#findObstacle(first, mode) === undefined, onPasses)
  }

  findBlocker(
    place: QueueEntry,
    { mode, aside }: { mode: ResourceMode; aside: string | undefined },
  ): JobEntry | undefined {
    const [holder] = this.#holders?.exclusive ?? []
    const writer = this.#writers?.first
    if (aside !== undefined) return this.#findObstacle(place, mode) ?? this.#setAside?.before(place, aside)?.entry
    if (mode === 'shared') return this.#readers?.passes(place) ? undefined : (holder ?? writer?.entry)
    if (place === this.#next) return undefined
    const [reader] = this.#holders?.shared ?? []
    const first = this.#readers?.first
    return holder ?? reader ?? (writer && isBefore(first, writer) ? first : writer)?.entry
  }

  /** Returns who keeps a place that is set aside waiting, those of its own group aside: a holder, or who stands before it. */
  #findObstacle(place: ClaimOrderKey, mode: ResourceMode): JobEntry | undefined {
    const [holder] = this.#holders?.exclusive ?? []
    if (holder) return holder
    const writer = this.#writers?.first
    if (isBefore(writer, place)) return writer.entry
    if (mode === 'shared') return undefined
    const [reader] = this.#holders?.shared ?? []
    const first = this.#readers?.first
    return reader ?? (isBefore(first, place) ? first.entry : undefined)
  }

  /** How many wait, or are set aside. */
  get #waitingCount(): number {
    return (this.#writers?.size ?? 0) + (this.#readers?.size ?? 0) + (this.#setAside?.size ?? 0)
  }

  #isHeld(): boolean {
    return this.#holders !== undefined && this.#holders.exclusive.size + this.#holders.shared.size > 0
  }
}

function isBefore(one: QueueEntry | undefined, other: ClaimOrderKey): one is QueueEntry {
  return one !== undefined && compareClaimOrder(one, other) < 0
}
