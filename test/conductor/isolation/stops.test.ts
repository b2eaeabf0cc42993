/** Every way to stop an isolated task, at every moment of its child; and conductors whose slots and children are few. */
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, vi } from 'vitest'
import { type ConductorPool, type Job, type JobBoard, startConductor } from '../../../src/index.ts'
import { memoryBoards } from '../../board/boards.ts'
import { newFile, sendSignal, whenDead } from '../../pool/pools.ts'
import { compiled } from '../../support/compiled.ts'
import { testRows, variant } from '../../variant.ts'
import * as flows from './fault-flows.ts'

const MODULE = await compiled(fileURLToPath(new URL('./fault-flows.ts', import.meta.url)), { library: 'built' })
const POOL: ConductorPool = { module: MODULE, min: 1, max: 1, env: ['JOBBOARD_TEST_BLOCK'] }

let folder: string
/** Children wait at their start while this file exists. */
let block: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'jobboard-stops-'))
  block = join(folder, 'block')
  process.env['JOBBOARD_TEST_BLOCK'] = block
})

afterAll(async () => {
  delete process.env['JOBBOARD_TEST_BLOCK']
  await rm(folder, { recursive: true, force: true })
})

const CAUSES = ['deadline', 'cancel', 'lost claim', 'shutdown'] as const
const MOMENTS = ['computes', 'ignores its signal', 'is starting'] as const
const TABLE = CAUSES.flatMap((cause) => MOMENTS.map((moment) => [cause, moment] as const))
/** The rows of `npm test`: `isolation.test.ts` has deadlines. */
const USUAL: readonly string[] = ['cancel, computes', 'lost claim, is starting', 'shutdown, computes']

testRows(TABLE, (row) => USUAL.includes(row.join(', ')))(
  'a %s stops a job whose child %s, and leaves no process',
  async (cause, moment) => {
    const place = await memoryBoards.place()
    onTestFinished(() => place[Symbol.asyncDispose]())
    await using board = await place.open({ who: 'conductor' })
    await using poster = await place.open({ who: 'poster' })
    const file = await newFile()
    const setup = await open(board)
    if (moment === 'is starting') await setup.blockStart()
    const begun = new Promise<void>((resolve) => setup.conductor.on('started', () => resolve()))
    const limits = cause === 'deadline' ? { deadline: '3s' as const } : {}
    const job = await poster.post(flows.attempting, { file, how: moment }, { maxAttempts: 1, ...limits })
    await begun
    if (moment !== 'is starting') await vi.waitFor(() => expect(linesOf(file)).toHaveLength(1), { timeout: 30_000 })
    if (cause === 'cancel') await poster.cancel(job, { reason: 'not needed' })
    if (cause === 'lost claim') await place.expire(board)
    if (cause === 'shutdown') await setup.conductor.stop()
    if (cause === 'lost claim') await rm(block, { force: true })
    await vi.waitFor(() => expect(job.state).toBe(STATE_AFTER[cause]), { timeout: 30_000 })
    if (cause === 'shutdown') expect(job.attempts.map(({ ended }) => ended)).toEqual(['returned'])
    await setup.conductor.stop()
    await rm(block, { force: true })
    const lines = linesOf(file)
    expect(lines.filter((line) => line.startsWith('overlap'))).toEqual([])
    const begins = (moment === 'is starting' ? 0 : 1) + (cause === 'lost claim' ? 1 : 0)
    expect(lines.filter((line) => line.startsWith('begin'))).toHaveLength(begins)
    expect(lines.filter((line) => line.startsWith('end'))).toHaveLength(cause === 'lost claim' ? 1 : 0)
    await whenDead([...setup.children])
  },
)

const STATE_AFTER = {
  deadline: 'TRASHED',
  cancel: 'TRASHED',
  'lost claim': 'COMPLETE',
  shutdown: 'UNCLAIMED',
} as const

