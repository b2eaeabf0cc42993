/** Jobs that are followed while the view is closed: hints are verified, failed requests repeated, and nothing is asked in vain. */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import type {
  BackendChanges,
  BackendJobs,
  JobStatus,
  JobSummary,
  StoredJob,
} from '../../../src/board/contract/index.ts'
import { LiveView } from '../../../src/board/view/live-view.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { NotConnected } from '../../../src/core/errors.ts'
import { fakeBackend } from '../override-role.ts'

const FREE: JobStatus = { claimed: false, cancelled: false, revision: 1 }
const CLAIMED: JobStatus = { claimed: true, cancelled: false, revision: 2 }

function stored(n: number, revision = 1): StoredJob {
  const uuid = `0199c0de-0000-7000-8000-${String(n).padStart(12, '0')}`
  const posting: StoredJob['posting'] = {
    ...{ uuid, name: `job${n}`, maxAttempts: 3, format: 1, runs: 0, attempts: [], details: {} },
    priority: 'NORMAL',
  }
  return { id: `job${n}`, order: BigInt(n), revision, postedAt: 0, writtenAt: 0, bytes: 10, posting }
}

/** A closed view with own posts, on a backend with these statuses. */
function followerOf({ changes, jobs }: { changes?: Partial<BackendChanges>; jobs?: Partial<BackendJobs> } = {}) {
  const statuses = new Map<string, JobStatus>()
  const asked: string[][] = []
  const unfollowed: string[][] = []
  const errors: string[] = []
  const backend = fakeBackend({
    changes: {
      subscribe: async () => undefined,
      unsubscribe: async () => undefined,
      follow: async (ids) => {
        asked.push([...ids])
        return ids.map((id) => statuses.get(id) ?? FREE)
      },
      unfollow: async (ids) => void unfollowed.push([...ids]),
      ...changes,
    },
    clock: { now: () => Date.now() },
    jobs: {
      list: async () => ({ jobs: [], claimed: new Set(), trashed: new Set(), cancelled: new Set() }),
      read: async (ids) => ids.map((id) => stored(Number(id.slice('job'.length)), 2)),
      ...jobs,
    },
  })
  const listener = {
    jobChanged: () => undefined,
    cancelRequested: () => undefined,
    jobsExpired: () => undefined,
    flowUnaccepted: () => undefined,
    limited: () => undefined,
    statusRead: () => undefined,
    onError: ({ message }: Error) => void errors.push(message),
  }
  const { signal } = new AbortController()
  const view = new LiveView({ backend, listener, unacceptedAfter: 0, signal })
  const post = (n: number) => view.addOwnPost(stored(n), view)
  const settled = async () => {
    for (let turns = 0; turns < 20; turns += 1) await turn()
  }
  return { view, follower: view.follower, statuses, asked, unfollowed, errors, post, settled, backend }
}

test('a hint is only a reason to ask: a forged one changes nothing', async () => {
  const { follower, post, settled, asked, statuses } = followerOf()
  const entry = post(1)
  using _followed = follower.follow(entry)
  await settled()
  follower.onChanges([
    { kind: 'trashed', id: 'job1' },
    { kind: 'gone', id: 'job1' },
    { kind: 'gone', id: 'job2' },
  ])
  await settled()
  expect(asked).toEqual([['job1'], ['job1']])
  expect(entry).toMatchObject({ ended: undefined, claimed: false })
  statuses.set('job1', CLAIMED)
  follower.onChanges([{ kind: 'claimed', id: 'job1' }])
  await settled()
  expect(entry.claimed).toBe(true)
  // The forged hint is not remembered either.
  statuses.set('job1', 'gone')
  follower.onChanges([{ kind: 'gone', id: 'job1' }])
  await settled()
  expect(entry.ended).toBe('COMPLETE')
})

test('a job that was trashed, and was restored or purged at once, ends as trashed', async () => {
  const { follower, post, settled, statuses } = followerOf()
  const [trashed, done] = [post(1), post(2)]
  using _first = follower.follow(trashed)
  using _second = follower.follow(done)
  await settled()
  for (const id of ['job1', 'job2']) statuses.set(id, 'gone')
  follower.onChanges([
    { kind: 'trashed', id: 'job1' },
    { kind: 'gone', id: 'job1' },
    { kind: 'gone', id: 'job2' },
  ])
  await settled()
  expect([trashed.ended, done.ended]).toEqual(['TRASHED', 'COMPLETE'])
})

