/** What changes on a long board while it is listed: a backend that answers when it is told to. */
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { BackendSections, JobSummary, StoredJob } from '../../../src/board/contract/index.ts'
import { SuspectPlace } from '../../../src/board/queue/suspect-place.ts'
import { LiveView } from '../../../src/board/view/live-view.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { NotConnected } from '../../../src/core/errors.ts'
import { fakeBackend } from '../override-role.ts'

const spot = (n: number, more: Partial<JobSummary> = {}): JobSummary => ({
  id: `job${n}`,
  order: BigInt(n),
  priority: 'NORMAL',
  dueAt: 0,
  claimed: false,
  cancelled: false,
  ...more,
})

function stored(n: number, more: Partial<StoredJob['posting']> = {}): StoredJob {
  const uuid = `0199c0de-0000-7000-8000-00000000000${n}`
  const posting = {
    uuid,
    name: `job${n}`,
    priority: 'NORMAL',
    size: 'medium',
    maxAttempts: 3,
    format: 1,
    ...more,
  } as const
  const at = { revision: 1, postedAt: 0, writtenAt: 0, bytes: 10 }
  return { id: `job${n}`, order: BigInt(n), ...at, posting: { runs: 0, attempts: [], details: {}, ...posting } }
}

/** A view of three jobs, whose backend has whatever `answers` say. */
function viewOf(answers: Partial<BackendSections>) {
  const happened: string[] = []
  const sections: Partial<BackendSections> = {
    window: 3,
    windowBytes: 1_000,
    claimed: async () => [],
    statusOf: async (ids) => ids.map(() => 'there'),
    range: async () => ({ jobs: [spot(1), spot(2), spot(3)], end: false, at: Date.now() }),
    delayed: async () => [],
    ...answers,
  }
  const backend = fakeBackend({
    changes: { subscribe: async () => undefined },
    clock: { now: () => Date.now() },
    jobs: { read: async (ids) => ids.map((id) => stored(Number(id.slice('job'.length)))) },
    sections,
  })
  const listener = {
    jobChanged: (event: string, { id }: { id?: string | undefined }, { isEarlier }: { isEarlier: boolean }) => {
      if (!isEarlier) happened.push(`${event} ${id}`)
    },
    cancelRequested: () => undefined,
    jobsExpired: () => undefined,
    flowUnaccepted: () => undefined,
    limited: () => undefined,
    statusRead: () => undefined,
    onError: (error: Error) => happened.push(`failed ${error.message}`),
  }
  const { signal } = new AbortController()
  const view = new LiveView({ backend, listener, unacceptedAfter: 0, signal })
  view.hold()
  return { view, happened, sections, backend }
}

const idsIn = (view: LiveView) => [...view.entries()].map(({ id }) => id).sort()

describe('while a long board is listed', () => {
  test('a job that is released between two answers is in the view', async () => {
    let released = false
    const { view } = viewOf({
      claimed: async () => {
        await turn()
        return released ? [] : [spot(2, { claimed: true })]
      },
      range: async () => {
        const head = { jobs: [spot(1), spot(3)], end: true, at: Date.now() }
        // As soon as somebody has looked at what is free, its owner gives it back.
        released = true
        view.apply([{ kind: 'released', id: 'job2' }])
        await turn()
        return head
      },
    })
    view.resync()
    await view.whenSettled()
    expect(idsIn(view)).toEqual(['job1', 'job2', 'job3'])
    expect(
      view.queue.reserveNext({ max: 3, accept: () => true, suspects: new SuspectPlace(), spread: 1 }),
    ).toHaveLength(3)
  })

  test('a job outside that is read meanwhile is not reported as done', async () => {
    const { view, happened, sections } = viewOf({})
    view.resync()
    await view.whenSettled()
    const answer = createDeferred()
    Object.assign(sections, { claimed: () => answer.promise.then(() => []) })
    view.resync()
    const entry = view.byId('job9')
    entry.stored = stored(9)
    entry.content = 'fresh'
    answer.resolve()
    await view.whenSettled()
    expect(entry.ended).toBeUndefined()
    expect(happened).not.toContain('consumed job9')
  })

  test('a job outside that a caller holds on to stays in the view', async () => {
    const { view } = viewOf({})
    view.resync()
    await view.whenSettled()
    const entry = view.addOwnPost({ ...stored(9, { delay: 3_600_000 }), writtenAt: Date.now() }, view)
    using _reserved = view.queue.reserve(entry)
    using _held = await view.extent.pin(entry)
    await view.whenSettled()
    view.resync()
    await view.whenSettled()
    expect(entry.windowStatus).toBe('pinned')
    expect(view.queue.reserveFree(entry)?.entry).toBe(entry)
  })

  test('a job whose posting is gone before its end was reported ends as the board says', async () => {
    const { view, happened, sections, backend } = viewOf({})
    view.resync()
    await view.whenSettled()
    Object.assign(sections, { statusOf: async () => ['trashed'] })
    backend.jobs.read = async () => [undefined]
    const ended = view.byUuid(stored(2).posting.uuid)
    if (!ended) throw new Error('job2 is not in the view')
    view.apply([{ kind: 'updated', id: 'job2' }])
    while (!ended.ended) await view.changed.wait()
    expect(happened.filter((what) => what.endsWith('job2'))).toEqual(['trashed job2'])
  })
})

