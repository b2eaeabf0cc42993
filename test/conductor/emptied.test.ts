/** A Redis that has lost its data: conductors begin anew on the board, and claim nothing before. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDeferred } from '../../src/core/async/abort.ts'
import { type ConductorHooks, input, linear, schedule, startConductor, task } from '../../src/index.ts'
import { redisPlace } from '../board/backends/redis/places.ts'
import { rejectionOf } from '../board/events.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.stop())

test('hooks run again, limits and schedules are declared anew, and meanwhile no job is claimed', async () => {
  await using place = await redisPlace(server)
  const calls: string[] = []
  const gates = new Map([
    ['one', createDeferred()],
    ['two', createDeferred()],
  ])
  let isAnew = false
  const hooks = (name: string): ConductorHooks => ({
    beforeClaim: [
      {
        name: `each of ${name}`,
        run: async () => {
          if (isAnew) await gates.get(name)?.promise
          calls.push(name)
        },
      },
      { name: 'once', once: 'board', run: () => void calls.push('once') },
    ],
  })
  const work = linear('work', input(), task('note', { execute: () => void calls.push('ran') }))
  const start = (name: string) =>
    startConductor({
      ...{ board: place.uri, persistence: 'memory:', flows: [work], name, hooks: hooks(name) },
      limits: { declare: { 'flow/work': { concurrency: 3 } } },
      schedules: [schedule('nightly', { cron: '0 2 * * *' }, work, {})],
    })
  const conductors = [await start('one'), await start('two')]
  const emptied = conductors.map((conductor) => new Promise((resolve) => conductor.on('emptied', resolve)))
  for (const conductor of conductors) conductor.on('error', () => undefined)
  expect(calls).toEqual(['one', 'once', 'two'])
  isAnew = true
  calls.length = 0
  await place.observer.flushall()
  await Promise.all(emptied)
  await using board = await place.openUnviewed()
  const job = await board.post(work, {})
  gates.get('one')?.resolve()
  // The first of them that is prepared does the job.
  expect(await job.wait()).toBe('COMPLETE')
  gates.get('two')?.resolve()
  await expect.poll(() => calls.toSorted()).toEqual(['once', 'one', 'ran', 'two'])
  expect(calls.slice(0, 3)).toEqual(['one', 'once', 'ran'])
  expect((await board.limits.list()).map(({ key, concurrency }) => [key, concurrency])).toEqual([['flow/work', 3]])
  expect((await board.schedules.list()).map(({ id }) => id)).toEqual(['nightly'])
  expect((await board.entities('conductor')).map(({ name }) => name).sort()).toEqual(['one', 'two'])
  for (const conductor of conductors) await conductor.stop()
})

test('a hook that fails is run again until it succeeds', async () => {
  await using place = await redisPlace(server)
  let failures = -1
  const hooks: ConductorHooks = {
    beforeClaim: {
      name: 'migrate',
      run: () => {
        failures += 1
        if (failures === 1) throw new Error('not yet')
      },
    },
  }
  const work = linear('work', input(), task('nothing', { execute: () => undefined }))
  const conductor = await startConductor({ board: place.uri, persistence: 'memory:', flows: [work], hooks })
  const errors: string[] = []
  conductor.on('error', ({ error }) => void errors.push(error.message))
  const emptied = new Promise((resolve) => conductor.on('emptied', resolve))
  await place.observer.flushall()
  await emptied
  await using board = await place.openUnviewed()
  expect(await (await board.post(work, {})).wait()).toBe('COMPLETE')
  await conductor.stop()
  expect(failures).toBe(2)
  expect(errors.some((message) => message.includes('not yet'))).toBe(true)
})

test('a board that is emptied while a conductor starts is prepared again before jobs are claimed', async () => {
  await using place = await redisPlace(server)
  const calls: string[] = []
  const [asked, goOn] = [createDeferred(), createDeferred()]
  const hooks: ConductorHooks = {
    beforeClaim: [
      { name: 'first', run: () => void calls.push('first') },
      {
        name: 'second',
        run: async () => {
          calls.push('second')
          asked.resolve()
          await goOn.promise
        },
      },
    ],
  }
  const work = linear('work', input(), task('note', { execute: () => void calls.push('ran') }))
  await using board = await place.openUnviewed()
  const emptied = new Promise((resolve) => board.on('emptied', resolve))
  board.on('error', () => undefined)
  const starting = startConductor({ board, persistence: 'memory:', flows: [work], hooks })
  await asked.promise
  await place.observer.flushall()
  await emptied
  goOn.resolve()
  const conductor = await starting
  conductor.on('error', () => undefined)
  expect(await (await board.post(work, {})).wait()).toBe('COMPLETE')
  await conductor.stop()
  expect(calls).toEqual(['first', 'second', 'first', 'second', 'ran'])
})

test('what is declared while a board begins anew is what it has in the end', async () => {
  await using place = await redisPlace(server)
  const [asked, goOn] = [createDeferred(), createDeferred()]
  let isAnew = false
  const hooks: ConductorHooks = {
    beforeClaim: {
      name: 'wait',
      run: async () => {
        if (!isAnew) return
        asked.resolve()
        await goOn.promise
      },
    },
  }
  const work = linear('work', input(), task('nothing', { execute: () => undefined }))
  const hourly = (every: '1h' | '3h') => [schedule('hourly', { every }, work, {})]
  const conductor = await startConductor({
    ...{ board: place.uri, persistence: 'memory:', flows: [work], hooks, schedules: hourly('1h') },
    limits: { declare: { api: { concurrency: 1 } } },
  })
  conductor.on('error', () => undefined)
  isAnew = true
  await place.observer.flushall()
  await asked.promise
  const configured = conductor.reconfigure({
    limits: { declare: { api: { concurrency: 7 } } },
    schedules: hourly('3h'),
  })
  goOn.resolve()
  await configured
  await using board = await place.openUnviewed()
  expect(await (await board.post(work, {})).wait()).toBe('COMPLETE')
  expect((await board.limits.list()).map(({ concurrency }) => concurrency)).toEqual([7])
  expect((await board.schedules.list()).map(({ spec }) => Object(spec).every)).toEqual(['3h'])
  await conductor.stop()
})

test('a board that is closed while it begins anew ends the hooks', async () => {
  await using place = await redisPlace(server)
  let calls = 0
  let isAnew = false
  const failed = createDeferred()
  const hooks: ConductorHooks = {
    beforeClaim: {
      name: 'fail',
      run: () => {
        if (!isAnew) return
        calls += 1
        failed.resolve()
        throw new Error('not today')
      },
    },
  }
  const work = linear('work', input(), task('nothing', { execute: () => undefined }))
  const board = await place.openUnviewed()
  board.on('error', () => undefined)
  const conductor = await startConductor({ board, persistence: 'memory:', flows: [work], hooks })
  const errors: string[] = []
  const ended = createDeferred()
  conductor.on('error', ({ error }) => {
    errors.push(error.message)
    if (errors.filter((message) => message.includes('not today')).length > 1) ended.resolve()
  })
  isAnew = true
  await place.observer.flushall()
  await failed.promise
  await board.close()
  await ended.promise
  const before = calls
  await conductor.stop()
  expect(calls).toBe(before)
})

test('a process that claims does not take the settings of the former board for those of the new one', async () => {
  await using place = await redisPlace(server)
  const board = await place.open()
  board.on('error', () => undefined)
  const emptied = new Promise((resolve) => board.on('emptied', resolve))
  await board.flowSettings.set('report', { queue: 'default' })
  await (await board.claim(await board.post('report', {}))).consume()
  await place.observer.flushall()
  await emptied
  await using operator = await place.openUnviewed()
  // The revision of the new board is that of the former one.
  await operator.flowSettings.set('report', { enabled: false })
  const job = await operator.post('report', {})
  expect(await rejectionOf(board.claim(await board.find(job.ref)))).toMatchObject({
    message: expect.stringContaining('was disabled by'),
  })
})
