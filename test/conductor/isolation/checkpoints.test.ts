/** Checkpoints of tasks in child processes: the run of their conductor writes them, and the next child finds them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, vi } from 'vitest'
import { type ConductorPool, openBoard, openPersistence, runFlow, startConductor, track } from '../../../src/index.ts'
import { newFile } from '../../pool/pools.ts'
import { compiled } from '../../support/compiled.ts'
import { usual as test, variant } from '../../variant.ts'
import * as flows from './checkpoint-flows.ts'

const MODULE = await compiled(fileURLToPath(new URL('./checkpoint-flows.ts', import.meta.url)), { library: 'built' })
const POOL: ConductorPool = { module: MODULE, max: 1 }

const linesOf = (file: string): unknown[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    : []
const untilWaits = (file: string) =>
  vi.waitFor(() => expect(linesOf(file)).toContain('waits'), { timeout: 30_000, interval: 10 })
const AT = new Date(7).toISOString()

test('a child that is killed after a save: the next attempt of the job finds the newest, and the message was shown', async () => {
  await using board = await openBoard('memory:')
  await using conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [flows.stopping], pool: POOL },
  })
  const messages: unknown[] = []
  conductor.on('progress', ({ progress, message }) => messages.push([progress, message]))
  const file = await newFile()
  const store = { file, how: 'its child is killed' }
  const job = await board.post(flows.stopping, store, { maxAttempts: 2, backOff: { first: 0 } })
  expect(await job.wait()).toBe('COMPLETE')
  expect(linesOf(file)).toEqual([{ run: 1 }, { run: 2, last: { row: 9, at: AT } }])
  expect(messages).toEqual([[0.25, 'page 1 of 4']])
})

variant('a task that is stopped saves how far it came, and another conductor goes on', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  const options = { board, persistence, flows: [flows.stopping], pool: POOL }
  const file = await newFile()
  const job = await board.post(flows.stopping, { file, how: 'it is stopped' })
  const first = await startConductor({ ...options, drainTimeout: 0 })
  await untilWaits(file)
  await first.stop()
  expect(await track(job.uuid, { board, persistence })).toMatchObject({
    checkpoints: { import: { value: { row: 9, at: new Date(7) }, at: expect.any(Date) } },
  })
  await using _second = await startConductor(options)
  expect(await job.wait()).toBe('COMPLETE')
  expect(linesOf(file)).toEqual([{ run: 1 }, 'waits', { run: 2, last: { row: 9, at: AT } }])
})

variant('a run that has lost the flow cannot save, and its child ends', async () => {
  await using board = await openBoard('memory:')
  await using persistence = await openPersistence('memory:')
  await using conductor = await startConductor({ board, persistence, flows: [flows.stopping], pool: POOL })
  const died = new Promise((resolve) => conductor.on('childDied', resolve))
  const file = await newFile()
  const job = await board.post(flows.stopping, { file, how: 'another run has acquired the flow' }, { maxAttempts: 1 })
  await untilWaits(file)
  const { name, version } = flows.stopping
  const request = { book: job.book, flow: { uuid: job.uuid, name, version }, run: 1_000, claim: 'newer' }
  await using newer = await persistence.acquire(request)
  writeFileSync(`${file}.go`, '')
  await died
  for (const flow of [newer.flow, (await persistence.getBook(job.book.uuid)).flows[0]])
    expect(flow?.atoms[0]?.checkpoint?.value).toBe('mine')
})

variant('values that cannot be saved are refused in the child, with errors of their classes', async () => {
  const file = await newFile()
  await runFlow(flows.stopping, { file, how: 'its values are refused' }, { pool: POOL })
  expect(linesOf(file).slice(1)).toEqual([
    [true, false, expect.stringContaining('the checkpoint of task import cannot be stored')],
    [false, true, expect.stringContaining('the checkpoint of task import has 69 KB, more than 64 KB')],
  ])
})

variant('a revert finds what execute has saved last', async () => {
  const file = await newFile()
  await expect(runFlow(flows.reverting, { file }, { pool: POOL })).rejects.toThrow('no answer')
  expect(linesOf(file)).toEqual([{ reverting: { row: 7 } }])
})
