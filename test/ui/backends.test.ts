/** The same requests to dashboards of boards in memory, ZooKeeper, Redis and Postgres. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type JobBoard, openBoard, schedule } from '../../src/board/index.ts'
import { startConductor } from '../../src/conductor/index.ts'
import { input, linear, task } from '../../src/flow/index.ts'
import { openPersistence, type Persistence } from '../../src/persistence/index.ts'
import type { WireBulkResult } from '../../src/ui/wire/actions.ts'
import type { WireOverview, WireTrashGroup } from '../../src/ui/wire/board.ts'
import type { WireJobDetail, WireJobPage } from '../../src/ui/wire/jobs.ts'
import type { WireSession } from '../../src/ui/wire/session.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { createDatabase } from '../support/postgres-database.ts'
import { startRedis } from '../support/redis.ts'
import { type Client, openClient } from './client.ts'

/** Starts what a board needs. Its window is small, so that most jobs are outside of it. */
const BACKENDS: Readonly<Record<string, () => Promise<{ uri: string; stop(): Promise<unknown> }>>> = {
  memory: async () => ({ uri: 'memory:', stop: async () => undefined }),
  zookeeper: async () => ({ uri: `zookeeper://${zookeeperHosts}${namespace('ui')}`, stop: async () => undefined }),
  redis: async () => {
    const server = await startRedis({ config: { appendonly: 'yes' } })
    return { uri: `${server.uri}/0?prefix=ui&window=20`, stop: () => server.stop() }
  },
  postgres: async () => {
    const server = await createDatabase()
    return { uri: `${server.uri}?window=20`, stop: () => server.stop() }
  },
}

const JOBS = 130

