/** The memory that a view takes while it reads: a batch of postings, and the window, keep to their bytes. */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { BackendSections, JobSummary, StoredJob } from '../../../src/board/contract/index.ts'
import { newEntry } from '../../../src/board/model/entry.ts'
import { ContentReader, ReadList } from '../../../src/board/view/content-reader.ts'
import { LiveView } from '../../../src/board/view/live-view.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { fakeBackend } from '../override-role.ts'

const MIB = 1_024 * 1_024

function summary(n: number, more: Partial<JobSummary> = {}): JobSummary {
  return { id: `job${n}`, order: BigInt(n), priority: 'NORMAL', dueAt: 0, claimed: false, cancelled: false, ...more }
}

function stored(id: string, bytes: number, priority: StoredJob['posting']['priority'] = 'NORMAL'): StoredJob {
  const n = id.slice('job'.length)
  const posting = { uuid: `0199c0de-0000-7000-8000-${n.padStart(12, '0')}`, name: id, priority, runs: 0 } as const
  const rest = { size: 'medium', maxAttempts: 3, format: 1, attempts: [], details: {} } as const
  return { id, order: BigInt(n), revision: 1, postedAt: 0, writtenAt: 0, bytes, posting: { ...posting, ...rest } }
}

/** Reads the postings of these sizes, and returns how many bytes came in each batch. */
async function batchesOf(sizes: readonly number[]): Promise<number[]> {
  const list = new ReadList()
  for (const n of sizes.keys()) list.add(newEntry(`job${n}`))
  const batches: number[] = []
  const read = async (ids: readonly string[]) => {
    const jobs = ids.map((id) => stored(id, sizes[Number(id.slice('job'.length))] ?? 0))
    batches.push(jobs.reduce((sum, { bytes }) => sum + bytes, 0))
    return jobs
  }
  const end = createDeferred<void>()
  const onProgress = () => (list.isEmpty ? end.resolve() : undefined)
  const { signal } = new AbortController()
  new ContentReader({
    jobs: { read },
    list,
    signal,
    onRead: () => undefined,
    onProgress,
    onError: end.reject,
  }).start()
  await end.promise
  return batches
}

test('a batch of postings that were never read keeps to its bytes', async () => {
  const batches = await batchesOf(Array<number>(64).fill(250_000))
  expect(batches.reduce((sum, bytes) => sum + bytes, 0)).toBe(64 * 250_000)
  expect(Math.max(...batches)).toBeLessThanOrEqual(4 * MIB)
})

test('after many small postings one batch of large ones is larger, within bounds, and the next ones are not', async () => {
  const batches = await batchesOf([...Array<number>(2_000).fill(100), ...Array<number>(600).fill(250_000)])
  const [largest = 0, ...others] = batches.toSorted((a, b) => b - a)
  expect(largest).toBeLessThanOrEqual(64 * MIB)
  expect(Math.max(...others)).toBeLessThanOrEqual(4 * MIB)
})

test('small postings are read in few batches', async () => {
  expect((await batchesOf(Array<number>(1_000).fill(1_000))).length).toBeLessThanOrEqual(7)
})

test('a window that grows for a caller keeps to its bytes while postings keep arriving', async () => {
  const windowBytes = 10_000
  const early = new Set<string>()
  let nextOrder = 10_000
  let largest = 0
  let isBusyBoard = false
  const sections: Partial<BackendSections> = {
    window: 1_000,
    windowBytes,
    claimed: async () => [],
    delayed: async () => [],
    statusOf: async (ids) => ids.map(() => 'there'),
    range: async ({ after, limit }) => {
      const first = after ? Number(after.order) + 1 : 1
      const jobs = Array.from({ length: Math.min(limit, 5) }, (_, index) => summary(first + index))
      return { jobs, end: false, at: Date.now() }
    },
  }
  const backend = fakeBackend({
    changes: { subscribe: async () => undefined },
    clock: { now: () => Date.now() },
    sections,
    jobs: {
      read: async (ids) => {
        largest = Math.max(largest, view.queue.bytes)
        // Before these are read another job arrives that goes before all others, two hundred times.
        if (isBusyBoard && early.size < 200) post()
        return ids.map((id) => stored(id, 1_000, early.has(id) ? 'HIGH' : 'NORMAL'))
      },
    },
  })
  const failures: Error[] = []
  const ignore = () => undefined
  const onError = (error: Error) => failures.push(error)
  const listener = {
    jobChanged: ignore,
    cancelRequested: ignore,
    jobsExpired: ignore,
    flowUnaccepted: ignore,
    limited: ignore,
    statusRead: ignore,
    onError,
  }
  const { signal } = new AbortController()
  const view = new LiveView({ backend, listener, unacceptedAfter: 0, signal })
  view.hold()
  const post = () => {
    nextOrder -= 1
    const at = summary(nextOrder, { priority: 'HIGH' })
    early.add(at.id)
    view.apply([{ kind: 'posted', id: at.id, at }])
  }
  view.resync()
  await turn()
  await view.whenSettled()
  isBusyBoard = true
  // A call during the last read waits for it and reads nothing on.
  while (early.size === 0) await view.extent.readOn()
  while (early.size < 200) await turn()
  await view.whenSettled()
  expect(failures).toEqual([])
  expect(largest).toBeLessThan(4 * windowBytes)
})
