/** Entries of a live view that nobody keeps, for what is decided about them alone. */

import type { Priority } from '../../../src/board/model/claim-order.ts'
import { type JobEntry, newEntry } from '../../../src/board/model/entry.ts'
import type { PostLimit } from '../../../src/board/model/limits.ts'
import { makePosting } from '../../../src/board/model/posting/post-options.ts'
import type { Posting } from '../../../src/board/model/posting/posting.ts'
import {
  parseResources,
  type Resources,
  type ResourceWants,
  toResourceWants,
} from '../../../src/board/model/resources.ts'
import { ClaimQueue, type TakeOptions } from '../../../src/board/queue/queue.ts'
import { SuspectPlace } from '../../../src/board/queue/suspect-place.ts'

export interface EntryOptions {
  readonly name?: string
  readonly priority?: Priority
  /** How many owners died in a row. */
  readonly deaths?: number
  readonly resources?: Resources
  readonly dueAt?: number
  readonly flow?: string
  readonly limits?: readonly PostLimit[]
  readonly queue?: string
}

/** How large each posting says it is. */
export const BYTES = 100

let made = 0

/** Posted after all that were made before, and read. */
export function createEntry(options: EntryOptions = {}): JobEntry {
  const entry = unreadEntry()
  readNow(entry, options)
  return entry
}

export function unreadEntry(): JobEntry {
  made += 1
  return newEntry(toJobId(made))
}

/** The entry as it is once its posting was read. */
export function readNow(entry: JobEntry, options: EntryOptions = {}): void {
  const { name = 'job', priority = 'NORMAL', deaths = 0, resources, dueAt = 0, flow, limits, queue } = options
  const attempts = Array.from({ length: deaths }, () => ({ who: 'who', at: new Date(0) }))
  const made = makePosting({
    name,
    details: flow === undefined ? {} : { flow },
    priority,
    ...(limits ? { limits } : {}),
    ...(queue === undefined ? {} : { queue }),
  })
  const delay = dueAt === 0 ? {} : { delay: dueAt }
  const posting = {
    ...made,
    attempts,
    runs: deaths,
    ...(resources ? { resources: normalised(resources) } : {}),
    ...delay,
  }
  const id = entry.id ?? ''
  const order = BigInt(Number.parseInt(id.slice('job'.length), 10))
  const stored = { id, posting, revision: 0, order, postedAt: 0, writtenAt: 0, bytes: BYTES }
  entry.stored = stored
  entry.content = 'fresh'
}

/** As a posting has them. */
export function normalised(resources: Resources): ResourceWants {
  const read = parseResources(resources)
  return toResourceWants(read ? { resources: read } : {})
}

export function toJobId(number: number): string {
  return `job${String(number).padStart(10, '0')}`
}

export function createQueue(...entries: readonly JobEntry[]): ClaimQueue {
  const queue = new ClaimQueue()
  for (const entry of entries) queue.update(entry)
  return queue
}

/** Something changed about the entry, and the queue is told. */
export function change(queue: ClaimQueue, entry: JobEntry, changes: Partial<JobEntry>): void {
  queue.update(Object.assign(entry, changes))
}

export const everything: TakeOptions = {
  max: Number.POSITIVE_INFINITY,
  accept: () => true,
  suspects: new SuspectPlace(),
  spread: 1,
}

/** The names of what can be taken now; nothing is taken. */
export function claimable(queue: ClaimQueue, options: Partial<TakeOptions> = {}): string[] {
  const places = queue.reserveNext({ ...everything, ...options })
  queue.unreserve(places)
  return entryNames(places)
}

export function entryNames(places: readonly { readonly stored: { readonly posting: Posting } }[]): string[] {
  return places.map(({ stored }) => stored.posting.name)
}
