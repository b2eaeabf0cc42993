/** What people ask a board to do through the dashboard: it is done, it says who asked, and it is in the log. */
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type JobBoard, openBoard, schedule, type TrashedJob } from '../../src/board/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { startConductor } from '../../src/conductor/index.ts'
import { input, linear, task } from '../../src/flow/index.ts'
import { openPersistence } from '../../src/persistence/index.ts'
import type { Access } from '../../src/ui/index.ts'
import { NEEDS, type WireBulkResult, type WireDone } from '../../src/ui/wire/actions.ts'
import type { WireQueue } from '../../src/ui/wire/board.ts'
import { LEVELS, type WireSession } from '../../src/ui/wire/session.ts'
import { type Client, openClient } from './client.ts'

const nothing = task('nothing', { execute: async () => undefined })

let board: JobBoard
let client: Client
let access: Access
let lines: Record<string, unknown>[]

beforeEach(async () => {
  board = await openBoard('memory:', { who: 'server' })
  lines = []
  access = { who: 'ada', level: 'admin', values: true }
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  client = openClient({ board, log, authorize: () => access })
})

afterEach(async () => {
  await client[Symbol.asyncDispose]()
  await board.close()
})

const trash = async (): Promise<TrashedJob[]> => {
  const all: TrashedJob[] = []
  for await (const job of board.trashed()) all.push(job)
  return all
}

