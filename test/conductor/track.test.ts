import { randomBytes, randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import { openBoard } from '../../src/board/index.ts'
import { runFlow, startConductor, track } from '../../src/conductor/index.ts'
import { removeFinished } from '../../src/conductor/retention.ts'
import { createDeferred } from '../../src/core/async/abort.ts'
import { NonRetryable, NotFound, StorageFailure } from '../../src/core/errors.ts'
import { silentLog } from '../../src/core/log.ts'
import { input, linear, task } from '../../src/flow/index.ts'
import { encrypted, openPersistence } from '../../src/persistence/index.ts'
import { requestOf } from '../persistence/flows.ts'
import { delegate } from './conducting.ts'

const add = task('add', { requires: ['n'], provides: 'sum', execute: async ({ n }: { n: number }) => n + 1 })

test('a job is followed from the queue to its results', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  const places = { board, persistence }
  const reached = createDeferred()
  const free = createDeferred()
  const hold = task('hold', {
    execute: async () => {
      reached.resolve()
      await free.promise
    },
  })
  const flow = linear('sum', input<{ n: number }>(), add, hold)
  const job = await board.post(flow, { n: 1 }, { delay: '1h' })
  expect(await track(job.uuid, places)).toMatchObject({ status: 'waiting', runs: 0, waitingFor: { kind: 'delay' } })
  const ready = await board.post(flow, { n: 1 })
  await board.pause()
  expect(await track(ready.uuid, places)).toMatchObject({ status: 'waiting', waitingFor: { kind: 'pause' } })
  await board.resume()
  await using conductor = await startConductor({ ...places, flows: [flow], name: 'worker' })
  await reached.promise
  expect(await track(ready.uuid, places)).toEqual({
    uuid: ready.uuid,
    status: 'running',
    owner: board.who,
    run: 1,
    since: expect.any(Date),
    tasks: { add: 'SUCCESS', hold: 'RUNNING' },
  })
  free.resolve()
  await ready.wait()
  expect(await track(ready.uuid, places)).toEqual({
    uuid: ready.uuid,
    status: 'done',
    at: expect.any(Date),
    results: { add: 2 },
    tasks: { add: 'SUCCESS', hold: 'SUCCESS' },
  })
  expect(conductor.name).toBe('worker')
})

test('a job is followed from a process that does not run it', async () => {
  const uri = `memory:${randomUUID()}`
  await using board = await openBoard(uri, { who: 'service' })
  await using elsewhere = await openBoard(uri, { who: 'worker' })
  await using persistence = await openPersistence('memory:')
  const [reached, free] = [createDeferred(), createDeferred()]
  const hold = task('hold', {
    execute: async (_args, { run }) => {
      if (run === 1) throw new Error('boom 1')
      reached.resolve()
      await free.promise
      throw new NonRetryable('boom 2')
    },
  })
  const flow = linear('hold', input<object>(), hold)
  const job = await board.post(flow, {}, { backOff: { first: 0 } })
  await using _conductor = await startConductor({ board: elsewhere, persistence, flows: [flow] })
  await reached.promise
  expect(await track(job.uuid, { board, persistence })).toMatchObject({
    status: 'running',
    owner: 'worker',
    run: 2,
    since: expect.any(Date),
  })
  free.resolve()
  expect(await job.wait()).toBe('TRASHED')
  expect(job.attempts.map(({ reason }) => reason)).toEqual([
    expect.stringContaining('boom 1'),
    expect.stringContaining('boom 2'),
  ])
})

test('how far a task is shows in events and to everybody who tracks the job, without a write for each call', async () => {
  const uri = `memory:${randomUUID()}`
  await using board = await openBoard(uri, { who: 'service' })
  await using elsewhere = await openBoard(uri, { who: 'worker' })
  await using persistence = await openPersistence('memory:')
  const [told, free] = [createDeferred(), createDeferred()]
  const copy = task('copy', {
    execute: async (_args, { progress }) => {
      for (let done = 0; done <= 500; done += 1) progress(done / 1_000)
      told.resolve()
      await free.promise
    },
  })
  const flow = linear('copy', input<object>(), copy)
  await using conductor = await startConductor({ board: elsewhere, persistence, flows: [flow] })
  const events: unknown[] = []
  conductor.on('progress', (event) => events.push(event))
  const job = await board.post(flow, {})
  await told.promise
  // The first is on record at once, the newest a second later.
  await vi.waitFor(
    async () => {
      expect(await track(job.uuid, { board, persistence })).toMatchObject({
        status: 'running',
        progress: { copy: 0.5 },
      })
    },
    { timeout: 10_000 },
  )
  expect(events).toHaveLength(501)
  expect(events.at(-1)).toMatchObject({ job: { uuid: job.uuid }, run: 1, task: 'copy', progress: 0.5 })
  free.resolve()
  await job.wait()
  expect(await track(job.uuid, { board, persistence })).not.toHaveProperty('progress')
})

