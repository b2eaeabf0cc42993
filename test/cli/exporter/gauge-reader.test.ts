/** The gauges of a board that is longer than what is read of it, and how often requests are sent. */
import { expect, onTestFinished, test } from 'vitest'
import { BOARD_GAUGES } from '../../../src/cli/commands/exporter/board-gauges.ts'
import { GaugeReader } from '../../../src/cli/commands/exporter/gauge-reader.ts'
import { ThrottledRead } from '../../../src/cli/commands/exporter/throttled-read.ts'
import { type JobBoard, openBoard } from '../../../src/index.ts'
import { PrometheusSink } from '../../../src/telemetry/internal.ts'
import { startRedis } from '../../support/redis.ts'

/** Returns the lines of some gauges of the board. */
async function gaugesOf(board: JobBoard, names: readonly string[], options: { readonly maxTrash?: number } = {}) {
  using reader = new GaugeReader(board, { label: 'a', ...options })
  const sink = new PrometheusSink(BOARD_GAUGES)
  await reader.record(sink)
  const lines = sink.text().split('\n')
  return lines.filter((line) => names.some((name) => line.startsWith(`jobboard_board_${name}{`)))
}

test('of a board that is longer than the window, the length and the running jobs are exact, and others at least so many', async () => {
  await using redis = await startRedis()
  await using board = await openBoard(`${redis.uri}/0?prefix=long&window=4`)
  await board.postMany(Array.from({ length: 40 }, (_, n) => ({ flow: 'import', store: { n } })))
  const [first, second] = await board.claimNext({ max: 2 })
  onTestFinished(async () => {
    await first[Symbol.asyncDispose]()
    await second?.[Symbol.asyncDispose]()
  })
  const lines = await gaugesOf(board, ['length', 'complete', 'jobs'])
  expect(lines).toContain('jobboard_board_length{board="a"} 40')
  expect(lines).toContain('jobboard_board_complete{board="a",part="jobs"} 0')
  expect(lines).toContain('jobboard_board_jobs{board="a",flow="import",state="running"} 2')
  const waiting = lines
    .find((line) => line.includes('state="waiting"'))
    ?.split(' ')
    .at(-1)
  expect(Number(waiting)).toBeGreaterThan(0)
  expect(Number(waiting)).toBeLessThan(38)
})

test('of a long trash, so many jobs are read, and the gauge says that there are more', async () => {
  await using board = await openBoard('memory:')
  for (const flow of ['a', 'a', 'b']) await board.cancel(await board.post(flow, {}))
  expect(await gaugesOf(board, ['trash', 'complete'], { maxTrash: 2 })).toEqual([
    'jobboard_board_trash{board="a",flow="a"} 2',
    'jobboard_board_complete{board="a",part="jobs"} 1',
    'jobboard_board_complete{board="a",part="trash"} 0',
  ])
})

test('many flows count as other', async () => {
  await using board = await openBoard('memory:')
  await board.postMany(Array.from({ length: 203 }, (_, n) => ({ flow: `flow-${n}`, store: {} })))
  const lines = await gaugesOf(board, ['jobs'])
  expect(lines).toContain('jobboard_board_jobs{board="a",flow="other",state="waiting"} 3')
  expect(lines).toHaveLength(201 * 5)
})

test('a board that is closed while it is read has nothing but that it is away', async () => {
  const board = await openBoard('memory:')
  await board.post('flow', {})
  await board.close()
  expect(await gaugesOf(board, ['up', 'length', 'jobs'])).toEqual(['jobboard_board_up{board="a"} 0'])
})

test('a value is read no more often than its cost allows, and once for those who ask together', async () => {
  let [now, reads] = [0, 0]
  const paced = new ThrottledRead(
    async () => {
      now += 50
      reads += 1
      return reads
    },
    { minPeriodMs: 100, now: () => now },
  )
  expect(await Promise.all([paced.get(), paced.get()])).toEqual([1, 1])
  now = 549
  expect(await paced.get()).toBe(1)
  now = 550
  expect(await paced.get()).toBe(2)
})

test('a queue that a pattern pauses is paused like one that is paused by its name', async () => {
  await using board = await openBoard('memory:')
  for (const queue of ['tenant-a', 'tenant-b', 'bulk']) await board.post('import', {}, { queue })
  await board.limits.stop('queue/tenant-*')
  for (const queue of ['tenant-b', 'empty']) await board.pause({ queue })
  const lines = await gaugesOf(board, ['queue_paused'])
  expect(lines.toSorted()).toEqual(
    ['empty', 'tenant-a', 'tenant-b'].map((queue) => `jobboard_board_queue_paused{board="a",queue="${queue}"} 1`),
  )
})
