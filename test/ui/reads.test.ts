/** What the dashboard's API says of a board: every answer is checked by its schema, see `client.ts`. */
import { afterEach, beforeEach, describe, expect, onTestFinished, vi } from 'vitest'
import { type JobBoard, openBoard, schedule } from '../../src/board/index.ts'
import { memoryTestBackend } from '../../src/board/internal.ts'
import { startConductor } from '../../src/conductor/index.ts'
import { systemAlarmClock } from '../../src/core/time.ts'
import { input, linear, task } from '../../src/flow/index.ts'
import { openPersistence, type Persistence } from '../../src/persistence/index.ts'
import type { WireFlow, WireOverview } from '../../src/ui/wire/board.ts'
import type { WireJobDetail, WireJobPage, WireJobValues } from '../../src/ui/wire/jobs.ts'
import type { WirePicture } from '../../src/ui/wire/picture.ts'
import type { WireSession } from '../../src/ui/wire/session.ts'
import { sqlitePlace } from '../board/backends/sqlite/boards.ts'
import { delegate } from '../conductor/conducting.ts'
import { requestOf } from '../persistence/flows.ts'
import { usual as test, variant } from '../variant.ts'
import { type Client, openClient } from './client.ts'

let board: JobBoard
let persistence: Persistence
let client: Client

beforeEach(async () => {
  board = await openBoard('memory:', { who: 'tester' })
  persistence = await openPersistence('memory:')
  client = openClient({ board, persistence })
})

afterEach(async () => {
  await client[Symbol.asyncDispose]()
  await persistence.close()
  await board.close()
})

const read = async <T>(path: string): Promise<T> => {
  const { status, body } = await client.get(path)
  expect(status, JSON.stringify(body)).toBe(200)
  return body as T
}

test('the session says who asks, and which boards there are', async () => {
  const session = await read<WireSession>('/session')
  expect(session).toMatchObject({ who: 'local', level: 'admin', values: true, readOnly: false, doctor: false })
  expect(session.boards).toEqual([
    {
      name: 'main',
      level: 'admin',
      uri: board.uri,
      kind: 'memory',
      paused: false,
      supports: { limits: true, flowSettings: true, batches: true, history: true, logbooks: true },
    },
  ])
})

test('the session says that a board is an SQLite file', async () => {
  await using place = await sqlitePlace()
  await using file = await place.open()
  await using dashboard = openClient({ board: file })
  expect((await dashboard.get<WireSession>('/session')).body.boards).toMatchObject([{ kind: 'sqlite', uri: file.uri }])
})

