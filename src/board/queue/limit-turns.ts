/**
 * The turns of the keys of one fair pattern in one scan of a search. The key with the fewest running jobs goes first, and the jobs that the
 * search has chosen count as running. A key, or a group of a key, is read only when it may be the next one: a pattern may have very many.
 */
import { compareNumbers } from '../../core/time.ts'
import { type ClaimOrderKey, compareClaimOrder } from '../model/claim-order.ts'
import type { QueuePlace } from '../model/entry.ts'
import type { QueueFilter } from '../model/queues.ts'
import { countRunning, type FairKey, type KeyLine, type LimitGroup } from './limit-groups.ts'
import { SortedList } from './sorted.ts'

/** The next job of a group in a scan. */
export interface Cursor extends ClaimOrderKey {
  readonly place: QueuePlace
  readonly group: LimitGroup
  /** The jobs of the group after this one. */
  readonly rest: Iterator<QueuePlace>
  /** The turns that yield the job after this one; undefined for a group that takes no turns. */
  readonly turns?: Turns
}

export interface TurnsOptions {
  /** Absent if the jobs of all queues are wanted. */
  readonly isWanted: QueueFilter | undefined
  readonly isFull: (cursor: Cursor) => boolean
  readonly isYielded: (place: QueuePlace) => boolean
  /** Returns the number of jobs of the key that this search has chosen. */
  readonly chosenOf: (line: KeyLine) => number
  /** Returns whether the key has room only for the jobs that this search has chosen. */
  readonly isUsedUp: (line: KeyLine) => boolean
}

/** A key that waits for its turn. */
interface WaitingKey {
  readonly jobs: JobsOfKey
  /** The next job of the key. */
  readonly cursor: Cursor
  readonly running: number
  readonly lastStart: number
}

export class Turns {
  readonly #options: TurnsOptions
  readonly #keys: Iterator<FairKey>
  #next: IteratorResult<FairKey>
  readonly #waiting = new SortedList<WaitingKey>(compareWaiting)
  /** The key that had the last turn, and its job. Its place is computed at the next turn, when it is known whether the job was chosen. */
  #last: { readonly jobs: JobsOfKey; readonly cursor: Cursor } | undefined

  constructor(keys: Iterable<FairKey>, options: TurnsOptions) {
    this.#options = options
    this.#keys = keys[Symbol.iterator]()
    this.#next = this.#keys.next()
  }

  /** Returns the next job of the key whose turn it is; undefined if there is none. */
  take(): Cursor | undefined {
    const { isFull, isUsedUp, isYielded } = this.#options
    if (this.#last) this.#addAgain(this.#last)
    this.#last = undefined
    while (true) {
      this.#addNext()
      const { first } = this.#waiting
      if (!first) return undefined
      this.#waiting.delete(first)
      const { jobs, cursor } = first
      if (isUsedUp(jobs.line)) continue
      jobs.remove(cursor)
      if (isYielded(cursor.place)) this.#addAgain(first)
      else if (isFull(cursor)) this.#add(jobs)
      else {
        this.#last = first
        return { ...cursor, turns: this }
      }
    }
  }

  /** Adds a key that has had a turn, with its next job. */
  #addAgain({ jobs, cursor }: { readonly jobs: JobsOfKey; readonly cursor: Cursor }): void {
    jobs.add(toCursor(cursor.group, cursor.rest))
    this.#add(jobs)
  }

  /** Adds the keys that may go before the first waiting key: the jobs that were chosen can only move a key back. */
  #addNext(): void {
    while (!this.#next.done) {
      const { value: key } = this.#next
      const jobs = new JobsOfKey(key, this.#options.isWanted)
      const cursor = jobs.first
      const { first } = this.#waiting
      const { line } = key
      const least = cursor && { jobs, cursor, running: countRunning(line), lastStart: line.lastStart }
      if (first && least && compareWaiting(first, least) < 0) return
      this.#next = this.#keys.next()
      this.#add(jobs)
    }
  }

  #add(jobs: JobsOfKey): void {
    const { line, first: cursor } = jobs
    if (!cursor) return
    const running = countRunning(line) + this.#options.chosenOf(line)
    this.#waiting.add({ jobs, cursor, running, lastStart: line.lastStart })
  }
}

/** The jobs of a key in claim order, from all of its groups. A group is read only when its first job may be the next one. */
class JobsOfKey {
  readonly line: KeyLine
  readonly #groups: Iterator<LimitGroup>
  readonly #isWanted: QueueFilter | undefined
  #next: IteratorResult<LimitGroup>
  readonly #cursors = new SortedList<Cursor, ClaimOrderKey>(compareClaimOrder)

  constructor({ line, groups }: FairKey, isWanted: QueueFilter | undefined) {
    this.line = line
    this.#isWanted = isWanted
    this.#groups = groups[Symbol.iterator]()
    this.#next = this.#groups.next()
  }

  get first(): Cursor | undefined {
    while (!this.#next.done && isNotBehind(this.#next.value.head, this.#cursors.first)) {
      const { value: group } = this.#next
      this.#next = this.#groups.next()
      if (this.#isWanted?.(group.queue) !== false) this.add(toCursor(group, group.line[Symbol.iterator]()))
    }
    return this.#cursors.first
  }

  add(cursor: Cursor | undefined): void {
    if (cursor) this.#cursors.add(cursor)
  }

  remove(cursor: Cursor): void {
    this.#cursors.delete(cursor)
  }
}

/** Returns the cursor of the next job of a group; undefined if there is none. */
export function toCursor(group: LimitGroup, rest: Iterator<QueuePlace>): Cursor | undefined {
  const { done, value: place } = rest.next()
  return done ? undefined : { id: place.id, priority: place.priority, order: place.order, place, group, rest }
}

/** Returns whether a group whose first job has this place may go before the first cursor. */
export function isNotBehind(head: ClaimOrderKey | undefined, first: ClaimOrderKey | undefined): boolean {
  return head === undefined || first === undefined || compareClaimOrder(head, first) <= 0
}

function compareWaiting(a: WaitingKey, b: WaitingKey): number {
  if (a.cursor.priority !== b.cursor.priority) return compareClaimOrder(a.cursor, b.cursor)
  return (
    compareNumbers(a.running, b.running) ||
    compareNumbers(a.lastStart, b.lastStart) ||
    compareClaimOrder(a.cursor, b.cursor)
  )
}
