/** Modules of a pool that cannot be imported, and modules that change or vanish while their conductor runs. */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { silentLog } from '../../../src/core/log.ts'
import {
  ChildUnavailable,
  type Conductor,
  type ConductorPool,
  describeError,
  IncompatibleVersion,
  openBoard,
  runConductor,
  runFlow,
  startConductor,
} from '../../../src/index.ts'
import { rejectionOf } from '../../board/events.ts'
import { newFile, pidsFrom, pidsIn, sendSignal, whenDead } from '../../pool/pools.ts'
import { compiled } from '../../support/compiled.ts'
import { usual as test, testRows } from '../../variant.ts'
import * as faultFlows from './fault-flows.ts'
import * as flows from './flows.ts'

const FLOWS = await compiled(fileURLToPath(new URL('./fault-flows.ts', import.meta.url)), { library: 'built' })
const INDEX = new URL('../../../dist/index.js', import.meta.url).href

async function newModule(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-module-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'flows.mjs')
  await writeFile(file, text)
  return file
}

testRows<[string, string, RegExp, '4s' | '50s']>(
  [
    ['that throws', "throw new Error('no licence')", /no licence/, '50s'],
    ['that throws no error', "throw 'only a text'", /only a text/, '50s'],
    ['that ends its process', 'process.exit(0)', /ended with exit code 0 before it was ready/, '50s'],
    ['that computes for ever', 'while (true) Math.random()', /was not ready within 4000 ms/, '4s'],
    [
      'that waits for ever',
      'await new Promise(() => setInterval(() => undefined, 1000))',
      /was not ready within 4000 ms/,
      '4s',
    ],
    ['with a syntax error', 'export const = 1', /SyntaxError|Unexpected|error/i, '50s'],
  ],
  ([how]) => how === 'that throws' || how === 'that ends its process',
)('a module %s at its import refuses the start, and leaves no process', async (_, text, message, startTimeout) => {
  const pids = await newFile()
  const note = `import { appendFileSync } from 'node:fs'\nappendFileSync(${JSON.stringify(pids)}, process.pid + '\\n')\n`
  const module = await newModule(`${note}${text}`)
  const pool: ConductorPool = { module, max: 1, startTimeout }
  const error = await rejectionOf(runFlow(flows.greeting, { name: 'Ada' }, { pool, services: flows.services }))
  expect(error).toBeInstanceOf(ChildUnavailable)
  expect(describeError(error)).toMatch(message)
  // A module that cannot be parsed has not begun.
  if (!text.startsWith('export const =')) await whenDead(await pidsIn(pids, 1))
})

test('a module that is missing refuses the start, and is named', async () => {
  const pool: ConductorPool = { module: './no/such/flows.js', max: 1 }
  const error = await rejectionOf(runFlow(flows.greeting, { name: 'Ada' }, { pool, services: flows.services }))
  expect(error).toBeInstanceOf(ChildUnavailable)
  expect(describeError(error)).toContain('no/such/flows.js')
})

test('a module that has changed when a further child is started drains the conductor, and charges no job', async () => {
  const module = await newModule(`export { holding } from ${JSON.stringify(FLOWS)}`)
  await using board = await openBoard('memory:')
  const started = createDeferred<Conductor>()
  const ended = rejectionOf(
    runConductor({
      ...{ board, persistence: 'memory:', flows: [faultFlows.holding], concurrency: 2, log: silentLog },
      pool: { module, min: 1, max: 2 },
      started: started.resolve,
    }),
  )
  const conductor = await started.promise
  const charged: string[] = []
  conductor.on('settled', ({ job, failure }) => void (failure && charged.push(job.name)))
  const changed = new Promise<Error>((resolve) => conductor.on('error', ({ error }) => resolve(error)))
  const [file, gate] = [await newFile(), await newFile()]
  const first = await board.post(faultFlows.holding, { file, gate })
  await pidsIn(file, 1)
  await writeFile(
    module,
    `import { input, linear, task } from ${JSON.stringify(INDEX)}
    const other = task('other', { isolate: true, execute: () => 1 })
    export const holding = linear('holding', input(), other)`,
  )
  const second = await board.post(faultFlows.holding, { file, gate })
  const error = await changed
  expect(error).toBeInstanceOf(IncompatibleVersion)
  expect(conductor.state).toBe('draining')
  await writeFile(gate, '')
  // A supervisor starts the process again: it has to end with an error.
  expect(await ended).toBe(error)
  expect(await first.wait()).toBe('COMPLETE')
  // It was done by the first child, or given back: both are right, and neither is its fault.
  const attempts = second.attempts.map((attempt) => attempt.ended)
  expect(second.state === 'COMPLETE' || attempts.every((each) => each === 'returned')).toBe(true)
  expect(charged).toEqual([])
  await whenDead(pidsOf(file))
})

test('a module that has vanished gives the job back, which is not charged', async () => {
  const module = await newModule(`export { holding } from ${JSON.stringify(FLOWS)}`)
  await using board = await openBoard('memory:')
  await using conductor = await startConductor({
    ...{ board, persistence: 'memory:', flows: [faultFlows.holding], concurrency: 1 },
    pool: { module, min: 1, max: 1 },
  })
  const [file, gate] = [await newFile(), await newFile()]
  await writeFile(gate, '')
  expect(await (await board.post(faultFlows.holding, { file, gate })).wait()).toBe('COMPLETE')
  await rm(fileURLToPath(new URL(`file://${module}`)))
  const died = new Promise<void>((resolve) => conductor.on('childDied', () => resolve()))
  const [pid = 0] = pidsOf(file)
  sendSignal(pid, 'SIGKILL')
  await died
  const settled = new Promise((resolve) => conductor.on('settled', resolve))
  await board.post(faultFlows.holding, { file, gate })
  await settled
  for await (const { attempts } of board.jobs({ ensureFresh: true })) {
    expect(attempts.map(({ ended }) => ended)).toEqual(['returned'])
    expect(attempts[0]?.reason).toContain('can start no child process')
  }
  expect(await settled).toMatchObject({ settled: 'abandoned' })
  expect(await settled).not.toHaveProperty('failure')
  expect(conductor.healthy).toBe(false)
})

function pidsOf(file: string): number[] {
  return pidsFrom(readFileSync(file, 'utf8'))
}