/** Opens a conductor with one child, whose children are noted. */
async function open(board: JobBoard) {
  const children = new Set<number>()
  const conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [flows.attempting], concurrency: 1, name: 'conductor' },
    ...{ pool: POOL, drainTimeout: 0, abortTimeout: '5s' },
  })
  onTestFinished(async () => {
    await rm(block, { force: true })
    await conductor.stop()
  })
  const noteChildren = async () => {
    for (const { pid } of await childrenOf(board)) if (pid !== undefined) children.add(pid)
  }
  /** Ends the child that is there; the next one waits at its start. */
  const blockStart = async () => {
    await noteChildren()
    const died = new Promise<void>((resolve) => conductor.on('childDied', () => resolve()))
    await writeFile(block, '')
    for (const pid of children) sendSignal(pid, 'SIGKILL')
    await died
    await vi.waitFor(async () => expect(await childrenOf(board)).toMatchObject([{ state: 'starting' }]), {
      timeout: 30_000,
    })
    await noteChildren()
  }
  await vi.waitFor(noteChildren, 60_000)
  return { conductor, children, blockStart }
}

async function childrenOf(board: JobBoard): Promise<readonly { readonly pid?: number; readonly state: string }[]> {
  const [entity] = await board.entities('conductor')
  const children = entity?.metadata['children']
  if (!Array.isArray(children) || children.length === 0) throw new Error('the conductor shows no children yet')
  return children
}

variant('jobs that wait for each other, and need the one child before and after that, are done', async () => {
  const place = await memoryBoards.place()
  await using board = await place.open({ who: 'conductor' })
  await using _conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [flows.meeting], concurrency: 6, pool: POOL },
  })
  const file = await newFile()
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const posting = names.map((own, n) => board.post(flows.meeting, { file, own, other: names[n ^ 1] ?? '' }))
  const jobs = await Promise.all(posting)
  expect(await Promise.all(jobs.map((job) => job.wait()))).toEqual(names.map(() => 'COMPLETE'))
  expect(linesOf(file)).toHaveLength(2 * names.length)
})

variant(
  'a conductor that is paused and resumed a hundred times does each job once, and never too many at once',
  async () => {
    const place = await memoryBoards.place()
    await using board = await place.open({ who: 'conductor' })
    await using conductor = await startConductor({
      ...{ board, persistence: 'memory:', flows: [flows.visiting], concurrency: 3, pool: { ...POOL, max: 2 } },
    })
    const charged: string[] = []
    conductor.on('settled', ({ job, failure }) => void (failure && charged.push(job.name)))
    const file = await newFile()
    const jobs: Job[] = []
    for (let n = 0; n < 100; n += 1) jobs.push(await board.post(flows.visiting, { file, n }))
    const done = Promise.all(jobs.map((job) => job.wait()))
    for (let change = 0; change < 100; change += 1) {
      const settled = new Promise<void>((resolve) => conductor.on('settled', () => resolve()))
      conductor.pause()
      expect(conductor.running).toBeLessThanOrEqual(3)
      conductor.resume()
      // Each change meets jobs in another state; the last ones come when no job is left.
      await Promise.race([settled, done])
    }
    expect(new Set(await done)).toEqual(new Set(['COMPLETE']))
    const begins = linesOf(file).filter((line) => line.startsWith('begin'))
    expect(new Set(begins.map((line) => line.split(' ')[1])).size).toBe(100)
    expect(begins).toHaveLength(100)
    expect(mostAtOnce(linesOf(file))).toBeLessThanOrEqual(2)
    expect(charged).toEqual([])
  },
)

function linesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}

/** Returns how many visits were under way at the same time at most. */
function mostAtOnce(lines: readonly string[]): number {
  let [now, most] = [0, 0]
  for (const line of lines) {
    now += line.startsWith('begin') ? 1 : -1
    most = Math.max(most, now)
  }
  return most
}