describe('a window of few bytes', () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => spot(index + 1))
  const heavy = (ids: readonly string[]) => ids.map((id) => ({ ...stored(Number(id.slice('job'.length))), bytes: 400 }))

  test('keeps as many postings as fit, however many jobs it may have', async () => {
    const { view, backend } = viewOf({
      window: 100,
      range: async ({ after, limit }) => {
        const rest = many(50).filter(({ order }) => order > (after?.order ?? 0n))
        return { jobs: rest.slice(0, limit), end: rest.length <= limit, at: Date.now() }
      },
    })
    backend.jobs.read = async (ids) => heavy(ids)
    view.resync()
    await view.whenSettled()
    expect(view.queue.bytes).toBeLessThanOrEqual(1_000)
    expect(idsIn(view)).toContain('job1')
    expect(view.extent.isWholeBoard).toBe(false)
  })

  test('reads on in parts that fit, for one who finds nothing in it to claim', async () => {
    const limits: number[] = []
    const { view, backend } = viewOf({
      window: 100,
      range: async ({ after, limit }) => {
        if (after) limits.push(limit)
        const rest = many(12).filter(({ order }) => order > (after?.order ?? 0n))
        return { jobs: rest.slice(0, limit), end: rest.length <= limit, at: Date.now() }
      },
    })
    backend.jobs.read = async (ids) => heavy(ids)
    view.resync()
    await view.whenSettled()
    while (await view.extent.readOn());
    expect(idsIn(view)).toHaveLength(12)
    expect(view.extent.isWholeBoard).toBe(true)
    expect(Math.max(...limits)).toBeLessThanOrEqual(3)
  })
})

test('a caller that reads on does not keep a read from its answer, whose only job has left the board', async () => {
  const { view, sections, backend } = viewOf({})
  view.resync()
  await view.whenSettled()
  const asked = createDeferred()
  backend.jobs.read = async (ids) => {
    asked.resolve()
    await turn()
    return ids.map(() => undefined)
  }
  view.apply([{ kind: 'updated', id: 'job2' }])
  await asked.promise
  view.apply([{ kind: 'gone', id: 'job2' }])
  Object.assign(sections, { range: async () => ({ jobs: [spot(1), spot(3), spot(4)], end: true, at: Date.now() }) })
  // Callers that have no time to wait read on until there is no more. Without an answer in between, no other work of the process went on.
  let sectionsRead = 0
  while (sectionsRead < 1_000 && (await view.extent.readOn())) sectionsRead += 1
  expect(sectionsRead).toBe(1)
  expect(idsIn(view)).toEqual(['job1', 'job3', 'job4'])
})

test('a pin that reads up to its job ends its read at a gap, and goes on after the listing', async () => {
  const disk = { resources: { exclusive: ['disk'] } }
  let reads = 0
  let listings = 0
  const { view, backend } = viewOf({
    claimed: async () => {
      listings += 1
      // A listing takes a while.
      await turn()
      return []
    },
    range: async ({ after }) => {
      if (!after) return { jobs: [spot(1), spot(2), spot(3)], end: false, at: Date.now() }
      reads += 1
      if (reads === 1) view.resync()
      if (reads > 100) throw new Error('reads for ever')
      const rest = [4, 5, 6, 7, 8, 9].map((n) => spot(n)).filter(({ order }) => order > after.order)
      return { jobs: rest.slice(0, 3), end: rest.length <= 3, at: Date.now() }
    },
  })
  backend.jobs.read = async (ids) => ids.map((id) => stored(Number(id.slice('job'.length)), disk))
  view.resync()
  await view.whenSettled()
  const entry = view.addOwnPost(stored(9, disk), view)
  using _held = await view.extent.pin(entry)
  expect({ reads, listings }).toEqual({ reads: 3, listings: 2 })
  expect(idsIn(view)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `job${n}`))
})

test('without a connection the window is read once, and again after the next listing', async () => {
  const { view, sections } = viewOf({})
  const range = sections.range
  view.resync()
  await view.whenSettled()
  let asked = 0
  Object.assign(sections, {
    range: async () => {
      asked += 1
      throw new NotConnected('no session')
    },
  })
  // The window is half empty now, and reads on.
  view.apply([1, 2].map((n) => ({ kind: 'gone', id: `job${n}` })))
  // Before the pause this turn never came: a read that failed at once was followed by another one.
  await turn()
  view.evaluate()
  await turn()
  expect(asked).toBe(1)
  expect(await view.extent.readOn()).toBe(false)
  Object.assign(sections, { range })
  view.resync()
  await view.whenSettled()
  expect(idsIn(view)).toEqual(['job1', 'job2', 'job3'])
})
