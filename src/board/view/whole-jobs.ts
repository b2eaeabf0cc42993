/** Jobs with all of their postings, for people who ask: what was given up to save memory is read for them, and not kept. */
import type { Backend, Stored } from '../backend.ts'
import type { Entry } from '../entry.ts'
import { Job } from '../job.ts'
import { isWhole } from '../outline.ts'

/** How many postings are asked for at once, and how large they are together. */
const BATCH = 512
const BATCH_BYTES = 1_024 * 1_024

type Reader = Pick<Backend, 'read'>

/** In one round trip, or none. Undefined where there is no such posting any more, or none that can be read. */
export async function wholeOf(entry: Entry, backend: Reader): Promise<Stored | undefined> {
  return inMemory(entry) ?? (await readAnew([entry], backend)).get(entry)
}

/** In the order of the entries, without those that have left the board. One round trip for every batch that is not in memory. */
export async function* wholeJobs(entries: readonly Entry[], backend: Reader): AsyncGenerator<Job, void, undefined> {
  let read: ReadonlyMap<Entry, Stored> = new Map()
  for (const [index, entry] of entries.entries()) {
    if (!inMemory(entry) && !read.has(entry)) read = await readAnew(nextMissing(entries, index), backend)
    const stored = inMemory(entry) ?? read.get(entry)
    if (stored && !entry.ended) yield new Job(entry, stored.posting)
  }
}

/** What is outside the view may have changed since. */
function inMemory({ stored, standing }: Entry): Stored | undefined {
  return stored && isWhole(stored) && standing !== 'outside' ? stored : undefined
}

function nextMissing(entries: readonly Entry[], from: number): Entry[] {
  const missing: Entry[] = []
  let bytes = 0
  for (let index = from; index < entries.length && missing.length < BATCH; index += 1) {
    const entry = entries[index]
    if (!entry || inMemory(entry) || entry.ended) continue
    bytes += entry.stored?.bytes ?? 0
    if (missing.length > 0 && bytes > BATCH_BYTES) break
    missing.push(entry)
  }
  return missing
}

async function readAnew(entries: readonly Entry[], backend: Reader): Promise<ReadonlyMap<Entry, Stored>> {
  const contents = await backend.read(entries.map(({ id }) => id ?? ''))
  const found = new Map<Entry, Stored>()
  for (const [index, entry] of entries.entries()) {
    const content = contents[index]
    if (!content || !('posting' in content)) continue
    found.set(entry, content)
    if (entry.standing === 'outside' && !entry.ended) {
      entry.stored = content
      entry.content = 'fresh'
    }
  }
  return found
}
