/** Records that somebody has planted: each hides itself, and is reported or shown as one that cannot be read; the others are listed. */
import { expect, onTestFinished, test } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { MemoryBackend, MemorySpace } from '../../../src/board/backends/memory/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { toBatchRun } from '../../../src/board/model/job-batch.ts'
import { listFlows } from '../../../src/board/records/flow-outlines.ts'
import type { RecordKind } from '../../../src/board/records/record-store.ts'
import { toScheduledRun } from '../../../src/board/schedules/scheduled-post.ts'
import { encodePlain } from '../../../src/core/codec.ts'
import { Redactor } from '../../../src/core/redaction.ts'
import { systemAlarmClock } from '../../../src/core/time.ts'
import { input, linear, task } from '../../../src/index.ts'
import { failureView, workView } from '../../../src/views/index.ts'

const raw = (name: string): RecordKind<object> => ({ name, format: 1, parse: (value) => Object(value) })

async function setup() {
  const space = new MemorySpace({ clock: systemAlarmClock })
  const board = new JobBoard(new MemoryBackend({ uri: 'memory:', space }))
  await boardInternals(board).open()
  onTestFinished(() => board.close())
  const reported: string[] = []
  board.on('error', ({ error }) => reported.push(error.message))
  const plant = (kind: string, value: object) =>
    boardInternals(board)
      .records.of(raw(kind))
      .write([{ id: 'bad', revision: undefined, value }])
  return { board, space, reported, plant }
}

test.each<[string, object]>([
  ['a time after the last date', { concurrency: 1, by: 'w', at: 1e300 }],
  ['a concurrency of 64 bits', { concurrency: 2n ** 60n, by: 'w', at: 0 }],
  ['a rate whose interval is endless', { rate: { limit: 1e-300, perMs: 1, burst: 1 }, by: 'w', at: 0 }],
  ['a rate that is null', { rate: null, by: 'w', at: 0 }],
])('a limit with %s is listed as one that cannot be read', async (_, value) => {
  const { board, plant } = await setup()
  await plant('limit', value)
  await board.limits.set('good', { concurrency: 1 })
  const [bad, good] = await board.limits.list({ waiting: true })
  expect(bad).toMatchObject({ key: 'bad', error: { message: expect.stringContaining('limit bad cannot be read') } })
  expect(good).toMatchObject({ key: 'good', concurrency: 1 })
})

test('records that exceed the memory of a list are listed with an error, and the others with their values', async () => {
  const { board } = await setup()
  for (const id of ['a', 'b', 'c']) await board.limits.set(id, { concurrency: 1 })
  const listed = await boardInternals(board).records.of(raw('limit')).list({ memory: 1_300 })
  expect(listed.map((record) => ('error' in record ? record.error.message : record.id))).toEqual([
    ...['a', 'b'],
    'limit c cannot be read: the records of this kind take more than 1300 bytes of memory; remove some of them',
  ])
})

test('fields of a limit that no release knows are left out, whatever they are', async () => {
  const { board, plant } = await setup()
  await plant('limit', { rate: { limit: 1, perMs: 1, burst: 1, odd: 2n ** 60n }, by: 'w', at: 0, odd: new Date() })
  expect(await board.limits.list()).toEqual([
    { key: 'bad', rate: { limit: 1, perMs: 1, burst: 1 }, set: expect.anything() },
  ])
})

test.each<[string, object]>([
  ['a time after the last date', { until: 1e300, by: 'w', at: 0 }],
  ['a begin that is no number', { by: 'w', at: Number.NaN }],
])('a hold with %s holds its key, and hides no limit', async (_, value) => {
  const { board, plant } = await setup()
  await plant('limit-hold', value)
  await board.limits.set('good', { concurrency: 1 })
  expect((await board.limits.list()).map(({ key, held }) => [key, held?.reason])).toEqual([
    ['bad', expect.stringContaining('cannot be read')],
    ['good', undefined],
  ])
})

test.each<[string, object]>([
  ['a node that is null', { outline: { name: 'f', version: '1', digest: 'd', nodes: [null] }, at: 0 }],
  ['an edge back', { outline: { name: 'f', version: '1', digest: 'd', nodes: [{}, { next: [0] }] }, at: 0 }],
  ['an edge to no node', { outline: { name: 'f', version: '1', digest: 'd', nodes: [{ next: [1] }] }, at: 0 }],
  ['a time after the last date', { outline: { name: 'f', version: '1', digest: 'd', nodes: [] }, at: 1e300 }],
  [
    'more than 1,000 inputs',
    { outline: { name: 'f', version: '1', digest: 'd', requires: Array(1_001).fill('a'), nodes: [] }, at: 0 },
  ],
])('an outline with %s is left out, and reported once', async (_, value) => {
  const { board, plant, reported } = await setup()
  await plant('outline', value)
  await boardInternals(board).publishFlows([linear('good', input(), task('work', { execute: () => 'done' }))])
  for (let look = 0; look < 2; look += 1) expect((await board.flows()).map(({ name }) => name)).toEqual(['good'])
  expect(reported).toEqual([expect.stringContaining('outline bad cannot be read')])
})

