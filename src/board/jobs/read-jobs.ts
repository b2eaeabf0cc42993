/** Reads the postings that the view does not keep current, for `find` and `jobs`. */
import type { Backend, StoredJob } from '../contract/index.ts'
import type { JobEntry } from '../model/entry.ts'
import { hasDroppedDetails } from '../model/posting/posting-codec.ts'
import { Job } from './job.ts'

/** The limits of one read: the number of postings, and their total size in bytes. */
const MAX_BATCH = 512
const MAX_BATCH_BYTES = 1_024 * 1_024

type Reader = Pick<Backend, 'jobs'>

/** Returns the posting of a job, in one round trip or none; undefined where it is gone or cannot be read. */
export async function readJob(entry: JobEntry, backend: Reader): Promise<StoredJob | undefined> {
  return known(entry) ?? (await read([entry], backend)).get(entry)
}

/** Yields the jobs in the order of the entries. Leaves out jobs that have left the board. One round trip per batch that is read. */
export async function* readJobs(entries: readonly JobEntry[], backend: Reader): AsyncGenerator<Job, void, undefined> {
  let batch: ReadonlyMap<JobEntry, StoredJob> = new Map()
  for (const [index, entry] of entries.entries()) {
    if (!known(entry) && !batch.has(entry)) batch = await read(nextBatch(entries, index), backend)
    const stored = known(entry) ?? batch.get(entry)
    if (stored && !entry.ended) yield new Job(entry, stored.posting)
  }
}

/**
 * Returns the posting that the view keeps current; undefined if the job is outside the view or cannot be read any more, or if the view has
 * not kept its details.
 */
function known({ stored, windowStatus, content }: JobEntry): StoredJob | undefined {
  if (!stored || windowStatus === 'outside' || content === 'unreadable' || hasDroppedDetails(stored)) return undefined
  return stored
}

function nextBatch(entries: readonly JobEntry[], from: number): JobEntry[] {
  const batch: JobEntry[] = []
  let bytes = 0
  for (let index = from; index < entries.length && batch.length < MAX_BATCH; index += 1) {
    const entry = entries[index]
    if (!entry || known(entry) || entry.ended) continue
    bytes += entry.stored?.bytes ?? 0
    if (batch.length > 0 && bytes > MAX_BATCH_BYTES) break
    batch.push(entry)
  }
  return batch
}

async function read(entries: readonly JobEntry[], backend: Reader): Promise<ReadonlyMap<JobEntry, StoredJob>> {
  const contents = await backend.jobs.read(entries.map(({ id }) => id ?? ''))
  const found = new Map<JobEntry, StoredJob>()
  for (const [index, entry] of entries.entries()) {
    const content = contents[index]
    if (!content || !('posting' in content)) continue
    found.set(entry, content)
    if (entry.windowStatus === 'outside' && !entry.ended) {
      entry.stored = content
      entry.content = 'fresh'
    }
  }
  return found
}
