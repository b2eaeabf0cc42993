/** The results of jobs that conductors run, as `board.result` reads them: kept on the board, or in the logbooks. */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { encrypted, input, linear, openBoard, openPersistence, runFlow, task } from '../../src/index.ts'
import { rejectionOf } from '../board/events.ts'
import { boards, delegate, listTrash, startTestConductor } from './conducting.ts'

const add = task('add', {
  requires: ['a', 'b'],
  provides: 'sum',
  execute: async ({ a, b }: { a: number; b: number }) => a + b,
})
const fail = task('fail', {
  execute: async () => {
    throw new Error('no disk')
  },
})
const kept = linear({ name: 'kept', keepResults: true }, input<{ a: number; b: number }>(), add)
const logged = linear('logged', input<{ a: number; b: number }>(), add)
const broken = linear('broken', input<Record<never, never>>(), fail)

async function logbooks(...codec: Parameters<typeof encrypted>[]) {
  const options = codec.map((given) => encrypted(...given))
  const persistence = await openPersistence('memory:', options.length > 0 ? { codec: options } : {})
  onTestFinished(() => persistence.close())
  return persistence
}

test('of a flow with keepResults are on the board, typed, and need no logbooks', async () => {
  const [board, poster] = await boards('conductor', 'poster')
  await startTestConductor({ board, persistence: 'memory:', flows: [kept, logged] })
  const job = await poster.post(kept, { a: 1, b: 2 })
  const { results } = await poster.result(job, { flow: kept, timeout: '30s' })
  const sum: number = results.sum
  expect(sum).toBe(3)
  const other = await poster.post(logged, { a: 1, b: 2 })
  expect(await rejectionOf(poster.result(other, { flow: logged }))).toMatchObject({
    code: 'JOBBOARD_RESULT_NOT_KEPT',
    message: expect.stringContaining('keepResults'),
  })
})

test('of other flows are in the logbook, by the names of what the tasks provide', async () => {
  const [board, poster] = await boards('conductor', 'poster')
  const persistence = await logbooks()
  await startTestConductor({ board, persistence, flows: [kept, logged] })
  for (const flow of [kept, logged]) {
    const job = await poster.post(flow, { a: 2, b: 2 })
    expect(await poster.result(job, { flow, persistence })).toEqual({ uuid: job.uuid, results: { sum: 4 } })
    expect((await poster.result(job.uuid, { flow, persistence })).results.sum).toBe(4)
  }
  const uuid = '0199c0de-0000-7000-8000-00000000b00c'
  await persistence.createBook({ uuid, name: 'shared' })
  const job = await poster.post(logged, { a: 3, b: 4 }, { book: { uuid, name: 'shared' } })
  expect((await poster.result(job, { flow: logged, persistence })).results.sum).toBe(7)
  expect((await poster.result(job.uuid, { flow: logged, persistence, book: uuid })).results.sum).toBe(7)
})

test('of a job that failed are its failures, where the logbooks are given', async () => {
  const [board, poster] = await boards('conductor', 'poster')
  const persistence = await logbooks()
  await startTestConductor({ board, persistence, flows: [broken] })
  const job = await poster.post(broken, {}, { maxAttempts: 1 })
  const error = await rejectionOf(poster.result(job, { persistence }))
  expect(error).toMatchObject({
    code: 'JOBBOARD_JOB_FAILED',
    uuid: job.uuid,
    reason: expect.stringContaining('no disk'),
  })
  expect(error).toMatchObject({ failures: [{ name: 'Error', message: 'no disk' }] })
})