describe.each(Object.keys(BACKENDS))('a board in %s', (kind) => {
  let server: { uri: string; stop(): Promise<unknown> }
  let board: JobBoard
  let poster: JobBoard
  let persistence: Persistence
  let client: Client

  beforeAll(async () => {
    server = await (BACKENDS[kind] as () => Promise<typeof server>)()
    const options = { who: 'tester' }
    board = await openBoard(server.uri, options)
    // Another process, whose changes the dashboard has to receive.
    poster = kind === 'memory' ? board : await openBoard(server.uri, { who: 'poster' })
    persistence = await openPersistence('memory:')
    client = openClient({ board, persistence })
    await poster.postMany(
      Array.from({ length: JOBS }, (_, index) => ({
        ...{ flow: index % 10 === 0 ? 'rare' : 'often', store: { index }, name: `job-${index}` },
        ...(index % 2 === 0 ? { priority: 'LOW' as const } : {}),
      })),
    )
  })

  afterAll(async () => {
    await client?.[Symbol.asyncDispose]()
    await persistence?.close()
    if (poster !== board) await poster?.close()
    await board?.close()
    await server?.stop()
  })

  const read = async <T>(path: string): Promise<T> => {
    const { status, body } = await client.get(`/boards/main${path}`)
    expect(status, JSON.stringify(body)).toBe(200)
    return body as T
  }

  /** Reads all pages of a list. */
  const readAll = async (path: string): Promise<WireJobPage['jobs']> => {
    const jobs: WireJobPage['jobs'] = []
    let after: string | undefined
    do {
      const page: WireJobPage = await read(`${path}${after === undefined ? '' : `&after=${encodeURIComponent(after)}`}`)
      jobs.push(...page.jobs)
      after = page.scan.next
    } while (after !== undefined)
    return jobs
  }

  test('pages show each job once, in claim order', async () => {
    const jobs = await readAll('/jobs?limit=40')
    const numbers = [...Array(JOBS).keys()]
    const expected = [...numbers.filter((index) => index % 2 === 1), ...numbers.filter((index) => index % 2 === 0)]
    expect(jobs.map(({ name }) => name)).toEqual(expected.map((index) => `job-${index}`))
  })

  test('filters look beyond the window, and at stores', async () => {
    expect(await readAll('/jobs?q=flow:rare&limit=5')).toHaveLength(JOBS / 10)
    expect((await readAll('/jobs?q=store.index%3D121&limit=5')).map(({ name }) => name)).toEqual(['job-121'])
    const { uuid } = (await readAll('/jobs?q=name:job-99&limit=5'))[0] as WireJobPage['jobs'][number]
    expect((await readAll(`/jobs?q=${uuid.slice(-10)}&limit=5`)).map((job) => job.uuid)).toContain(uuid)
  })

  test('the overview counts what is there', async () => {
    const overview = await read<WireOverview>('/overview')
    expect(overview.jobs.waiting).toEqual({ value: JOBS, atLeast: false })
    expect(overview.byFlow).toContainEqual({ flow: 'often', waiting: 117, delayed: 0, running: 0, trashed: 0 })
    expect(overview.oldestWaiting).toBeDefined()
    expect(overview.connected).toBe(true)
  })

  test('a job that another process runs shows its owner, and the job that waits for it', async () => {
    const resources = { exclusive: [`disk-${kind}`] }
    const running = await poster.post('import', {}, { resources, priority: 'VERY_HIGH' })
    const waiting = await poster.post('import', {}, { resources, priority: 'VERY_HIGH' })
    const claim = await poster.claim(running)
    await expect
      .poll(async () => (await read<WireJobDetail>(`/jobs/${running.uuid}`)).state, { timeout: 20_000 })
      .toBe('RUNNING')
    const { jobs } = await read<WireJobPage>('/jobs?limit=10')
    expect(jobs.find(({ uuid }) => uuid === running.uuid)).toMatchObject({
      state: 'RUNNING',
      owner: poster.who,
      runs: 1,
    })
    const detail = await read<WireJobDetail>(`/jobs/${waiting.uuid}`)
    expect(detail).toMatchObject({ state: 'WAITING', waitingFor: { kind: 'resource', key: `disk-${kind}` } })
    expect(
      (await readAll(`/jobs?q=${encodeURIComponent(`owner:${poster.who}`)}&limit=5`)).map(({ uuid }) => uuid),
    ).toEqual([running.uuid])
    const { resources: rows } = await read<{ resources: { resource: string; holders: { uuid: string }[] }[] }>(
      '/resources',
    )
    expect(rows.find(({ resource }) => resource === `disk-${kind}`)?.holders).toMatchObject([
      { uuid: running.uuid, owner: poster.who },
    ])
    await claim.trash({ reason: 'broken 1' })
    const other = await poster.claim(await poster.find(waiting.uuid))
    await other.trash({ reason: 'broken 2' })
    const trash = await readAll('/trash?limit=1')
    expect(trash.map(({ reason }) => reason)).toEqual(['broken 2', 'broken 1'])
    await expect
      .poll(async () => (await read<{ groups: WireTrashGroup[] }>('/trash/groups')).groups, { timeout: 20_000 })
      .toMatchObject([{ reason: 'broken …', jobs: 2 }])
  })

  test('actions: restore, cancel what a search finds, purge', async () => {
    const post = async (path: string, body: unknown) => {
      const answer = await client.post<WireBulkResult>(`/boards/main${path}`, body)
      expect(answer.status, JSON.stringify(answer.body)).toBe(200)
      return answer.body
    }
    expect(await post('/bulk', { action: 'restore', query: 'reason:broken*' })).toMatchObject({ matched: 2, done: 2 })
    expect(await post('/bulk', { action: 'cancel', query: 'flow:rare', expected: 13 })).toMatchObject({
      matched: 13,
      done: 13,
    })
    expect(await post('/bulk', { action: 'purge', query: 'flow:rare' })).toMatchObject({ matched: 13, done: 13 })
    const { uuids = [] } = (await post('/jobs', { flow: 'report', store: { a: 1 } })) as unknown as { uuids: string[] }
    expect((await read<WireJobDetail>(`/jobs/${uuids[0]}`)).flow).toBe('report')
    await post(`/jobs/${uuids[0]}/cancel`, { reason: 'no' })
    expect((await read<WireJobDetail>(`/jobs/${uuids[0]}`)).state).toBe('TRASHED')
  })

  test('a job is done, and its logbook, its outline and its conductor are there', async () => {
    const add = task('add', {
      requires: ['one'],
      provides: 'sum',
      execute: async ({ one }: { one: number }) => one + 1,
    })
    const flow = linear('sum', input<{ one: number }>(), add)
    await using conductor = await startConductor({ board, persistence, flows: [flow] })
    const job = await poster.post('sum', { one: 1 }, { priority: 'VERY_HIGH' })
    await job.wait({ timeout: '30s' })
    // The poster's board may receive the end before the dashboard's board does.
    await expect
      .poll(() => read<WireJobDetail>(`/jobs/${job.uuid}`), { timeout: 20_000 })
      .toMatchObject({ state: 'DONE', logbook: { state: 'SUCCESS' } })
    expect((await readAll('/jobs?q=state:done&limit=5')).map(({ uuid }) => uuid)).toContain(job.uuid)
    expect(await read('/flows')).toMatchObject({ flows: [{ name: 'sum', atoms: 1, done: 1 }] })
    expect(await read('/conductors')).toMatchObject({ conductors: [{ flows: ['sum'] }] })
    await conductor.stop()
  })

  test('limits, schedules and batches', async () => {
    await board.limits.set('api', { concurrency: 2 })
    await board.schedules.put(schedule('nightly', { cron: '0 2 * * *' }, 'report', {}))
    const batch = await board.batch({ name: 'b' })
    expect(await read('/limits')).toMatchObject({ limits: [{ key: 'api', concurrency: 2 }] })
    expect(await read('/schedules')).toMatchObject({ schedules: [{ id: 'nightly', state: 'active' }] })
    expect(await read('/batches')).toMatchObject({ batches: [{ uuid: batch.uuid }] })
    expect(await read('/history')).toBeDefined()
  })

  test('a board that is closed is away', async () => {
    if (poster === board) return
    const away = await openBoard(server.uri)
    await using lonely = openClient({ board: away })
    expect((await lonely.get('/boards/main/overview')).status).toBe(200)
    await away.close()
    expect((await lonely.get('/boards/main/overview')).status).toBe(503)
  })
})

test.skipIf(!zookeeperHosts)('a board that is shared with TaskFlow says what it lacks', async () => {
  const uri = `zookeeper://${zookeeperHosts}${namespace('ui')}?encoding=json`
  await using board = await openBoard(uri, { who: 'tester' })
  await using client = openClient({ board })
  const job = await board.post('import', {})
  await (await board.claim(await board.post('import', {}))).consume()
  const { body: session } = await client.get<WireSession>('/session')
  expect(session.boards[0]?.supports).toEqual({
    ...{ limits: false, flowSettings: false, batches: false, history: false, logbooks: false },
  })
  const { body: page } = await client.get<WireJobPage>('/boards/main/jobs')
  expect(page.jobs).toMatchObject([{ uuid: job.uuid }])
  for (const path of [`jobs/${job.uuid}`, `jobs?q=${job.uuid}`, 'overview', 'flows', 'conductors'])
    expect(await client.get(`/boards/main/${path}`), path).toMatchObject({ status: 200 })
  for (const path of ['jobs?q=state:done', 'history', 'batches', 'limits', 'flows/settings'])
    expect(await client.get(`/boards/main/${path}`), path).toMatchObject({ body: { code: 'UNSUPPORTED_CAPABILITY' } })
})