describe('jobs', () => {
  test('are listed in claim order, page by page', async () => {
    for (const [index, priority] of (['LOW', 'NORMAL', 'HIGH', 'NORMAL'] as const).entries())
      await board.post('import', {}, { name: `job-${index}`, priority })
    const first = await read<WireJobPage>('/boards/main/jobs?limit=3')
    expect(first.jobs.map(({ name }) => name)).toEqual(['job-2', 'job-1', 'job-3'])
    expect(first.scan.total).toBe(4)
    const second = await read<WireJobPage>(`/boards/main/jobs?limit=3&after=${first.scan.next}`)
    expect(second.jobs.map(({ name }) => name)).toEqual(['job-0'])
    expect(second.scan.next).toBeUndefined()
  })

  test('a page that ends with the last job has no next one', async () => {
    for (let index = 0; index < 4; index += 1) await board.post('import', {})
    const page = await read<WireJobPage>('/boards/main/jobs?limit=4')
    expect(page.jobs).toHaveLength(4)
    expect(page.scan.next).toBeUndefined()
  })

  test('filters are applied before the page is cut', async () => {
    for (let index = 0; index < 60; index += 1) await board.post(index % 20 === 19 ? 'rare' : 'often', {})
    const page = await read<WireJobPage>('/boards/main/jobs?q=flow:rare&limit=2')
    expect(page.jobs.map(({ flow }) => flow)).toEqual(['rare', 'rare'])
    const rest = await read<WireJobPage>(`/boards/main/jobs?q=flow:rare&limit=2&after=${page.scan.next}`)
    expect(rest.jobs).toHaveLength(1)
    expect(rest.scan.next).toBeUndefined()
  })

  test('show who runs them, since when, and why others wait', async () => {
    const resources = { exclusive: ['disk'] }
    const running = await board.post('import', {}, { resources })
    const waiting = await board.post('import', {}, { resources })
    const delayed = await board.post('import', {}, { delay: '1h' })
    await using _claim = await board.claim(running)
    const { jobs } = await read<WireJobPage>('/boards/main/jobs')
    const row = (uuid: string) => jobs.find((job) => job.uuid === uuid)
    expect(row(running.uuid)).toMatchObject({ state: 'RUNNING', owner: 'tester', runs: 1 })
    expect(row(running.uuid)?.runningSince).toBeDefined()
    expect(row(waiting.uuid)).toMatchObject({
      state: 'WAITING',
      waitingFor: { kind: 'resource', key: 'disk', jobs: [running.uuid] },
    })
    expect(row(delayed.uuid)).toMatchObject({ state: 'DELAYED', waitingFor: { kind: 'delay' } })
  })

  test('a job of a queue that no conductor serves says so, in its row and in the overview', async () => {
    const metadata = { flows: ['a'], queues: ['bulk'] }
    await using _conductor = await board.registerEntity({ kind: 'conductor', name: 'one', metadata })
    for (const queue of ['reports', 'mail', 'reports', 'bulk']) await board.post('a', {}, { name: queue, queue })
    const { jobs } = await read<WireJobPage>('/boards/main/jobs')
    const waits = jobs.map(({ name, waitingFor }) => [name, waitingFor?.queue, waitingFor?.text])
    expect(waits).toEqual([
      ['reports', 'reports', 'no conductor serves queue reports'],
      ['mail', 'mail', 'no conductor serves queue mail'],
      ['reports', 'reports', 'no conductor serves queue reports'],
      ['bulk', undefined, undefined],
    ])
    const { waitingFor } = await read<WireOverview>('/boards/main/overview')
    expect(waitingFor.map(({ reason, jobs }) => [reason.queue, jobs])).toEqual([
      ['reports', 2],
      ['mail', 1],
    ])
  })

  test('a search by states reads the trash and the history', async () => {
    const done = await board.post('a', {}, { queue: 'bulk' })
    const [trashed, waiting] = [await board.post('b', {}), await board.post('c', {})]
    await (await board.claim(done)).consume()
    await (await board.claim(trashed)).trash({ reason: 'broken' })
    const found = async (q: string) => {
      const { jobs } = await read<WireJobPage>(`/boards/main/jobs?q=${encodeURIComponent(q)}`)
      return jobs.map(({ uuid, state }) => [uuid, state])
    }
    expect(await found('state:trashed')).toEqual([[trashed.uuid, 'TRASHED']])
    expect(await found('state:done')).toEqual([[done.uuid, 'DONE']])
    expect(await found('state:waiting,done')).toEqual([
      [waiting.uuid, 'WAITING'],
      [done.uuid, 'DONE'],
    ])
    expect(await found('state:trashed reason:brok*')).toEqual([[trashed.uuid, 'TRASHED']])
    expect(await found('state:done queue:bulk')).toEqual([[done.uuid, 'DONE']])
    expect(await found('state:done queue:default')).toEqual([])
    for (const { uuid } of [done, trashed, waiting]) {
      expect((await found(uuid)).map(([one]) => one)).toContain(uuid)
      expect((await found(uuid.slice(-12))).map(([one]) => one)).toContain(uuid)
    }
  })

  test('a field that does not exist is refused with the list', async () => {
    const { status, body } = await client.get('/boards/main/jobs?q=nmae:x')
    expect([status, body['code']]).toEqual([400, 'INVALID_ARGUMENT'])
    expect(body['message']).toContain('did you mean name?')
  })

  test('a cursor that is none, and a limit that is none, are refused', async () => {
    for (const path of [
      '/boards/main/jobs?after=x',
      '/boards/main/jobs?after=board:x',
      '/boards/main/jobs?limit=0',
      '/boards/main/trash?after=x',
    ])
      expect((await client.get(path)).status, path).toBe(400)
  })

  variant('a long board is shown as far as it is read, to those who prefer not to wait', async () => {
    const jobs = 20_000
    await board.postMany(Array.from({ length: jobs }, (_, n) => ({ flow: 'a', store: {}, name: `job ${n}` })))
    await using fresh = openClient({ board })
    const first = await fresh.get<WireJobPage>('/boards/main/jobs?limit=3', { prefer: 'respond-async' })
    expect(first.body.jobs.map(({ name }) => name)).toEqual(['job 0', 'job 1', 'job 2'])
    const { read, all } = first.body.scan.reading ?? {}
    expect(read).toBeLessThan(jobs)
    expect(all).toBe(jobs)
    const overview = await fresh.get<WireOverview>('/boards/main/overview', { prefer: 'respond-async' })
    expect(overview.body.jobs.waiting).toMatchObject({ atLeast: true })
    const whole = await fresh.get<WireJobPage>('/boards/main/jobs?limit=3')
    expect(whole.body.jobs.map(({ name }) => name)).toEqual(['job 0', 'job 1', 'job 2'])
    expect(whole.body.scan).toMatchObject({ total: jobs })
    expect(whole.body.scan).not.toHaveProperty('reading')
  })

  variant(
    'a bounded search says how far it is, and goes on',
    async () => {
      await board.postMany(
        Array.from({ length: 20_500 }, (_, index) => ({ flow: index === 20_200 ? 'needle' : 'hay', store: {} })),
      )
      const first = await read<WireJobPage>('/boards/main/jobs?q=flow:needle')
      let [page, requests] = [first, 1]
      while (page.scan.next !== undefined && page.jobs.length === 0) {
        page = await read<WireJobPage>(`/boards/main/jobs?q=flow:needle&after=${page.scan.next}`)
        requests += 1
      }
      expect(first.scan.next).toBeDefined()
      expect(first.scan.looked).toBeLessThanOrEqual(20_000)
      expect(page.jobs.map(({ flow }) => flow)).toEqual(['needle'])
      expect(requests).toBeGreaterThan(1)
    },
    60_000,
  )
})

