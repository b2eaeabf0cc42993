/** Filters and sorts the jobs of a board for `jobs`: in claim order, including claimed ones. */
import type { StoredJob } from '../contract/index.ts'
import { type ClaimOrderKey, compareClaimOrder, type Priority } from '../model/claim-order.ts'
import type { JobEntry } from '../model/entry.ts'
import { queueOf } from '../model/queues.ts'

/** Options of `jobs`: a filter. By default all jobs on the board are listed, in claim order. */
export interface JobsOptions {
  readonly onlyUnclaimed?: boolean
  /** Whether the list has to include everything that was committed before the call; one round trip. */
  readonly ensureFresh?: boolean
  readonly name?: string
  readonly priority?: Priority
  readonly queue?: string
  /** The uuid of a batch: only its jobs are listed. */
  readonly batch?: string
}

interface ListedEntry extends ClaimOrderKey {
  readonly entry: JobEntry
}

export function filterAndSort(entries: Iterable<JobEntry>, options: JobsOptions): JobEntry[] {
  return [...entries]
    .flatMap((entry) => (entry.stored && matchesFilter(entry, options) ? [toListedEntry(entry, entry.stored)] : []))
    .sort(compareClaimOrder)
    .map(({ entry }) => entry)
}

export function matchesFilter(entry: JobEntry, options: JobsOptions): boolean {
  const { onlyUnclaimed = false, name, priority, queue, batch } = options
  if (!entry.stored) return false
  const { posting } = entry.stored
  if (entry.content === 'unreadable' || entry.ended || (onlyUnclaimed && entry.claimed)) return false
  if (name !== undefined && posting.name !== name) return false
  if (batch !== undefined && posting.batch !== batch) return false
  if (priority !== undefined && posting.priority !== priority) return false
  return queue === undefined || queueOf(posting) === queue
}

function toListedEntry(entry: JobEntry, { id, order, posting }: StoredJob): ListedEntry {
  return { id, order, priority: posting.priority, entry }
}
