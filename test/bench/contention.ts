/**
 * Eight processes that claim from one queue: how many of the claims they try succeed, and how nearly jobs start in the
 * order in which they were posted. ZooKeeper fsyncs.
 */
import { openBoard } from '../../src/board/index.ts'
import { startBenchServer, startWorker, type Worker } from './board-processes.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { sideBySide } from './part-child.ts'

const JOBS = times(10_000, 500)
const RACERS = 8
const WIDTH = 1_024
/** Of claims, that succeed, in %. */
const GOAL = 80

interface Raced {
  readonly tried: number
  readonly won: number
  /** The numbers of the jobs that it got, in order, each with when. */
  readonly got: readonly (readonly [number: number, at: number])[]
}

export default async function contention(): Promise<void> {
  await using server = await startBenchServer()
  const goals: Goal[] = []
  for (const slots of [1, 16]) {
    const uri = `zookeeper://${server.hosts}/contention-${slots}`
    await post(uri)
    const what = `claims that succeed, ${RACERS} processes with ${slots} slots each, in %:`
    goals.push({ what, value: await race(uri, slots), goal: { atLeast: GOAL } })
  }
  printGoals(goals)
}

async function raced(racer: Worker): Promise<Raced> {
  await using running = racer
  return (await running.go()).result as Raced
}

async function post(uri: string): Promise<void> {
  await using board = await openBoard(uri)
  // One after the other as they were posted, whatever batch they went in.
  let posted: Promise<unknown> = Promise.resolve()
  await sideBySide(JOBS, WIDTH, (n) => {
    posted = board.post('flow', { n })
    return posted
  })
}

/** Returns how many claims succeeded, in %. */
async function race(uri: string, slots: number): Promise<number> {
  const racers = await Promise.all(Array.from({ length: RACERS }, () => startWorker('race', uri, slots)))
  const begin = performance.now()
  const results = await Promise.all(racers.map(raced))
  const took = performance.now() - begin
  const won = results.reduce((sum, each) => sum + each.won, 0)
  const tried = results.reduce((sum, each) => sum + each.tried, 0)
  const order = results.flatMap(({ got }) => got).sort(([, a], [, b]) => a - b)
  const away = order.map(([number], index) => Math.abs(number - index)).sort((a, b) => a - b)
  const at = (part: number) => away[Math.floor(part * (away.length - 1))]
  console.log(`\n${RACERS} processes with ${slots} slots each, ${JOBS} jobs, ${(took / 1_000).toFixed(1)} s`)
  const succeeded = (100 * won) / tried
  console.log(`  ${succeeded.toFixed(1)} % of ${tried} claims succeeded`)
  console.log(`  places away from posting order: median ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)}`)
  return succeeded
}
