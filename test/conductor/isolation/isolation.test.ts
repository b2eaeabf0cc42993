/** Isolated tasks of conductors and of `runFlow`: their context, their failures, and what becomes of their jobs. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { expect, vi } from 'vitest'
import {
  ChildDied,
  ChildUnavailable,
  type ConductorPool,
  describeError,
  InvalidArgument,
  input,
  linear,
  openBoard,
  type Posting,
  runFlow,
  startConductor,
  task,
} from '../../../src/index.ts'
import { rejectionOf } from '../../board/events.ts'
import { isAlive, newFile, pidsIn } from '../../pool/pools.ts'
import { compiled } from '../../support/compiled.ts'
import { usual as test, testRows, variant } from '../../variant.ts'
import * as flows from './flows.ts'

const MODULE = await compiled(fileURLToPath(new URL('./flows.ts', import.meta.url)), { library: 'built' })
const POOL: ConductorPool = { module: MODULE, max: 2 }

function recordLog() {
  const lines: Record<string, unknown>[] = []
  return { lines, log: pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) }) }
}

test('an isolated task has its whole context, and the next task has its result', async () => {
  const { lines, log } = recordLog()
  const { results } = await runFlow(flows.greeting, { name: 'Ada' }, { pool: POOL, log, services: flows.services })
  const [there, here] = results.pids
  expect(here).toBe(process.pid)
  expect(there).not.toBe(process.pid)
  expect(results.greeted).toEqual({ text: 'Hello, Ada!', pid: there, run: 1, fence: false, job: undefined })
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'greeting', name: 'Ada', task: 'greet', child: 1 }))
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'printing Ada', pid: there }))
  expect(isAlive(there ?? 0)).toBe(false)
})

test('a job runs its isolated tasks in children, which the conductor shows', async () => {
  await using board = await openBoard('memory:')
  const events: string[] = []
  await using conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [flows.greeting], services: flows.services, pool: POOL },
  })
  conductor.on('childDied', ({ child, expected }) => events.push(`died ${child} ${expected}`))
  const progress: number[] = []
  conductor.on('progress', (event) => progress.push(event.progress))
  const job = await board.post(flows.greeting, { name: 'Ada' }, { name: 'greet ada' })
  expect(await job.wait()).toBe('COMPLETE')
  expect(progress).toEqual([0.5])
  await vi.waitFor(
    async () => {
      const [entity] = await board.entities('conductor')
      expect(entity?.metadata).toMatchObject({ children: [{ number: 1, state: 'idle', tasks: 1 }] })
    },
    { timeout: 10_000 },
  )
  await conductor.stop()
  expect(events).toEqual(['died 1 true'])
})

variant('the memory of a child is shown, and is a metric', async () => {
  await using board = await openBoard('memory:')
  await using conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [flows.greeting], services: flows.services },
    ...{ pool: { ...POOL, memory: '1GB' }, health: { port: 0 }, metrics: true },
  })
  await (await board.post(flows.greeting, { name: 'Ada' })).wait()
  const megabytes = await vi.waitFor(
    async () => {
      const [entity] = await board.entities('conductor')
      const [child]: { memory?: number }[] = Object(entity?.metadata['children'])
      expect(child).toMatchObject({ state: 'idle', tasks: 1, memory: expect.any(Number) })
      return Number(child?.memory) / 1_024 ** 2
    },
    { timeout: 10_000 },
  )
  expect(megabytes).toBeGreaterThan(10)
  const text = await (await fetch(`${conductor.healthUrl}/metrics`)).text()
  expect(text).toMatch(/^jobboard_child_rss_bytes \d{8,}$/m)
})

testRows(
  [['deadline of the task'], ['cancel of the job'], ['deadline of the job']],
  ([what]) => what !== 'deadline of the job',
)('a %s ends a task that computes for ever', async (what) => {
  await using board = await openBoard('memory:')
  const flow = what === 'deadline of the task' ? flows.late : flows.spinning
  await using _conductor = await startConductor({ board, persistence: 'memory:', flows: [flow], pool: POOL })
  const file = await newFile()
  const deadline = what === 'deadline of the job' ? { deadline: '1s' as const } : {}
  const job = await board.post(flow, { file }, { maxAttempts: 1, ...deadline })
  const [pid = 0] = await pidsIn(file, 1)
  if (what === 'cancel of the job') await board.cancel(job, { reason: 'not needed' })
  expect(await job.wait()).toBe('TRASHED')
  expect(isAlive(pid)).toBe(false)
  // It may have done a part of its work: so it is reverted, by another child.
  expect(readFileSync(file, 'utf8')).toMatch(/^\d+\nreverted \d+\n$/)
})

test('a stop of the conductor gives the job back uncharged, and leaves no process', async () => {
  await using board = await openBoard('memory:')
  const conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [flows.spinning], pool: POOL, drainTimeout: 0, abortTimeout: '5s' },
  })
  const file = await newFile()
  const job = await board.post(flows.spinning, { file })
  const [pid = 0] = await pidsIn(file, 1)
  await conductor.stop()
  expect(isAlive(pid)).toBe(false)
  expect([job.state, job.attempts.map(({ ended }) => ended)]).toEqual(['UNCLAIMED', ['returned']])
})

test('a crash is the failure of one task: its retry runs it again', async () => {
  const file = await newFile()
  await runFlow(flows.retried, { file }, { pool: POOL })
  expect(readFileSync(file, 'utf8')).toBe('attempt\nattempt\nattempt\n')
})

test('a crash without a retry fails the flow with ChildDied, which says how the child ended', async () => {
  const error = await rejectionOf(runFlow(flows.crashing, {}, { pool: POOL }))
  expect(error).toBeInstanceOf(ChildDied)
  expect(describeError(error)).toMatch(
    /child \d+ \(pid \d+, .*\) ended with exit code 7 while it worked, because of .*the last words/,
  )
})

test('a revert in a child has the result, and the failures that a child has thrown', async () => {
  const file = await newFile()
  const error = await rejectionOf(runFlow(flows.failing, { file }, { pool: POOL }))
  expect(String(error)).toContain('RangeError: out of range, because of Error: deep')
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
    result: { made: 'this' },
    failures: [['RangeError', 'out of range', 'E_RANGE']],
  })
})

test('a result that cannot be sent fails the task, and says which', async () => {
  const tooBig = await rejectionOf(runFlow(flows.tooBig, {}, { pool: POOL }))
  expect(String(tooBig)).toMatch(/the result of task big has 19 MB, more than the 16 MB of pool.maxMessage/)
  const unclonable = await rejectionOf(runFlow(flows.unclonable, {}, { pool: POOL }))
  expect(String(unclonable)).toMatch(/the result of task odd cannot be stored: .*inside is a function/)
})

variant('isolated tasks of a flow run side by side, in as many children as there are', async () => {
  const { results } = await runFlow(flows.wide, { file: await newFile() }, { pool: { ...POOL, min: 2 } })
  expect(new Set(Object.values(results)).size).toBe(2)
})

test('a flow with isolated tasks needs a pool, whose module exports it', async () => {
  const elsewhere = linear('elsewhere', input(), task('lonely', { isolate: true, execute: async () => 1 }))
  const withoutPool = await rejectionOf(runFlow(elsewhere, {}))
  expect(withoutPool).toBeInstanceOf(InvalidArgument)
  expect(String(withoutPool)).toContain("add pool: { module: './flows.js' }")
  const missing = await rejectionOf(runFlow(elsewhere, {}, { pool: POOL }))
  expect(missing).toBeInstanceOf(ChildUnavailable)
  expect(String(missing)).toContain('does not export flow elsewhere 1.0')
})

test('a flow whose pool cannot start leaves no job on the board', async () => {
  await using board = await openBoard('memory:')
  const pool = { ...POOL, module: './missing.js' }
  const error = await rejectionOf(runFlow(flows.greeting, { name: 'Ada' }, { board, pool, services: flows.services }))
  expect(error).toBeInstanceOf(ChildUnavailable)
  expect(await board.countJobs()).toBe(0)
})

test('a module that exports another flow of the same name is refused', async () => {
  const other = linear(
    'greeting',
    input<{ name: string }>(),
    task('greet otherwise', { isolate: true, execute: async () => 1 }),
  )
  const error = await rejectionOf(runFlow(other, { name: 'Ada' }, { pool: POOL }))
  expect(String(error)).toContain('differs from the flow in this process')
})

variant('jobs that wait for children are not searched for a job again and again', async () => {
  await using board = await openBoard('memory:')
  let examined = 0
  const claimNext = board.claimNext.bind(board)
  vi.spyOn(board, 'claimNext').mockImplementation(({ accept = () => true, ...options } = {}) => {
    const counted = (posting: Posting) => {
      examined += 1
      return accept(posting)
    }
    return claimNext({ ...options, accept: counted })
  })
  const jobs = await Promise.all(Array.from({ length: 200 }, () => board.post(flows.idle, {})))
  await using _conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [flows.idle], concurrency: 8, pool: { ...POOL, max: 1 } },
  })
  await Promise.all(jobs.map((job) => job.wait()))
  // Each is examined when it is claimed, and some before that; it was all those that waited, for each job that ended.
  expect(examined).toBeLessThan(10 * jobs.length)
})