describe('a job', () => {
  const add = task('add', { requires: ['one'], provides: 'sum', execute: async ({ one }: { one: number }) => one + 1 })

  test('on the board: what it asks for, its attempts, and why it waits', async () => {
    const before = await board.post('first', {})
    const { uuid } = await board.post(
      'import',
      { file: 'secret.csv' },
      { after: [before.uuid], key: 'k', resources: { shared: ['disk'] } },
    )
    const detail = await read<WireJobDetail>(`/boards/main/jobs/${uuid}`)
    expect(detail).toMatchObject({
      ...{ uuid, flow: 'import', state: 'DELAYED', key: 'k', storeKeys: ['file'], logbook: null, postedBy: 'tester' },
      ...{ resources: { exclusive: [], shared: ['disk'] }, after: [{ uuid: before.uuid, on: 'done' }] },
      waitingFor: { kind: 'job', jobs: [before.uuid] },
    })
    expect(JSON.stringify(detail)).not.toContain('secret.csv')
    expect(detail.commands['show']).toContain(`jobboard show ${uuid} --board memory:`)
    expect((await read<WireJobDetail>(`/boards/main/jobs/${before.uuid}`)).dependents).toEqual([uuid])
  })

  test('that is done: its logbook, and its results with the right to see them', async () => {
    const flow = linear('sum', input<{ one: number }>(), add)
    await using _conductor = await startConductor({ board, persistence, flows: [flow] })
    const job = await board.post('sum', { one: 1 })
    await job.wait({ timeout: '20s' })
    const detail = await read<WireJobDetail>(`/boards/main/jobs/${job.uuid}`)
    expect(detail).toMatchObject({
      state: 'DONE',
      flow: 'sum',
      logbook: { state: 'SUCCESS', atoms: [{ name: 'add', state: 'SUCCESS' }] },
    })
    expect(await read<WireJobValues>(`/boards/main/jobs/${job.uuid}/values`)).toEqual({
      store: {},
      results: { add: 2 },
    })
    const { flows } = await read<{ flows: WireFlow[] }>('/boards/main/flows')
    expect(flows).toMatchObject([{ name: 'sum', atoms: 1, done: 1, failed: 0 }])
    expect(flows[0]?.conductors).toHaveLength(1)
    const picture = await read<WirePicture>('/boards/main/flows/picture?name=sum')
    expect(picture).toMatchObject({ flow: 'sum', nodes: [{ name: 'add', kind: 'task' }], collapsed: false })
    expect(await read<WirePicture>(`/boards/main/jobs/${job.uuid}/picture`)).toEqual(picture)
    expect((await client.get('/boards/main/flows/other/picture')).status).toBe(404)
  })

  test('in the trash', async () => {
    const job = await board.post('import', { a: 1 })
    await (await board.claim(job)).trash({ reason: 'disk full' })
    const detail = await read<WireJobDetail>(`/boards/main/jobs/${job.uuid}`)
    expect(detail).toMatchObject({ state: 'TRASHED', reason: 'disk full', trashedBy: 'tester', storeKeys: ['a'] })
    expect(detail.attempts).toMatchObject([{ outcome: 'failed', reason: 'disk full', tookMs: expect.any(Number) }])
    expect(detail.commands['restore']).toBe(`jobboard trash restore ${job.uuid} --board memory:`)
  })

  test('in the trash, although its flow is done: it was trashed before its owner consumed it', async () => {
    const { uuid } = await board.post('flow', { a: 1 })
    {
      await using log = await persistence.acquire(requestOf(uuid, 1))
      for (const state of ['RUNNING', 'SUCCESS'] as const) await log.write({ state })
    }
    await board.cancel(uuid, { reason: 'too late' })
    const detail = await read<WireJobDetail>(`/boards/main/jobs/${uuid}`)
    expect(detail).toMatchObject({ state: 'TRASHED', trashedBy: 'tester', logbook: { state: 'SUCCESS' } })
    expect(detail.reason).toContain('too late')
    expect(await read<WireJobValues>(`/boards/main/jobs/${uuid}/values`)).toMatchObject({ store: { a: 1 } })
  })

  test('that nobody knows', async () => {
    const { status, body } = await client.get('/boards/main/jobs/00000000-0000-7000-8000-000000000000')
    expect([status, body['code']]).toEqual([404, 'NOT_FOUND'])
    expect((await client.get('/boards/other/jobs')).status).toBe(404)
  })
})

