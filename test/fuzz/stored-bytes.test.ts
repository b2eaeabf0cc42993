/**
 * Bytes of others beside a running conductor, in each kind of store: whatever they are, an innocent job beside them is done.
 *
 * The seed of a run is in the name of what fails. JOBBOARD_SEED repeats it, with `-t` and the target's name alone;
 * JOBBOARD_FUZZ_SECONDS is the time of each target. By default all of them take ten seconds, and an hour in
 * `npm run test:long -- fuzz`.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { count } from '../support/counts.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { type NodeProcess, startNode } from '../support/node-process.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { randomly } from '../support/random.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { recordMaker } from './records.ts'
import { type Setup, TARGETS } from './targets.ts'

const ALL_SECONDS = count({ test: 4, long: 3_600 })
const SECONDS = Number(process.env['JOBBOARD_FUZZ_SECONDS'] ?? ALL_SECONDS / TARGETS.length)
/** Generous: it tells a process that hangs from one that is slow. */
const MAX_WAIT_MS = 120_000
const AT_ONCE = 8
/** How many reports of a process show that it lives on, beside a board on which no job can be done. */
const REPORTS_WHILE_DAMAGED = 3

const { seed } = randomly()

async function fuzz(setup: Setup, make: ReturnType<typeof recordMaker>): Promise<void> {
  const { board, logbooks = 'memory:' } = setup
  await using target = await startNode(new URL('./target.ts', import.meta.url), [
    ...[board, logbooks, String(seed), setup.mend ? 'damaged' : 'whole'],
  ])
  await reports(target, 'done', 1)
  for (const until = Date.now() + SECONDS * 1_000; Date.now() < until; ) {
    for (let planted = 0; planted < (setup.mend ? 1 : AT_ONCE); planted += 1) await setup.plant(make)
    if (setup.mend) {
      await reports(target, 'alive', REPORTS_WHILE_DAMAGED)
      await setup.mend()
    }
    // The one that is being done may have been posted before.
    await reports(target, 'done', 2)
  }
}

/** Resolves when the process has reported this so many times from now on. */
async function reports(target: NodeProcess, what: 'alive' | 'done', times: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the process reports no '${what}' any more`)), MAX_WAIT_MS)
  })
  const last = target.lines.filter((line) => line.startsWith(`${what} `)).length
  try {
    await Promise.race([target.says(new RegExp(`^${what} ${last + times}$`)), late])
  } catch (error) {
    const lines = target.lines.filter((line) => !/^(alive|done) /.test(line)).join('\n')
    throw new Error(
      `seed ${seed}: ${error instanceof Error ? error.message.slice(0, 100) : error}\n${lines.slice(-3_000)}`,
    )
  } finally {
    clearTimeout(timer)
  }
}

describe(`bytes of others (JOBBOARD_SEED=${seed})`, { timeout: SECONDS * 1_000 + 4 * MAX_WAIT_MS }, () => {
  let [postgres, redis]: [PostgresServer?, RedisServer?] = []
  beforeAll(async () => {
    ;[postgres, redis] = await Promise.all([startPostgres({ config: { fsync: 'off' } }), startRedis()])
  })
  afterAll(() => Promise.all([postgres?.stop(), redis?.stop()]))

  for (const { name, on, encoding = 'msgpack', open } of TARGETS) {
    test.skipIf(on === 'zookeeper' && !zookeeperHosts)(name, async () => {
      // Each target has the same numbers whether the others run or not.
      const random = randomly(seed)
      await using setup = await open({ postgres: postgres?.uri ?? '', redis: redis?.uri ?? '' }, random)
      await fuzz(setup, recordMaker(random, encoding))
    })
  }
})

test('the seed is one that can be given again', () => {
  expect(Number.isSafeInteger(seed)).toBe(true)
})