test('a job that waits again says how its last run has ended, and why', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  const job = await board.post('api', {})
  const claim = await board.claim(job)
  await claim.abandon({ delay: '30s', reason: 'it answers 429' })
  expect(await track(job.uuid, { board, persistence })).toMatchObject({
    ...{ status: 'waiting', runs: 1, waitingFor: { kind: 'delay' } },
    lastRun: { who: claim.who, ended: 'returned', reason: 'it answers 429' },
  })
})

test('a job that failed says why, in the trash and without', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  const places = { board, persistence }
  const fail = task('fail', {
    execute: async () => {
      throw new Error('no paper')
    },
  })
  const flow = linear('print', input<object>(), fail)
  const conductor = await startConductor({ ...places, flows: [flow] })
  const job = await board.post(flow, {}, { maxAttempts: 1 })
  await job.wait()
  expect(await track(job.uuid, places)).toMatchObject({
    status: 'trashed',
    by: board.who,
    failures: [{ message: 'no paper' }],
    tasks: { fail: 'REVERTED' },
  })
  await conductor.stop()
  await using _ = await startConductor({ ...places, flows: [flow], onFailure: 'consume' })
  const consumed = await board.post(flow, {}, { book: { uuid: randomUUID(), name: 'elsewhere' } })
  await consumed.wait()
  const { book } = consumed
  expect(await track(consumed.uuid, { ...places, book: book.uuid })).toMatchObject({
    status: 'failed',
    failures: [{ message: 'no paper' }],
  })
  const nobodys = randomUUID()
  expect(await track(nobodys, places)).toEqual({ status: 'unknown', uuid: nobodys })
})

test('logbooks that are over and old are removed, unless their job is still on the board', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  const flow = linear('sum', input<{ n: number }>(), add)
  await using _ = await startConductor({ board, persistence, flows: [flow] })
  const job = await board.post(flow, { n: 1 })
  await job.wait()
  // Its owner has recorded the success and died: the job is still there.
  const waiting = await board.post('elsewhere', {})
  const log = await persistence.acquire({
    book: waiting.book,
    flow: { uuid: waiting.uuid, name: 'elsewhere', version: '1.0' },
    run: 1,
    claim: 'claim',
  })
  await log.write({ state: 'SUCCESS' })
  await persistence.createBook({ uuid: 'empty', name: 'no flows' })
  const retention = { board, persistence, log: silentLog }
  expect(await removeFinished({ ...retention, age: 60_000 })).toBe(0)
  expect(await removeFinished({ ...retention, age: -1_000 })).toBe(1)
  const left: string[] = []
  for await (const { uuid } of persistence.listBooks()) left.push(uuid)
  expect(left.toSorted()).toEqual([waiting.uuid, 'empty'].toSorted())
  expect(await track(job.uuid, { board, persistence })).toMatchObject({ status: 'unknown' })
})

test('where boards share logbooks, those of a job that rests on another board stay', async () => {
  await using storage = await openPersistence('memory:')
  const names = [randomUUID(), randomUUID()] as const
  await using first = await openBoard(`memory:${names[0]}`)
  await using second = await openBoard(`memory:${names[1]}`)
  const fail = task('fail', {
    execute: async () => {
      throw new Error('no paper')
    },
  })
  const flow = linear('print', input<object>(), fail)
  const resting = createDeferred<void>()
  await using conductor = await startConductor({ board: first, persistence: storage, flows: [flow] })
  conductor.on('settled', () => resting.resolve())
  const job = await first.post(flow, {}, { backOff: { first: '1h' } })
  await resting.promise
  const log = await storage.acquire(requestOf('unmarked', 1))
  await log.write({ state: 'SUCCESS' })
  // Both are over, and old: the first only for who asks the board that its job is on.
  const { meta, flows } = await storage.getBook(job.book.uuid)
  expect([meta, flows.map(({ state }) => state)]).toEqual([{ board: `memory:${names[0]}` }, ['REVERTED']])
  const retention = { persistence: storage, log: silentLog, age: -1_000 }
  expect(await removeFinished({ ...retention, board: second })).toBe(1)
  await expect(storage.getBook('unmarked')).rejects.toThrow(NotFound)
  expect(await removeFinished({ ...retention, board: first })).toBe(0)
  expect((await storage.getBook(job.book.uuid)).flows).toHaveLength(1)
  await first.cancel(job)
  await job.wait()
  expect(await removeFinished({ ...retention, board: second })).toBe(0)
  expect(await removeFinished({ ...retention, board: first })).toBe(1)
})

