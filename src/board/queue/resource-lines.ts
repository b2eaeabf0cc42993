/**
 * The holders of each resource, and the line of jobs that wait for it. A *writer* wants the resource exclusively, a *reader*
 * shared.
 *
 * A job passes if no holder and no job before it conflicts with it: the first writer, if the resource is free and no reader is
 * before it, or the readers before the first writer. So passing jobs never conflict with each other, and a waiting writer
 * blocks later readers. All other jobs are blocked, and are visited only when the head of the line moves past them.
 *
 * **A change has two steps**, because a claim turns the first in line into a holder: `leave` and `enter` change the lines without
 * notifications, `settle` then notifies the jobs for which the result has changed. With notifications in each step, the claim
 * of a writer would unblock and block ten thousand readers behind it.
 *
 * **Jobs that are set aside**, because no conductor has known their flow for long (`view/unaccepted-flows.ts`), block no other job.
 * The jobs of one flow have a line of their own (`set-aside.ts`). They still wait for the holders of the resource, and for jobs
 * before them that are not set aside.
 */
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { JobEntry, QueuePlace } from '../model/entry.ts'
import type { ResourceMode, ResourceWants } from '../model/resources.ts'
import { SetAside } from './set-aside.ts'
import { SortedList } from './sorted.ts'
import { Threshold } from './threshold.ts'

export interface Blocker {
  readonly resource: string
  readonly entry: JobEntry
}

export class ResourceLines {
  readonly #lines = new Map<string, ResourceLine>()
  readonly #onPasses: (place: QueuePlace, passes: boolean) => void
  /** The jobs that are set aside, each with its group, so that a job leaves the line that it entered. */
  readonly #setAside = new Map<QueuePlace, string>()
  #contended = false

  /** @param onPasses called for each job that begins or ceases to pass in one of its lines */
  constructor(onPasses: (place: QueuePlace, passes: boolean) => void) {
    this.#onPasses = onPasses
  }

  /** The number of resources that are wanted or held. */
  get size(): number {
    return this.#lines.size
  }

  /** Whether an unclaimed job may have waited behind another unclaimed one since the last call of {@link contendingEntries}. */
  get contended(): boolean {
    return this.#contended
  }

  /**
   * Adds the job to the holders of its resources, or to their lines; adds the lines in which it waits to `place.blockerCount`.
   *
   * @param aside the group with which the job is set aside, if it is
   */
  enter(place: QueuePlace, aside?: string): void {
    if (aside !== undefined) this.#setAside.set(place, aside)
    for (const name of place.resources.exclusive) this.#enter(name, { place, mode: 'exclusive', aside })
    for (const name of place.resources.shared) this.#enter(name, { place, mode: 'shared', aside })
  }

  leave(place: QueuePlace): void {
    const aside = this.#setAside.get(place)
    if (aside !== undefined) this.#setAside.delete(place)
    for (const name of place.resources.exclusive) this.#line(name).leave({ place, mode: 'exclusive', aside })
    for (const name of place.resources.shared) this.#line(name).leave({ place, mode: 'shared', aside })
  }

  /**
   * Yields the jobs of all lines in which a waiting job may wait for another waiting job, once for each of its lines.
   * The lines must not change during the iteration, which must be completed.
   */
  *contendingEntries(): Generator<QueuePlace, void, undefined> {
    this.#contended = false
    for (const line of this.#lines.values()) {
      if (!line.contended) continue
      this.#contended = true
      yield* line.waiting()
    }
  }

  /** Yields the jobs of all lines, also the jobs set aside, once for each line. The lines must not change during the iteration. */
  *waitingEntries(): Generator<QueuePlace, void, undefined> {
    for (const line of this.#lines.values()) yield* line.waiting()
  }

  #enter(name: string, entering: LineEntry): void {
    const line = this.#line(name)
    line.enter(entering)
    this.#contended ||= line.contended
  }

  /** Notifies the affected jobs. To be called after `enter` and `leave`, with the resources of the job. */
  settle({ exclusive, shared }: ResourceWants): void {
    for (const name of exclusive) this.#settleLine(name)
    for (const name of shared) this.#settleLine(name)
  }

  /** Returns the job that blocks another one in the first line where that one waits: the holder of the resource, else the first in line. */
  findBlocker(place: QueuePlace): Blocker | undefined {
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

/** A job in one line. */
interface LineEntry {
  readonly place: QueuePlace
  readonly mode: ResourceMode
  readonly aside: string | undefined
}

/** The holders and the line of one resource. Its parts are created on first use: a board may have as many resources as jobs. */
class ResourceLine {
  #holders: Record<ResourceMode, Set<JobEntry>> | undefined
  #writers: SortedList<QueuePlace, ClaimOrderKey> | undefined
  #readers: Threshold<QueuePlace, ClaimOrderKey> | undefined
  /** The writer that passes, if one does. */
  #next: QueuePlace | undefined
  #setAside: SetAside | undefined

  get empty(): boolean {
    return !this.#isHeld() && this.#waitingCount === 0
  }

  /** Whether a waiting job may wait for another waiting job: readers alone never do. */
  get contended(): boolean {
    return this.#waitingCount > 1 && this.#waitingCount > (this.#readers?.size ?? 0)
  }

  *waiting(): Generator<QueuePlace, void, undefined> {
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
      this.#writers ??= new SortedList<QueuePlace, ClaimOrderKey>(compareClaimOrder)
      this.#writers.add(place)
      place.blockerCount += 1
    } else {
      this.#readers ??= new Threshold<QueuePlace, ClaimOrderKey>(compareClaimOrder)
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

  settle(onPasses: (place: QueuePlace, passes: boolean) => void): void {
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
    place: QueuePlace,
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

  /** Returns the job that blocks a job that is set aside, apart from its own group: a holder, or a job before it in line. */
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

  /** The number of jobs that wait, including the jobs set aside. */
  get #waitingCount(): number {
    return (this.#writers?.size ?? 0) + (this.#readers?.size ?? 0) + (this.#setAside?.size ?? 0)
  }

  #isHeld(): boolean {
    return this.#holders !== undefined && this.#holders.exclusive.size + this.#holders.shared.size > 0
  }
}

function isBefore(one: QueuePlace | undefined, other: ClaimOrderKey): one is QueuePlace {
  return one !== undefined && compareClaimOrder(one, other) < 0
}
