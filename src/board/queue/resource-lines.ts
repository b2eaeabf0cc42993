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
 */
import { compareClaimOrder, type Ordered } from '../claim-order.ts'
import type { Entry, Place } from '../entry.ts'
import type { Wants } from '../resources.ts'
import { Sorted } from './sorted.ts'
import { Threshold } from './threshold.ts'

type Mode = keyof Wants

export interface Blocker {
  readonly resource: string
  readonly entry: Entry
}

export class ResourceLines {
  readonly #lines = new Map<string, ResourceLine>()
  readonly #tell: (place: Place, passes: boolean) => void

  /** @param tell hears of every place in line that passes from now on in one of its lines, or does not any more */
  constructor(tell: (place: Place, passes: boolean) => void) {
    this.#tell = tell
  }

  /** How many resources are wanted or held. */
  get size(): number {
    return this.#lines.size
  }

  /** Takes hold of the resources, or stands in line for them; counts into `place.blocks` the lines in which it waits. */
  enter(place: Place): void {
    for (const name of place.wants.exclusive) this.#line(name).enter(place, 'exclusive')
    for (const name of place.wants.shared) this.#line(name).enter(place, 'shared')
  }

  leave(place: Place): void {
    for (const name of place.wants.exclusive) this.#line(name).leave(place, 'exclusive')
    for (const name of place.wants.shared) this.#line(name).leave(place, 'shared')
  }

  /** To be called after `enter` and `leave`, for what was entered and left. */
  settle({ exclusive, shared }: Wants): void {
    for (const name of exclusive) this.#settle(name)
    for (const name of shared) this.#settle(name)
  }

  /** Of those that keep it waiting in the first line where somebody does: who holds the resource, else who is first. */
  blockerOf(place: Place): Blocker | undefined {
    for (const mode of ['exclusive', 'shared'] as const) {
      for (const resource of place.wants[mode]) {
        const entry = this.#lines.get(resource)?.blockerOf(place, mode)
        if (entry) return { resource, entry }
      }
    }
    return undefined
  }

  #settle(name: string): void {
    const line = this.#lines.get(name)
    line?.settle(this.#tell)
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

/** One resource. Its parts are made on first use: a board may have as many resources as jobs, each wanted by one. */
class ResourceLine {
  #holders: Record<Mode, Set<Entry>> | undefined
  #writers: Sorted<Place, Ordered> | undefined
  #readers: Threshold<Place, Ordered> | undefined
  /** The writer that passes. */
  #next: Place | undefined

  get empty(): boolean {
    return !this.#held() && !this.#writers?.size && !this.#readers?.size
  }

  enter(place: Place, mode: Mode): void {
    if (place.stance === 'holding') {
      this.#holders ??= { exclusive: new Set(), shared: new Set() }
      this.#holders[mode].add(place.entry)
    } else if (mode === 'exclusive') {
      this.#writers ??= new Sorted<Place, Ordered>(compareClaimOrder)
      this.#writers.add(place)
      place.blocks += 1
    } else {
      this.#readers ??= new Threshold<Place, Ordered>(compareClaimOrder)
      if (!this.#readers.add(place)) place.blocks += 1
    }
  }

  leave(place: Place, mode: Mode): void {
    if (place.stance === 'holding') this.#holders?.[mode].delete(place.entry)
    else if (mode === 'exclusive') {
      this.#writers?.delete(place)
      if (this.#next === place) this.#next = undefined
    } else this.#readers?.delete(place)
  }

  settle(tell: (place: Place, passes: boolean) => void): void {
    const writer = this.#writers?.first
    this.#readers?.move(this.#holders?.exclusive.size ? 'none' : (writer ?? 'all'), tell)
    const next = writer && !this.#held() && !isBefore(this.#readers?.first, writer) ? writer : undefined
    if (next === this.#next) return
    if (this.#next) tell(this.#next, false)
    this.#next = next
    if (next) tell(next, true)
  }

  blockerOf(place: Place, mode: Mode): Entry | undefined {
    const [holder] = this.#holders?.exclusive ?? []
    const writer = this.#writers?.first
    if (mode === 'shared') return this.#readers?.passes(place) ? undefined : (holder ?? writer?.entry)
    if (place === this.#next) return undefined
    const [reader] = this.#holders?.shared ?? []
    const first = this.#readers?.first
    return holder ?? reader ?? (writer && isBefore(first, writer) ? first : writer)?.entry
  }

  #held(): boolean {
    return this.#holders !== undefined && this.#holders.exclusive.size + this.#holders.shared.size > 0
  }
}

function isBefore(one: Place | undefined, other: Place): one is Place {
  return one !== undefined && compareClaimOrder(one, other) < 0
}