describe('the overview', () => {
  test('counts jobs, and says why they wait and what runs longest', async () => {
    const [running] = [await board.post('a', {}), await board.post('b', {}), await board.post('b', {}, { delay: '1h' })]
    await using _claim = await board.claim(running)
    const gone = await board.post('c', {})
    await (await board.claim(gone)).trash({ reason: 'timeout after 312 ms' })
    const overview = await read<WireOverview>('/boards/main/overview')
    expect(overview.jobs).toEqual({
      waiting: { value: 1, atLeast: false },
      delayed: { value: 1, atLeast: false },
      running: { value: 1, atLeast: false },
      trashed: { value: 1, atLeast: false },
    })
    expect(overview.byFlow).toContainEqual({ flow: 'b', waiting: 1, delayed: 1, running: 0, trashed: 0 })
    expect(overview.running).toMatchObject([{ uuid: running.uuid, owner: 'tester' }])
    expect(overview.failures).toMatchObject([{ reason: 'timeout after … ms', flow: 'c', jobs: 1 }])
    const [{ query = '' } = {}] = overview.failures
    const { jobs: found } = await read<WireJobPage>(`/boards/main/trash?${new URLSearchParams({ q: query })}`)
    expect(found.map(({ flow }) => flow)).toEqual(['c'])
    expect(overview.byFlow).toContainEqual({ flow: 'c', waiting: 0, delayed: 0, running: 0, trashed: 1 })
    expect(overview.waitingFor.map(({ reason }) => reason.kind)).toEqual(['delay'])
    expect(overview.minutes).toHaveLength(60)
    expect(overview.warnings).toContainEqual({ text: 'no conductor is connected, and 1 job waits', page: 'conductors' })
  })

  test('warns of suspects, of jobs that ignore a cancellation, and of slots that tasks keep', async () => {
    const backend = memoryTestBackend({ clock: systemAlarmClock })
    await board.close()
    board = await backend.open({ who: 'tester' })
    await client[Symbol.asyncDispose]()
    client = openClient({ board, persistence })
    const [first, second] = [await board.post('a', {}), await board.post('a', {})]
    for (const job of [first, first, second, second]) {
      const mortal = await backend.open({ who: 'mortal' })
      await mortal.claim(await mortal.find(job.uuid))
      await mortal.close()
    }
    await using _claim = await board.claim(await board.find(first.uuid))
    const suspect = { job: first.uuid, since: new Date() }
    const metadata = { flows: ['a'], concurrency: 4, running: 2, suspect, unended: ['released'] }
    await using _one = await board.registerEntity({ kind: 'conductor', name: 'one', metadata })
    await board.cancel(first)
    const { warnings } = await read<WireOverview>('/boards/main/overview')
    const page = (uuid: string) => `jobs?id=${uuid}`
    expect(warnings).toEqual([
      {
        page: page(first.uuid),
        text: expect.stringMatching(/tester has run it for .*; other suspects \(1 of this board\) wait/),
      },
      { page: page(second.uuid), text: expect.stringContaining(`it waits for job ${first.uuid} in one since`) },
      {
        page: page(first.uuid),
        text: expect.stringContaining('its cancellation was requested, and tester still runs it'),
      },
      { page: 'conductors', text: expect.stringContaining('keep 1 of 4 slots: released') },
    ])
    const { conductors } = await read<{ conductors: unknown[] }>('/boards/main/conductors')
    expect(conductors).toMatchObject([{ name: 'one', running: 2, unended: ['released'], jobs: [] }])
  })

  test('does not count cancelled jobs as failures, nor jobs with nothing in their way as waiting for something', async () => {
    await board.post('a', {})
    await board.cancel(await board.post('a', {}), { reason: 'not wanted' })
    const { failures, jobs, waitingFor, waitingForSlot } = await read<WireOverview>('/boards/main/overview')
    expect([failures, jobs.trashed.value, waitingFor, waitingForSlot]).toEqual([[], 1, [], 1])
  })

  test('names the limit that has no token, also where no job is claimed', async () => {
    await board.limits.set('mail/*', { rate: { limit: 1, per: '1h' } })
    const limits = ['mail/ada']
    const [first, second] = [await board.post('a', {}, { limits }), await board.post('a', {}, { limits })]
    await (await board.claim(first)).consume()
    const until = (await board.limits.show('mail/ada')).keys?.[0]?.nextStart?.toISOString()
    const reason = { kind: 'limit', key: 'mail/ada', until, text: `limit mail/ada has no token until ${until}` }
    const { jobs } = await read<WireJobPage>('/boards/main/jobs')
    expect(jobs).toMatchObject([{ uuid: second.uuid, waitingFor: reason }])
    expect(await read<WireJobDetail>(`/boards/main/jobs/${second.uuid}`)).toMatchObject({ waitingFor: reason })
    const overview = await read<WireOverview>('/boards/main/overview')
    expect(overview.waitingFor).toMatchObject([{ reason, jobs: 1 }])
    expect(overview.waitingForSlot).toBe(0)
  })

  test('counts each failed run, also of a job that is tried again, and no cancelled one', async () => {
    const failed = async () => {
      const { minutes } = await read<WireOverview>('/boards/main/overview')
      return minutes.reduce((sum, minute) => sum + minute.failed, 0)
    }
    const running = await board.claim(await board.post('before', {}, { maxAttempts: 2 }))
    expect(await failed()).toBe(0)
    await running.abandon({ failed: true, delay: 0 })
    await expect.poll(failed, { timeout: 10_000 }).toBe(1)
    await (await board.claimNext())[0].abandon()
    await (await board.claimNext())[0].trash({ reason: 'broken' })
    await expect.poll(failed, { timeout: 10_000 }).toBe(2)
    const cancelled = await board.claim(await board.post('a', {}))
    await board.cancel(cancelled.job)
    await expect.poll(() => cancelled.job.cancelRequested).toBe(true)
    await cancelled.trash({ reason: 'cancelled' })
    await board.cancel(await board.post('a', {}))
    const last = await board.claim(await board.post('a', {}))
    await last.abandon({ failed: true, delay: '1h' })
    await expect.poll(failed, { timeout: 10_000 }).toBe(3)
  })

  test('has the throughput from the history, and then from events', async () => {
    const before = await board.post('a', {})
    await (await board.claim(before)).consume()
    const first = await read<WireOverview>('/boards/main/overview')
    const sums = ({ minutes }: WireOverview) => {
      return minutes.reduce((sum, { posted, done }) => ({ posted: sum.posted + posted, done: sum.done + done }), {
        posted: 0,
        done: 0,
      })
    }
    expect(sums(first)).toEqual({ posted: 1, done: 1 })
    const after = await board.post('a', {})
    await (await board.claim(after)).consume()
    expect(sums(await read<WireOverview>('/boards/main/overview'))).toEqual({ posted: 2, done: 2 })
  })
})

