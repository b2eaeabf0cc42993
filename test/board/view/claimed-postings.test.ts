/** Jobs that other processes run, as a process that holds a `Job` of them sees them. */
import { expect, test, vi } from 'vitest'
import type { StoredJob } from '../../../src/board/contract/index.ts'
import { keepEntry } from '../../../src/board/model/entry.ts'
import { LiveView } from '../../../src/board/view/live-view.ts'
import { fakeBackend } from '../override-role.ts'

function stored(runs: number): StoredJob {
  const posting = { uuid: '0199c0de-0000-7000-8000-000000000001', name: 'job', priority: 'NORMAL', runs } as const
  const rest = { size: 'medium', maxAttempts: 3, format: 1, attempts: [], details: {} } as const
  return {
    ...{ id: 'job1', order: 1n, revision: runs, postedAt: 0, writtenAt: 0, bytes: 100 },
    posting: { ...posting, ...rest },
  }
}

test('a release and the next claim that are reported as one update are read, as a claim is', async () => {
  let runs = 1
  const none = new Set<string>()
  const list = async () => ({ jobs: ['job1'], claimed: new Set(['job1']), trashed: none, cancelled: none })
  const backend = fakeBackend({
    changes: { subscribe: async () => undefined },
    clock: { now: () => Date.now() },
    jobs: { list, read: async () => [stored(runs)] },
  })
  const ignore = () => undefined
  const listener = {
    jobChanged: ignore,
    cancelRequested: ignore,
    jobsExpired: ignore,
    flowUnaccepted: ignore,
    limited: ignore,
    statusRead: ignore,
    onError: ignore,
  }
  const { signal } = new AbortController()
  const view = new LiveView({ backend, listener, unacceptedAfter: 0, signal })
  view.hold()
  view.resync()
  await view.whenSettled()
  const entry = view.byId('job1')
  const holder = keepEntry(entry)
  runs = 2
  view.apply([{ kind: 'updated', id: 'job1' }])
  await vi.waitFor(() => expect(entry.stored?.posting.runs).toBe(2), 60_000)
  expect(holder).toBeDefined()
})