test('a logbook that a flow in the foreground makes for a job is marked with its board; one without a board is not', async () => {
  await using persistence = await openPersistence('memory:')
  const name = randomUUID()
  await using board = await openBoard(`memory:${name}`)
  const flow = linear('sum', input<{ n: number }>(), add)
  await runFlow(flow, { n: 1 }, { persistence })
  await runFlow(flow, { n: 1 }, { persistence, board })
  const metas: unknown[] = []
  for await (const { meta } of persistence.listBooks()) metas.push(meta)
  expect(metas).toHaveLength(2)
  expect(metas).toEqual(expect.arrayContaining([{}, { board: `memory:${name}` }]))
})

test('a logbook that is sealed with a key that is not here stays, and keeps no other from being removed', async () => {
  await using board = await openBoard('memory:')
  const uri = `memory:${randomUUID()}`
  await using owner = await openPersistence(uri, { codec: encrypted({ key: randomBytes(32) }) })
  await using other = await openPersistence(uri)
  for (const [uuid, persistence] of [
    ['a-sealed', owner],
    ['b-open', other],
  ] as const) {
    const log = await persistence.acquire({
      book: { uuid, name: uuid },
      flow: { uuid, name: 'flow', version: '1.0' },
      run: 1,
      claim: 'claim',
    })
    const atom = { kind: 'task', version: '1', state: 'SUCCESS', intention: 'EXECUTE', meta: {} } as const
    await log.write({ state: 'SUCCESS', atoms: [{ ...atom, name: 'one', result: 1, updatedAt: new Date() }] })
  }
  expect(await removeFinished({ board, persistence: other, log: silentLog, age: -1_000 })).toBe(1)
  expect(await removeFinished({ board, persistence: owner, log: silentLog, age: -1_000 })).toBe(1)
})

test('a logbook that is damaged stays, is reported once, and keeps no other from being removed', async () => {
  await using board = await openBoard('memory:')
  await using inner = await openPersistence('memory:')
  for (const uuid of ['a-damaged', 'b-whole', 'c-damaged']) {
    const log = await inner.acquire(requestOf(uuid, 1))
    await log.write({ state: 'SUCCESS' })
  }
  let away = true
  const persistence = delegate(inner, {
    getBook: async (uuid) => {
      if (uuid === 'a-damaged') throw new TypeError('flow.atoms is not iterable')
      if (uuid === 'c-damaged') throw new StorageFailure('damaged', { retryable: false })
      if (away) throw new StorageFailure('the server is away', { retryable: true })
      return inner.getBook(uuid)
    },
  })
  const lines: string[] = []
  const log = pino({ base: null }, { write: (line: string) => lines.push(line) })
  const look = { reported: new Set<string>() }
  const retention = { board, persistence, log, age: -1_000 }
  await expect(removeFinished(retention, look)).rejects.toThrow('the server is away')
  away = false
  expect(await removeFinished(retention, look)).toBe(1)
  expect(await removeFinished(retention, look)).toBe(0)
  expect(lines.map((line) => JSON.parse(line).book)).toEqual(['a-damaged', 'c-damaged'])
  const left: string[] = []
  for await (const { uuid } of inner.listBooks()) left.push(uuid)
  expect(left.toSorted()).toEqual(['a-damaged', 'c-damaged'])
})

test('a conductor removes them when it is configured to', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  const flow = linear('sum', input<{ n: number }>(), add)
  const log = await persistence.acquire({
    book: { uuid: 'old', name: 'old' },
    flow: { uuid: 'old', name: 'sum', version: '1.0' },
    run: 1,
    claim: 'claim',
  })
  await log.write({ state: 'SUCCESS' })
  const removed = createDeferred()
  const told = Object.assign(Object.create(silentLog), {
    child: () => silentLog,
    info: (_: unknown, message: string) => {
      if (message === 'old logbooks removed') removed.resolve()
    },
  })
  await using _ = await startConductor({
    board,
    persistence,
    flows: [flow],
    removeLogbooksAfter: 0,
    log: told,
  })
  await removed.promise
  await expect(persistence.getBook('old')).rejects.toThrow('no logbook old')
})

test('a job that is restored between the look at the board and the one into the trash is not lost', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  const job = await board.post('any', {})
  const [claim] = await board.claimNext()
  await claim.trash({ reason: 'for now' })
  const slow = new Proxy(board, {
    get: (target, key) => {
      const found: unknown = Reflect.get(target, key, target)
      if (key !== 'findTrashed') return typeof found === 'function' ? found.bind(target) : found
      return async (reference: string) => {
        for await (const trashed of target.trashed()) await target.restore(trashed)
        return target.findTrashed(reference)
      }
    },
  })
  expect(await track(job.uuid, { board: slow, persistence })).toMatchObject({ status: 'waiting' })
})