const ask = async <T = WireDone>(path: string, body: unknown = {}): Promise<T> => {
  const answer = await client.post(`/boards/main${path}`, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body as T
}

describe('one job', () => {
  test('is posted by the name of its flow, once for a key', async () => {
    const first = await ask('/jobs', { flow: 'import', store: { file: 'a' }, priority: 'HIGH', key: 'k' })
    const again = await ask('/jobs', { flow: 'import', store: { file: 'b' }, key: 'k' })
    expect(again.uuids).toEqual(first.uuids)
    const job = await board.find(first.uuids?.[0] ?? '')
    expect([job.details.flow, job.details.store, job.priority]).toEqual(['import', { file: 'a' }, 'HIGH'])
  })

  test('is cancelled, with the name of who asked', async () => {
    const { uuid } = await board.post('import', {})
    await ask(`/jobs/${uuid}/cancel`, { reason: 'wrong file' })
    expect((await trash()).map(({ reason }) => reason)).toEqual([expect.stringContaining('wrong file (ada)')])
    expect(lines).toContainEqual(
      expect.objectContaining({
        audit: 'cancel',
        who: 'ada',
        board: 'main',
        what: `job ${uuid}`,
        reason: 'wrong file',
      }),
    )
  })

  test('is restored, and purged', async () => {
    const { uuid } = await board.post('import', {})
    await ask(`/jobs/${uuid}/cancel`)
    expect((await ask(`/jobs/${uuid}/restore`)).uuids).toEqual([uuid])
    expect(await trash()).toEqual([])
    await ask(`/jobs/${uuid}/cancel`)
    await ask(`/jobs/${uuid}/purge`)
    expect(await trash()).toEqual([])
    expect((await client.post(`/boards/main/jobs/${uuid}/purge`, {})).status).toBe(404)
  })

  test('is released', async () => {
    const job = await board.post('import', {})
    const claim = await board.claim(job)
    await ask(`/jobs/${job.uuid}/release`, { reason: 'hangs' })
    expect(claim.lost.aborted).toBe(true)
    const again = await client.post(`/boards/main/jobs/${job.uuid}/release`, {})
    expect([again.status, again.body['code']]).toEqual([404, 'NOT_FOUND'])
  })
})

test('a long reason is cut, and the name of the person never is', async () => {
  const { uuid } = await board.post('import', {})
  await ask(`/jobs/${uuid}/cancel`, { reason: `ok (eve)${'\u3164'.repeat(900)}` })
  const [{ reason } = { reason: '' }] = await trash()
  expect(reason.endsWith('(ada)')).toBe(true)
})

test('a cancel of a job that is in the trash says so', async () => {
  const { uuid } = await board.post('import', {})
  await ask(`/jobs/${uuid}/cancel`)
  const { status, body } = await client.post(`/boards/main/jobs/${uuid}/cancel`, {})
  expect([status, body['message']]).toEqual([404, `job ${uuid} is in the trash already`])
})

test('a post of a flow that no conductor has says so', async () => {
  expect((await ask('/jobs', { flow: 'import' })).text).toBe('the job is posted, but no conductor is connected')
  await using persistence = await openPersistence('memory:')
  await using _conductor = await startConductor({
    board,
    persistence,
    flows: [linear('import', input<object>(), nothing)],
  })
  const { text } = await ask('/jobs', { flow: 'imprt' })
  expect(text).toBe('the job is posted, but no conductor has flow imprt: it waits for one')
  expect((await ask('/jobs', { flow: 'import' })).text).toBe('the job is posted')
})

test('a post without an input that its flow requires is refused, and says which', async () => {
  await using persistence = await openPersistence('memory:')
  const flows = [
    linear('load', input<{ file: string; size: number }>(), task('load', { requires: ['file'], execute: () => {} })),
    linear(
      'wide',
      input<Record<string, number>>(),
      task('wide', { requires: Array.from({ length: 30 }, (_, n) => `n${n}`), execute: () => {} }),
    ),
  ]
  await using _conductor = await startConductor({ board, persistence, flows })
  const { status, body } = await client.post('/boards/main/jobs', { flow: 'load', store: { size: 1 } })
  expect([status, body['message']]).toEqual([400, 'flow load requires file: add it to the store'])
  await ask('/jobs', { flow: 'load', store: { file: 'a' } })
  const wide = await client.post('/boards/main/jobs', { flow: 'wide', store: { n0: 1 } })
  expect(wide.body['message']).toMatch(/^flow wide requires n1, .* and 19 more: add it to the store$/)
})

describe('many jobs', () => {
  beforeEach(async () => {
    await board.postMany(Array.from({ length: 30 }, (_, index) => ({ flow: index % 3 === 0 ? 'a' : 'b', store: {} })))
  })

  test('are counted first, and no more than shown are cancelled', async () => {
    const query = 'flow:a'
    expect(await ask('/bulk', { action: 'cancel', query, dryRun: true })).toEqual({
      matched: 10,
      more: false,
      done: 0,
      failed: [],
      failures: 0,
      left: 10,
    })
    await board.post('a', {})
    const { status, body } = await client.post('/boards/main/bulk', { action: 'cancel', query, expected: 10 })
    expect([status, body['code']]).toEqual([409, 'CHANGED'])
    expect(await ask<WireBulkResult>('/bulk', { action: 'cancel', query, expected: 11, reason: 'old' })).toMatchObject({
      matched: 11,
      done: 11,
    })
    expect((await trash()).map(({ details }) => details.flow)).toEqual(Array(11).fill('a'))
  })

  test('are restored and purged from the trash', async () => {
    await ask('/bulk', { action: 'cancel', query: '' })
    expect(await ask<WireBulkResult>('/bulk', { action: 'restore', query: 'flow:a' })).toMatchObject({
      matched: 10,
      done: 10,
    })
    expect(await ask<WireBulkResult>('/bulk', { action: 'purge', query: 'state:trashed flow:b' })).toMatchObject({
      matched: 20,
      done: 20,
    })
    expect([await board.countJobs(), (await trash()).length]).toEqual([10, 0])
  })

  test('are found while other work of the process goes on', async () => {
    await board.postMany(Array.from({ length: 500 }, () => ({ flow: 'long', store: {} })))
    let turns = 0
    const timer = setInterval(() => {
      turns += 1
    }, 1)
    const accept = () => {
      for (const end = performance.now() + 1; performance.now() < end; );
      return false
    }
    const { looked } = await boardInternals(board).jobPage({ limit: 1, most: 1_000, timeMs: 60_000, accept })
    clearInterval(timer)
    expect(looked).toBeGreaterThanOrEqual(500)
    expect(turns).toBeGreaterThan(2)
  })

  test('are changed up to a limit, where one request cannot find them all', async () => {
    const result = await ask<WireBulkResult>('/bulk', { action: 'cancel', query: 'flow:a', limit: 4 })
    expect(result).toMatchObject({ matched: 10, more: true, done: 4, left: 0 })
    expect(await trash()).toHaveLength(4)
  })

  test('are counted without a line in the log that says they were changed', async () => {
    await ask('/bulk', { action: 'cancel', query: 'flow:a', dryRun: true })
    expect(lines.filter(({ audit }) => audit !== undefined)).toEqual([])
  })

  test('are no longer changed after a defect, and the answer comes when none is under way', async () => {
    let running = 0
    let cancelled = 0
    vi.spyOn(board, 'cancel').mockImplementation(async () => {
      cancelled += 1
      if (cancelled === 5) throw new TypeError('a defect')
      running += 1
      await new Promise(setImmediate)
      running -= 1
    })
    const { status } = await client.post('/boards/main/bulk', { action: 'cancel', query: '' })
    expect([status, running]).toEqual([500, 0])
    expect(cancelled).toBeLessThan(30)
  })

  test('with a text that is the uuid of no job: the others are changed', async () => {
    const { uuid } = await board.post('import', {})
    const { done, failed } = await ask<WireBulkResult>('/bulk', { action: 'cancel', uuids: [uuid, ''] })
    expect([done, failed.map((one) => one.uuid)]).toEqual([1, ['']])
  })

  test('are named, and those that are not there are told', async () => {
    const uuids: string[] = []
    for await (const { uuid } of board.jobs()) uuids.push(uuid)
    const named = [...uuids.slice(0, 2), '00000000-0000-7000-8000-000000000000']
    const result = await ask<WireBulkResult>('/bulk', { action: 'cancel', uuids: named })
    expect(result).toMatchObject({ matched: 3, done: 2, failed: [{ uuid: named[2], code: 'NOT_FOUND' }] })
    expect((await client.post('/boards/main/bulk', { action: 'cancel' })).status).toBe(400)
    expect((await client.post('/boards/main/bulk', { action: 'cancel', uuids, query: '' })).status).toBe(400)
  })
})

test('the board is paused and resumed', async () => {
  await ask('/pause', { reason: 'deploy' })
  expect(board.paused).toBe(true)
  await ask('/resume')
  expect(board.paused).toBe(false)
})

test('a queue is paused and resumed, and is shown with its jobs and who serves it', async () => {
  await board.post('flow', {}, { name: 'late', queue: 'bulk' })
  const metadata = { flows: ['flow'], queues: ['bulk'] }
  await using _conductor = await board.registerEntity({ kind: 'conductor', name: 'one', metadata })
  await ask('/queues', { action: 'pause', queue: 'bulk', reason: 'deploy' })
  expect(board.paused).toBe(false)
  const { queues } = (await client.get<{ queues: WireQueue[] }>('/boards/main/queues')).body
  expect(queues).toMatchObject([
    { queue: 'bulk', waiting: 1, running: 0, conductors: ['one'], oldestWaiting: { name: 'late' } },
  ])
  expect(queues[0]?.paused).toMatchObject({ by: 'ada', reason: 'deploy' })
  await ask('/queues', { action: 'resume', queue: 'bulk' })
  expect(await board.pausedQueues()).toEqual([])
  await board.limits.stop('queue/b*', { by: 'ann' })
  const again = (await client.get<{ queues: WireQueue[] }>('/boards/main/queues')).body.queues
  expect(again.map(({ queue, paused }) => [queue, paused?.by, paused?.pattern])).toEqual([['bulk', 'ann', 'b*']])
  expect((await client.post('/boards/main/queues', { action: 'pause', queue: 'a*' })).status).toBe(400)
})

test('schedules are triggered, paused, resumed and removed', async () => {
  await board.schedules.put(schedule('nightly', { cron: '0 2 * * *' }, 'report', {}))
  const { uuids = [] } = await ask('/schedules', { id: 'nightly', action: 'trigger' })
  expect((await board.find(uuids[0] ?? '')).details.flow).toBe('report')
  await ask('/schedules', { id: 'nightly', action: 'pause', reason: 'audit' })
  expect((await board.schedules.show('nightly')).paused).toMatchObject({ reason: 'audit (ada)' })
  await ask('/schedules', { id: 'nightly', action: 'resume' })
  expect((await board.schedules.show('nightly')).paused).toBeUndefined()
  await ask('/schedules', { id: 'nightly', action: 'remove' })
  expect((await client.post('/boards/main/schedules', { id: 'nightly', action: 'trigger' })).status).toBe(404)
})

test('limits are set, held, stopped, resumed and removed', async () => {
  const key = 'api/x'
  await ask('/limits', { action: 'set', key, concurrency: 2, rate: { limit: 5, perMs: 1_000, burst: 5 } })
  expect(await board.limits.show(key)).toMatchObject({ concurrency: 2, rate: { limit: 5, perMs: 1_000 } })
  await ask('/limits', { action: 'pushBack', key, forMs: 60_000, reason: '429' })
  expect((await board.limits.show(key)).held).toMatchObject({ reason: '429 (ada)' })
  await ask('/limits', { action: 'stop', key })
  expect((await board.limits.show(key)).held?.until).toBeUndefined()
  await ask('/limits', { action: 'resume', key })
  expect((await board.limits.show(key)).held).toBeUndefined()
  await ask('/limits', { action: 'remove', key })
  expect(await board.limits.list()).toEqual([])
  expect((await client.post('/boards/main/limits', { action: 'set', key })).status).toBe(400)
})

test('a batch is cancelled, and its failed jobs are run again', async () => {
  const batch = await board.batch({ name: 'import' })
  const job = await batch.post('import', {})
  await (await board.claim(job)).trash({ reason: 'x' })
  expect((await ask(`/batches/${batch.uuid}`, { action: 'retry' })).uuids).toEqual([job.uuid])
  await ask(`/batches/${batch.uuid}`, { action: 'cancel', reason: 'enough' })
  expect((await batch.progress()).state).toBe('cancelled')
})

describe('rights', () => {
  const ATTEMPTS: readonly (readonly [action: string, path: string, body: object])[] = [
    ['post', '/jobs', { flow: 'x' }],
    ...(['cancel', 'restore', 'purge', 'release'] as const).map(
      (action) => [action, `/jobs/0199/${action}`, {}] as const,
    ),
    ...(['cancel', 'restore', 'purge'] as const).map((action) => [action, '/bulk', { action, query: '' }] as const),
    ['board.pause', '/pause', {}],
    ['board.resume', '/resume', {}],
    ['queue.pause', '/queues', { action: 'pause', queue: 'x' }],
    ['queue.resume', '/queues', { action: 'resume', queue: 'x' }],
    ...(['pause', 'resume', 'trigger', 'remove'] as const).map(
      (action) => [`schedule.${action}`, '/schedules', { id: 'x', action }] as const,
    ),
    ['limit.set', '/limits', { action: 'set', key: 'x', concurrency: 1 }],
    ['limit.remove', '/limits', { action: 'remove', key: 'x' }],
    ['limit.stop', '/limits', { action: 'stop', key: 'x' }],
    ['limit.pushBack', '/limits', { action: 'pushBack', key: 'x', forMs: 1 }],
    ['limit.resume', '/limits', { action: 'resume', key: 'x' }],
    ['flow.set', '/flows/settings', { action: 'set', flow: 'x', settings: ['maxAttempts=1'] }],
    ['flow.unset', '/flows/settings', { action: 'unset', flow: 'x' }],
    ...(['cancel', 'retry'] as const).map((action) => [`batch.${action}`, '/batches/0199', { action }] as const),
  ]

  test('every action has one', () => {
    expect(new Set(ATTEMPTS.map(([action]) => action))).toEqual(new Set(Object.keys(NEEDS)))
  })

  test.each(LEVELS)('of level %s', async (level) => {
    access = { who: 'eve', level, values: false }
    for (const [action, path, body] of ATTEMPTS) {
      const { status } = await client.post(`/boards/main${path}`, body)
      const isPermitted = LEVELS.indexOf(level) >= LEVELS.indexOf(NEEDS[action] ?? 'admin')
      expect(status === 403, `${action}: ${status}`).toBe(!isPermitted)
    }
  })

  test('may differ by board; a board without a level is not shown', async () => {
    access = { who: 'eve', level: 'read', values: false, boards: { urgent: 'operate', bulk: 'read' } }
    await using own = openClient({ boards: { urgent: board, bulk: board, other: board }, authorize: () => access })
    const { body } = await own.get<WireSession>('/session')
    expect(body.boards.map(({ name, level }) => [name, level])).toEqual([
      ['urgent', 'operate'],
      ['bulk', 'read'],
    ])
    const statuses = async (name: string) => [
      (await own.get(`/boards/${name}/jobs`)).status,
      (await own.post(`/boards/${name}/jobs`, { flow: 'x' })).status,
      (await own.post(`/boards/${name}/pause`, {})).status,
    ]
    expect(await statuses('urgent')).toEqual([200, 200, 403])
    expect(await statuses('bulk')).toEqual([200, 403, 403])
    expect(await statuses('other')).toEqual([403, 403, 403])
    expect(await statuses('constructor')).toEqual([403, 403, 403])
  })

  test('of one board show no logbook of another that shares the logbooks', async () => {
    const [name, persistence] = [crypto.randomUUID(), await openPersistence('memory:')]
    await using urgent = await openBoard(`memory:urgent-${name}`)
    await using bulk = await openBoard(`memory:bulk-${name}`)
    access = { who: 'bob', level: 'read', values: true, boards: { bulk: 'read' } }
    await using own = openClient({ boards: { urgent, bulk }, persistence, authorize: () => access })
    /** Writes the logbook of a job with the mark of a board, as a conductor does, or without one. */
    const write = async (posted: JobBoard, board?: string): Promise<string> => {
      const { uuid, book } = await posted.post('import', {})
      const flow = { uuid, name: 'import', version: '1.0' }
      const log = await persistence.acquire({
        book: { ...book, ...(board && { meta: { board } }) },
        ...{ flow, run: 1, claim: 'c' },
      })
      await log.close()
      return uuid
    }
    const hidden = [
      await write(urgent, urgent.uri),
      await write(urgent),
      await write(urgent, 'memory:unknown'),
      await write(bulk, urgent.uri),
    ]
    const shown = [await write(bulk, bulk.uri), await write(bulk), await write(bulk, 'memory:unknown')]
    const booksSeen = async () => {
      const { body } = await own.get<{ logbooks: { uuid: string }[] }>('/boards/bulk/logbooks')
      return body.logbooks.map(({ uuid }) => uuid).toSorted()
    }
    expect(await booksSeen()).toEqual(shown.toSorted())
    const statusesOf = (uuid: string, paths: readonly string[]) =>
      Promise.all(paths.map(async (path) => (await own.get(`/boards/bulk${path.replace('UUID', uuid)}`)).status))
    for (const uuid of shown) expect(await statusesOf(uuid, ['/logbooks/UUID', '/jobs/UUID'])).toEqual([200, 200])
    const PATHS = ['/logbooks/UUID', '/jobs/UUID', '/jobs/UUID/values', '/jobs/UUID/picture']
    for (const uuid of hidden.slice(0, 3)) {
      expect(await statusesOf(uuid, PATHS)).toEqual([404, 404, 404, 404])
      expect((await own.get(`/boards/bulk/jobs?q=${uuid}`)).body).toMatchObject({ jobs: [] })
    }
    expect((await own.get(`/boards/bulk/jobs/${hidden[3]}`)).body).toMatchObject({ logbook: null })
    access = { ...access, boards: { urgent: 'read', bulk: 'read' } }
    expect(await booksSeen()).toEqual([...hidden, ...shown].toSorted())
  })

  test('nobody changes anything through a read-only dashboard', async () => {
    await using readOnly = openClient({ board, readOnly: true })
    await board.post('import', {})
    for (const [action, path, body] of ATTEMPTS)
      expect((await readOnly.post(`/boards/main${path}`, body)).status, action).toBe(403)
    expect((await readOnly.get<{ readOnly: boolean }>('/session')).body.readOnly).toBe(true)
    expect(await board.countJobs()).toBe(1)
  })

  test('a refused change is in the log', async () => {
    access = { who: 'eve', level: 'read', values: false }
    await client.post('/boards/main/pause', {})
    expect(lines).toContainEqual(expect.objectContaining({ level: 40, audit: 'board.pause', who: 'eve' }))
  })
})