test('of a flow whose results are sealed are unsealed with the codec only', async () => {
  const [board, poster] = await boards('conductor', 'poster')
  const key = randomBytes(32)
  const [persistence, same, wrong, plain] = await Promise.all([
    logbooks([{ key }]),
    logbooks([{ key }]),
    logbooks([{ key: randomBytes(32) }]),
    logbooks(),
  ])
  await startTestConductor({ board, persistence, flows: [kept] })
  const job = await poster.post(kept, { a: 1, b: 2 })
  expect((await poster.result(job, { persistence: same })).results).toEqual({ sum: 3 })
  expect(await rejectionOf(poster.result(job))).toMatchObject({
    code: 'JOBBOARD_RESULT_NOT_KEPT',
    message: expect.stringContaining('sealed by'),
  })
  for (const other of [wrong, plain])
    expect(await rejectionOf(poster.result(job, { persistence: other }))).toMatchObject({
      code: 'JOBBOARD_SEALED_LOGBOOK',
      message: expect.stringContaining(job.uuid),
    })
})

test('that another job has sealed are refused', async () => {
  const [board] = await boards('board')
  const key = randomBytes(32)
  const persistence = await logbooks([{ key }])
  const seal = (uuid: string) => persistence.sealResults?.({ sum: 5 }, { book: uuid, flow: uuid })
  const uuid = '0199c0de-0000-7000-8000-00000000000a'
  const sealed = seal(uuid)
  if (!sealed) throw new Error('logbooks with a codec can seal')
  const place = { book: uuid, flow: uuid }
  expect(persistence.unsealResults?.(sealed, place)).toEqual({ sum: 5 })
  expect(() => persistence.unsealResults?.(sealed, { ...place, flow: board.uri })).toThrow(/results of job/)
})

test('are never on the board in plain text where logbooks encrypt and cannot seal', async () => {
  const [board, poster] = await boards('conductor', 'poster')
  const inner = await logbooks()
  await startTestConductor({ board, persistence: delegate(inner, { encrypts: true }), flows: [kept] })
  const job = await poster.post(kept, { a: 1, b: 2 })
  expect(await rejectionOf(poster.result(job))).toMatchObject({
    code: 'JOBBOARD_RESULT_NOT_KEPT',
    message: expect.stringContaining('cannot seal'),
  })
})

test('that are too large are not kept, and the job is done; the logbook has them', async () => {
  const large = task('large', { provides: 'text', execute: async () => 'x'.repeat(70_000) })
  const flow = linear({ name: 'large', keepResults: true }, input<Record<never, never>>(), large)
  const [board, poster] = await boards('conductor', 'poster')
  const persistence = await logbooks()
  await startTestConductor({ board, persistence, flows: [flow] })
  const job = await poster.post(flow, {})
  expect(await rejectionOf(poster.result(job))).toMatchObject({
    code: 'JOBBOARD_RESULT_NOT_KEPT',
    message: expect.stringMatching(/70\d+ bytes, and a board keeps 65536/),
  })
  expect((await poster.result(job, { flow, persistence })).results.text).toHaveLength(70_000)
  expect(await listTrash(board)).toEqual([])
})

test('of a run in the foreground are kept, too', async () => {
  const [board] = await boards('board')
  const uuid = '0199c0de-0000-7000-8000-0000000000f0'
  await runFlow(kept, { a: 20, b: 1 }, { board, job: { uuid } })
  expect((await board.result(uuid)).results).toEqual({ sum: 21 })
  const failed = '0199c0de-0000-7000-8000-0000000000f1'
  const persistence = await logbooks()
  await rejectionOf(runFlow(broken, {}, { board, persistence, job: { uuid: failed } }))
  expect(await rejectionOf(board.result(failed, { persistence }))).toMatchObject({ code: 'JOBBOARD_JOB_FAILED' })
})

test('cannot be kept without a history: conductors warn of it at their start', async () => {
  const lines: string[] = []
  const log = pino({}, { write: (line: string) => lines.push(line) })
  const board = await openBoard('memory:no-history', { keepHistory: 0 })
  onTestFinished(() => board.close())
  await startTestConductor({ board, persistence: 'memory:', flows: [kept, logged], log })
  const warnings = lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 40)
  expect(warnings).toMatchObject([{ flows: ['kept'], msg: expect.stringContaining('keepResults') }])
  const job = await board.post(kept, { a: 1, b: 2 })
  expect(await rejectionOf(board.result(job))).toMatchObject({ code: 'JOBBOARD_RESULT_NOT_KEPT' })
})