describe('lists', () => {
  test('of the trash, newest first, and by reasons', async () => {
    for (const reason of ['no row 17', 'no row 4', 'other']) {
      const job = await board.post('import', {})
      await (await board.claim(job)).trash({ reason })
    }
    const first = await read<WireJobPage>('/boards/main/trash?limit=2')
    expect(first.jobs.map(({ reason }) => reason)).toEqual(['other', 'no row 4'])
    const second = await read<WireJobPage>(`/boards/main/trash?limit=2&after=${first.scan.next}`)
    expect(second.jobs.map(({ reason }) => reason)).toEqual(['no row 17'])
    const { groups } = await read<{ groups: { reason: string; jobs: number; query: string }[] }>(
      '/boards/main/trash/groups',
    )
    expect(groups.map(({ reason, jobs }) => [reason, jobs])).toEqual([
      ['no row …', 2],
      ['other', 1],
    ])
    const found = await read<WireJobPage>(`/boards/main/trash?q=${encodeURIComponent(groups[0]?.query ?? '')}`)
    expect(found.jobs.map(({ reason }) => reason)).toEqual(['no row 4', 'no row 17'])
  })

  test.each([
    ['a number at the end', ['HTTP 500'], ['HTTP 503 from upstream a', 'HTTP 500 x']],
    ['a wildcard', ['*'], ['anything']],
    ['an ellipsis of its own', ['a…z'], ['abcz']],
    ['no text', [''], ['x']],
    ['quotes and backslashes', ['no "row" in C:\\x'], ['no row in C:x']],
    ['a cut in the middle of a character', [`${'x'.repeat(299)}🧨${'y'.repeat(400)}`], ['x']],
    ['flows that differ in upper and lower case', ['it fails'], []],
    ['half a character', ['half \ud83e of one'], ['half of one']],
  ])('of the trash by reasons: the query of a group matches its jobs only (%s)', async (_, wanted, others) => {
    for (const reason of [...wanted, ...others]) {
      const job = await board.post('import', {})
      await (await board.claim(job)).trash({ reason })
    }
    const { groups } = await read<{ groups: { example: string; query: string }[] }>('/boards/main/trash/groups')
    const [first] = (await read<WireJobPage>(`/boards/main/trash?limit=${1 + others.length}`)).jobs.slice(-1)
    const group = groups.find(({ example }) => example === first?.uuid)
    const found = await read<WireJobPage>(`/boards/main/trash?q=${encodeURIComponent(group?.query ?? '-')}`)
    expect(found.jobs.map(({ uuid }) => uuid)).toEqual([first?.uuid])
  })

  test('of schedules, with their rule in words', async () => {
    await board.schedules.put(schedule('b', { cron: '* * * * *', zone: 'Europe/Berlin' }, 'import', {}))
    const { schedules } = await read<{ schedules: { id: string; words: string }[] }>('/boards/main/schedules')
    expect(schedules.map(({ words }) => words)).toEqual(['Every minute, in Europe/Berlin'])
  })

  test('of limits, schedules, resources, batches, conductors, history and logbooks', async () => {
    await board.limits.set('api', { concurrency: 1, rate: { limit: 5, per: '1s' } })
    await board.limits.stop('mail', { reason: 'quota' })
    await board.schedules.put(schedule('nightly', { cron: '0 2 * * *' }, 'report', {}))
    const batch = await board.batch({ name: 'import' })
    const [held, wants] = [
      await batch.post('import', {}, { resources: { exclusive: ['disk'] }, limits: ['api'] }),
      await batch.post('import', {}, { resources: { exclusive: ['disk'] }, limits: ['api'] }),
    ]
    await using _claim = await board.claim(held)
    const { limits } = await read<{ limits: unknown[] }>('/boards/main/limits')
    expect(limits).toMatchObject([
      {
        key: 'api',
        concurrency: 1,
        keys: [{ key: 'api', running: 1, waiting: 1 }],
        waiting: { value: 1, atLeast: false },
      },
      { key: 'mail', held: { reason: 'quota', by: 'tester' } },
    ])
    const { schedules } = await read<{ schedules: { upcoming: string[] }[] }>('/boards/main/schedules')
    expect(schedules).toMatchObject([{ id: 'nightly', state: 'active', flow: 'report' }])
    expect(schedules[0]?.upcoming).toHaveLength(5)
    const { resources } = await read<{ resources: unknown[] }>('/boards/main/resources')
    expect(resources).toMatchObject([
      {
        resource: 'disk',
        mode: 'exclusive',
        holders: [{ uuid: held.uuid, owner: 'tester' }],
        firstWaiting: [{ uuid: wants.uuid }],
      },
    ])
    const { batches } = await read<{ batches: unknown[] }>('/boards/main/batches')
    expect(batches).toMatchObject([{ uuid: batch.uuid, name: 'import', open: 2, total: 2 }])
    expect(await read(`/boards/main/batches/${batch.uuid}`)).toEqual(batches[0])
    expect(await read('/boards/main/conductors')).toEqual({ conductors: [] })
    expect(await read<WireJobPage>('/boards/main/history')).toMatchObject({ jobs: [] })
    expect(await read('/boards/main/logbooks')).toMatchObject({ logbooks: [] })
    expect((await read<{ suggestions: unknown[] }>('/boards/main/suggest?q=impo')).suggestions).toContainEqual({
      text: 'flow:import',
      kind: 'flow',
    })
  })

  test('what a board cannot do is 501, and a doctor that is not there 404', async () => {
    await using bare = openClient({ board })
    expect((await bare.get('/boards/main/logbooks')).status).toBe(501)
    expect((await bare.get('/boards/main/doctor')).status).toBe(404)
  })
})

test('a board that is closed is 503', async () => {
  await board.close()
  const { status, body } = await client.get('/boards/main/jobs')
  expect(status, JSON.stringify(body)).toBe(503)
})

test('logbooks that never answer are 503 after some seconds', async () => {
  const never = () => new Promise<never>(() => undefined)
  const hanging = delegate(persistence, {
    getBook: never,
    listBooks: async function* () {
      yield await never()
    },
  })
  await using bare = openClient({ board, persistence: hanging })
  const { uuid } = await board.post('import', {})
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const answers: Record<string, number> = {}
  for (const path of ['/logbooks', `/logbooks/${uuid}`, `/jobs/${uuid}`])
    void bare.get(`/boards/main${path}`).then(({ status }) => {
      answers[path] = status
    })
  const later = async () => {
    await vi.advanceTimersByTimeAsync(5_000)
    return answers
  }
  await expect.poll(later).toEqual({ '/logbooks': 503, [`/logbooks/${uuid}`]: 503, [`/jobs/${uuid}`]: 503 })
})
