/** What metrics cost: jobs of a two-task flow, done by a conductor on a board in memory, with no outlet and with Prometheus' text. */
import { cpus } from 'node:os'
import { input, linear, openBoard, startConductor, task } from 'jobboard'
import { times } from './brief.ts'
import { printGoals } from './goals.ts'
import { median, spread } from './spread.ts'

const JOBS = times(20_000, 200)
const ROUNDS = times(9, 1)
const WIDTH = 128

const flow = linear(
  'two-tasks',
  input<{ n: number }>(),
  task('first', { requires: ['n'], provides: 'sum', execute: ({ n }: { n: number }) => n + 1 }),
  task('second', { requires: ['sum'], execute: ({ sum }: { sum: number }) => sum }),
)

export default async function telemetry(): Promise<void> {
  console.log(`Node ${process.version}, ${cpus().length} processors, ${JOBS} jobs, median of ${ROUNDS} rounds (range)`)
  const cases = { 'no outlet': false, Prometheus: true }
  const took = new Map(Object.keys(cases).map((name) => [name, [] as number[]]))
  for (const metrics of Object.values(cases)) await run({ metrics })
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [name, metrics] of Object.entries(cases)) took.get(name)?.push(await run({ metrics }))
  for (const [name, all] of took) console.log(`  ${name.padEnd(12)} ${spread(all, 1)} µs of processor time per job`)
  const [bare = [], prometheus = []] = [...took.values()]
  const ratio = median(prometheus.map((each, round) => each / (bare[round] ?? Number.NaN)))
  printGoals([{ what: 'processor time per job with Prometheus, times without:', value: ratio, goal: { atMost: 1.02 } }])
}

/** Returns the processor time of this process per job, in µs. */
async function run({ metrics }: { readonly metrics: boolean }): Promise<number> {
  await using board = await openBoard('memory:')
  const items = Array.from({ length: JOBS }, (_, n) => ({ flow, store: { n } }))
  await board.postMany(items)
  const before = process.cpuUsage()
  const options = {
    board,
    persistence: 'memory:',
    flows: [flow],
    concurrency: WIDTH,
    burst: true,
    health: { port: 0 },
    metrics,
  }
  await using conductor = await startConductor(options)
  await conductor.stopped
  const { user, system } = process.cpuUsage(before)
  return (user + system) / JOBS
}
