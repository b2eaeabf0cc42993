/**
 * Conductors with child processes on ZooKeeper: children are killed and stopped, conductors are killed, stopped, cut off and
 * ended by a service manager, and tasks end their processes. Each job is done once, no attempt overlaps another, no job is charged for what
 * another did, and no process is left.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Job, openBoard } from '../../../src/index.ts'
import { ensureBuilt } from '../../support/build.ts'
import { count } from '../../support/counts.ts'
import { randomly } from '../../support/random.ts'
import { startZooKeeper } from '../../support/zookeeper.ts'
import { Attempts } from './attempts.ts'
import { FAULTS, PATH, PoolSetup } from './pool-setup.ts'

const JOBS = count({ test: 60, long: 20_000 })
const MOST_FAULTS = count({ test: FAULTS.length, long: Number.POSITIVE_INFINITY })
/** Every so many jobs, one ends its process in its first attempt. */
const POISON_EVERY = count({ test: 12, long: 100 })
/** The longest attempt: long enough for the jobs to be under way while the faults happen. */
const LONGEST_MS = count({ test: 1_500, long: 160 })
const POISONS = ['exit', 'abort', 'grandchild', 'heap'] as const
const TIMEOUT = count({ test: 180_000, long: 1_800_000 })

test('each isolated job is done once, whatever happens to conductors and their children', {
  timeout: TIMEOUT,
}, async () => {
  await ensureBuilt()
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-chaos-pool-'))
  onTestFinished(({ task }) =>
    task.result?.state === 'fail' ? undefined : rm(folder, { recursive: true, force: true }),
  )
  await mkdir(join(folder, 'jobs'))
  await using server = await startZooKeeper({ tickTime: 500 })
  await using board = await openBoard(`zookeeper://${server.hosts}${PATH}?tick=500ms`)
  const attempts = new Attempts(folder)
  await using setup = new PoolSetup({ server, folder })
  await setup.open(count({ test: 2, long: 3 }))
  const posting: Promise<Job>[] = []
  for (let n = 0; n < JOBS; n += 1) {
    const poison = n % POISON_EVERY === 0 ? (POISONS[(n / POISON_EVERY) % POISONS.length] ?? '') : ''
    const backOff = { first: '100ms', max: '1s' } as const
    posting.push(
      board.post(
        'visiting',
        { n, folder, poison, longestMs: LONGEST_MS },
        { name: `job-${n}`, maxAttempts: 10, backOff },
      ),
    )
  }
  const posted = await Promise.all(posting)
  const settled = Promise.all(posted.map((job) => job.wait()))
  // A fault that fails the test closes the board, which ends these waits, too.
  settled.catch(() => undefined)
  const random = randomly()
  await setup.suffer({ until: settled, random, faults: FAULTS, most: MOST_FAULTS })
  console.log(`pools: seed ${random.seed}, ${JSON.stringify(setup.faults)}, alive at expiry ${setup.aliveAtExpiry}`)
  expect(new Set(await settled)).toEqual(new Set(['COMPLETE']))
  await setup.drain()
  const summary = attempts.summarize(JOBS)
  console.log(`pools: ${JSON.stringify(summary.counts)}`)
  expect(summary.living).toEqual([])
  for await (const job of board.jobs({ ensureFresh: true })) throw new Error(`${job} is on the board still`)
  for await (const trashed of board.trashed()) throw new Error(`${trashed.uuid} is in the trash: ${trashed.reason}`)
  expect(summary.overlaps).toEqual([])
  expect(summary.notOnce).toEqual([])
  expect(attempts.wronglyCharged({ killed: setup.killed })).toEqual([])
})
