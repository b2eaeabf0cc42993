/**
 * How long a conductor takes from the start of its process to its first claim: `jobboard conductor` on a board where a job waits, beside a Node.js
 * process that does nothing.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { openBoard } from 'jobboard'
import { ROOT } from '../support/build.ts'
import { startGuarded } from '../support/guarded-process.ts'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { startBenchServer } from './board-processes.ts'
import { times } from './brief.ts'
import { type Goal, printGoals } from './goals.ts'
import { median, spread } from './spread.ts'

const ROUNDS = times(10, 1)
const CLI = join(ROOT, 'dist/cli/main.js')
/** A flow of one task, as an application would write it. */
const FLOWS = `import { input, linear, task } from ${JSON.stringify(pathToFileURL(join(ROOT, 'dist/index.js')).href)}
export const hello = linear('hello', input(), task('greet', { execute: () => 'hi' }))
`

export default async function start(): Promise<void> {
  await using zookeeper = await startBenchServer()
  await using postgres = await startPostgres()
  await using redis = await startRedis()
  const places = [
    { what: 'ZooKeeper', uri: `zookeeper://${zookeeper.hosts}/start` },
    { what: 'Postgres', uri: `${postgres.uri}?board=start` },
    { what: 'Redis', uri: `${redis.uri}/0?prefix=start` },
  ]
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-start-'))
  try {
    const flows = join(folder, 'flows.mjs')
    await writeFile(flows, FLOWS)
    const bare: number[] = []
    const took = new Map(places.map((place) => [place, [] as number[]]))
    for (let round = 0; round < ROUNDS; round += 1) {
      bare.push(await timeOf(['--eval', '']))
      for (const [{ uri }, all] of took) all.push(await firstClaim({ uri, flows, logbooks: join(folder, 'logbooks') }))
    }
    console.log(`Node ${process.version}, ${cpus().length} processors; the median of ${ROUNDS} starts (range), in ms`)
    console.log(`  a process of Node.js that does nothing   ${spread(bare, 0)}`)
    const goals: Goal[] = []
    for (const [{ what }, all] of took) {
      console.log(`  to the first claim on ${what.padEnd(18)} ${spread(all, 0)}`)
      const goal = { atMost: 10 }
      goals.push({
        what: `start to first claim on ${what}, times a bare process:`,
        value: median(all) / median(bare),
        goal,
      })
    }
    printGoals(goals)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Returns how long a process of Node.js takes from its start to its end, in milliseconds. */
async function timeOf(args: readonly string[]): Promise<number> {
  const begin = performance.now()
  const child = await startGuarded([process.execPath, ...args])
  await child.ended
  return performance.now() - begin
}

interface Started {
  readonly uri: string
  readonly flows: string
  readonly logbooks: string
}

/** Returns how long a conductor takes from the start of its process until it has claimed a job that waits, in milliseconds. */
async function firstClaim({ uri, flows, logbooks }: Started): Promise<number> {
  await using board = await openBoard(uri)
  using _view = await board.view()
  await board.post('hello', {})
  const claimed = new Promise<number>((resolve) => board.on('claimed', () => resolve(performance.now())))
  const begin = performance.now()
  const args = ['--flows', flows, '--board', uri, '--persistence', `directory:${logbooks}`, '--max-jobs', '1']
  const child = await startGuarded([process.execPath, CLI, 'conductor', ...args, '--log-level', 'silent'])
  const at = await claimed
  await child.ended
  return at - begin
}