test('outlines that would take more memory than a list of flows may are left out, and reported once', async () => {
  const { board, plant, reported } = await setup()
  const nodes = Array.from({ length: 5_000 }, () => ({}))
  await plant('outline', { outline: { name: 'f', version: '1', digest: 'd', nodes }, at: 0 })
  await boardInternals(board).publishFlows([linear('good', input(), task('work', { execute: () => 'done' }))])
  expect((await board.flows()).map(({ name }) => name)).toEqual(['f', 'good'])
  for (let look = 0; look < 2; look += 1)
    expect((await listFlows(boardInternals(board).records, 50_000)).map(({ name }) => name)).toEqual(['good'])
  expect(reported).toEqual([expect.stringContaining('outline bad cannot be read')])
})

test('a flow with more than 1,000 inputs is listed without them', async () => {
  const { board, reported } = await setup()
  const requires = Array.from({ length: 1_001 }, (_, n) => `n${n}`)
  const wide = linear('wide', input<Record<string, number>>(), task('work', { requires, execute: () => 'done' }))
  await boardInternals(board).publishFlows([wide])
  const [listed] = await board.flows()
  expect([listed?.name, listed?.requires, reported]).toEqual(['wide', undefined, []])
})

test('a batch whose definition is nil is listed with its numbers, as one that cannot be read', async () => {
  const { board, space } = await setup()
  const good = await board.batch({ name: 'good' })
  space.batches.create({ uuid: 'bad', bytes: encodePlain({ format: 1, value: null }, 'msgpack') })
  const views = await board.batches()
  expect(views.find(({ uuid }) => uuid === good.uuid)).toMatchObject({ name: 'good', state: 'open' })
  expect(views.find(({ uuid }) => uuid === 'bad')).toMatchObject({
    name: 'unreadable',
    total: 0,
    error: expect.any(Error),
  })
})

test.each<[string, object]>([
  ['a post that is no number', { postedAt: Number.NaN }],
  ['an end after the last date', { endedAt: 1e300 }],
  ['runs of 64 bits', { runs: 2n ** 60n }],
])('a job of the history with %s is left out and reported once, and the others are listed', async (_, odd) => {
  const { board, space } = await setup()
  const errors: string[] = []
  board.on('error', ({ error }) => errors.push(error.message))
  const job = { uuid: 'good', name: 'n', outcome: 'COMPLETE', who: 'w', runs: 1, postedAt: 1, endedAt: 2 } as const
  space.history.add({ job, keep: 10 })
  space.history.add({ job: { ...job, uuid: 'bad', ...odd }, keep: 10 })
  for (const _read of [1, 2]) expect((await board.history()).map(({ uuid }) => uuid)).toEqual(['good'])
  expect(errors).toEqual([expect.stringContaining('history: "bad" is left out')])
})

test('objects in the place of texts and numbers of a posting are no schedule, no batch and no fault', () => {
  const odd = { toString: 1, valueOf: 1 }
  expect(toScheduledRun({ schedule: { id: 's', nominal: odd } })).toBeUndefined()
  expect(toScheduledRun({ schedule: { id: 's', nominal: '2026-01-01', lateMs: odd, missed: odd } })).toMatchObject({
    ...{ lateMs: 0, missed: 0 },
  })
  expect(workView({ details: { schedule: { id: 's', nominal: odd } } })).toEqual({})
  const ended = { uuid: 'u', name: 'n', generation: 1, total: odd, done: odd, failed: odd }
  expect(toBatchRun({ details: { endedBatch: ended } })).toBeUndefined()
  const failure = { name: odd, message: odd, code: odd } as object
  expect(failureView(failure as Parameters<typeof failureView>[0], new Redactor([]))).toMatchObject({ name: 'Error' })
})

test('records of one revision are decoded once, however often all are listed, and others run meanwhile', async () => {
  const { board, plant } = await setup()
  const parsed: string[] = []
  const slow: RecordKind<object> = {
    ...{ name: 'slow', format: 1 },
    parse: (value, id) => {
      parsed.push(id)
      for (const end = performance.now() + 30; performance.now() < end; );
      return Object(value)
    },
  }
  await plant('slow', {})
  const store = boardInternals(board).records.of(slow)
  for (const id of ['a', 'b', 'c']) await store.write([{ id, revision: undefined, value: {} }])
  let turns = 0
  const counting = setInterval(() => (turns += 1), 1)
  const known = new Map((await store.list()).map((record) => [record.id, record]))
  clearInterval(counting)
  expect(turns).toBeGreaterThan(0)
  expect(parsed.sort()).toEqual(['a', 'b', 'bad', 'c'])
  await store.write([{ id: 'b', revision: known.get('b')?.revision, value: { n: 1 } }])
  const again = await store.list({ known: (id) => known.get(id) })
  expect(parsed.sort()).toEqual(['a', 'b', 'b', 'bad', 'c'])
  expect(again.filter((record) => record === known.get(record.id)).map(({ id }) => id)).toEqual(['a', 'bad', 'c'])
})