test('the jobs of one turn are one request, and no request has more than 512', async () => {
  const { view, follower, post, settled, asked, unfollowed } = followerOf()
  const entries = Array.from({ length: 600 }, (_, n) => post(n))
  const held = entries.map((entry) => follower.follow(entry))
  await settled()
  expect(asked.map(({ length }) => length)).toEqual([512, 88])
  // Once the view is open, it receives all changes.
  using _view = view.hold()
  view.resync()
  await vi.waitFor(() => expect(unfollowed.map(({ length }) => length)).toEqual([512, 88]), 60_000)
  for (const each of held) each[Symbol.dispose]()
})

test('the ends of following of one turn are one request, too', async () => {
  const { follower, post, settled, unfollowed } = followerOf()
  const held = Array.from({ length: 600 }, (_, n) => follower.follow(post(n)))
  await settled()
  for (const each of held) each[Symbol.dispose]()
  await settled()
  expect(unfollowed.map(({ length }) => length)).toEqual([512, 88])
})

test('what could not be asked is asked again, once more also for a job that has changed meanwhile', async () => {
  const first = createDeferred()
  const { follower, post, statuses, asked, backend } = followerOf()
  const { follow } = backend.changes
  backend.changes.follow = async () => {
    backend.changes.follow = follow
    await first.promise
    throw new NotConnected('away')
  }
  const entry = post(1)
  using _followed = follower.follow(entry)
  await turn()
  follower.onChanges([{ kind: 'claimed', id: 'job1' }])
  statuses.set('job1', CLAIMED)
  first.resolve()
  await vi.waitFor(() => expect(entry.claimed).toBe(true), 60_000)
  expect(asked).toEqual([['job1']])
})

test('a job that is released while it is asked about is not followed any longer', async () => {
  const answer = createDeferred()
  const { follower, post, settled, unfollowed } = followerOf({
    changes: {
      follow: async (ids) => {
        await answer.promise
        return ids.map(() => FREE)
      },
    },
  })
  const followed = follower.follow(post(1))
  await settled()
  followed[Symbol.dispose]()
  answer.resolve()
  await settled()
  expect(unfollowed.at(-1)).toEqual(['job1'])
})

test('a posting that could not be read without a connection is read after the next status', async () => {
  let isAway = true
  const { follower, post, settled, statuses } = followerOf({
    jobs: {
      read: async (ids) => {
        if (isAway) throw new NotConnected('away')
        return ids.map((id) => stored(Number(id.slice('job'.length)), 2))
      },
    },
  })
  const entry = post(1)
  using _followed = follower.follow(entry)
  await settled()
  statuses.set('job1', { claimed: false, cancelled: true, revision: 2 })
  follower.onChanges([{ kind: 'updated', id: 'job1' }])
  await settled()
  expect(entry).toMatchObject({ cancelRequested: true, content: 'stale' })
  isAway = false
  follower.onChanges([{ kind: 'updated', id: 'job1' }])
  await settled()
  expect(entry).toMatchObject({ content: 'fresh', stored: { revision: 2 } })
})

test('a job that is claimed when the view is closed, and free and behind the window when it is opened again, is free', async () => {
  const spot = (n: number, claimed = false): JobSummary => ({
    ...{ id: `job${n}`, order: BigInt(n), dueAt: 0, claimed, cancelled: false },
    priority: 'NORMAL',
  })
  let claimed = [spot(9, true)]
  const events: string[] = []
  const backend = fakeBackend({
    changes: { subscribe: async () => undefined, unsubscribe: async () => undefined },
    clock: { now: () => Date.now() },
    jobs: { read: async (ids) => ids.map((id) => stored(Number(id.slice('job'.length)))) },
    sections: {
      window: 2,
      windowBytes: 1_000,
      claimed: async () => claimed,
      statusOf: async (ids) => ids.map(() => 'there'),
      range: async () => ({ jobs: [spot(1), spot(2)], end: false, at: Date.now() }),
      delayed: async () => [],
    },
  })
  const listener = {
    jobChanged: (event: string, { id }: { id?: string | undefined }, { isEarlier }: { isEarlier: boolean }) => {
      if (!isEarlier) events.push(`${event} ${id}`)
    },
    cancelRequested: () => undefined,
    jobsExpired: () => undefined,
    flowUnaccepted: () => undefined,
    limited: () => undefined,
    statusRead: () => undefined,
    onError: () => undefined,
  }
  const { signal } = new AbortController()
  const view = new LiveView({ backend, listener, unacceptedAfter: 0, signal })
  const entry = view.byId('job9')
  {
    using _held = view.hold()
    view.resync()
    await view.whenEntered()
    expect(entry).toMatchObject({ claimed: true, windowStatus: 'pinned' })
  }
  view.closeIfUnused()
  claimed = []
  using _held = view.hold()
  view.resync()
  await view.whenEntered()
  expect(entry).toMatchObject({ claimed: false, windowStatus: 'outside' })
  expect(events.filter((event) => event.startsWith('claimed'))).toEqual([])
})
