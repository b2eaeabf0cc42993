/**
 * The boards on servers and in files against the memory board: after any sequence of operations by several boards, each has answered the
 * same, and the same is to be seen.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PRIORITIES } from '../../../src/board/index.ts'
import { redisBoards } from '../../board/backends/redis/places.ts'
import { sqliteBoards } from '../../board/backends/sqlite/boards.ts'
import { memoryBoards, zookeeperBoards } from '../../board/boards.ts'
import type { BoardBackend } from '../../contract/board.ts'
import { count } from '../../support/counts.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { type RedisServer, startRedis } from '../../support/redis.ts'
import { BoardModel, type Step } from './world.ts'

const board = fc.nat(2)
const which = fc.nat(1_000)
const names = fc.array(fc.constantFrom('disk', 'tape'), { maxLength: 2 })
const how = fc.constantFrom('consume' as const, 'abandon' as const, 'trash' as const)

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('post' as const),
      board,
      key: fc.option(fc.constantFrom('a', 'b'), { nil: undefined }),
      exclusive: names,
      shared: names,
      priority: fc.oneof({ weight: 4, arbitrary: fc.constant('NORMAL' as const) }, fc.constantFrom(...PRIORITIES)),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('claim next' as const), board, max: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('claim' as const), board, which }) },
  { weight: 7, arbitrary: fc.record({ kind: fc.constant('settle' as const), which, how, failed: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('settle job' as const), board, which, how }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('cancel' as const), board, which }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('pause' as const, 'resume' as const), board }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('resume' as const), board }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('expire' as const), board }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('restore' as const, 'purge' as const), board, which }) },
)

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const boards: [string, boolean, BoardBackend][] = [
  ['ZooKeeper', zookeeperHosts !== '', zookeeperBoards],
  ['Redis', true, redisBoards(() => redis)],
  ['Redis, of which views hold three jobs', true, redisBoards(() => redis, { window: 3 })],
  ['SQLite', true, sqliteBoards()],
  ['SQLite, of which views hold three jobs', true, sqliteBoards({ parameters: 'window=3' })],
]

describe.each(boards.filter(([, there]) => there))('the board on %s', (_name, _there, backend) => {
  test('answers as the memory board does, and shows the same, whatever is done to it', {
    timeout: count({ test: 180_000, long: 1_800_000 }),
  }, async () => {
    const steps = fc.array(step, { minLength: 5, maxLength: 40, size: 'max' })
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        await using model = await BoardModel.begin(await memoryBoards.place())
        await using real = await BoardModel.begin(await backend.place())
        for (const [index, each] of sequence.entries()) {
          const told = `step ${index}: ${JSON.stringify(each)}`
          const [expected, answered] = await Promise.all([model.take(each), real.take(each)])
          expect(answered, told).toEqual(expected)
          const [image, seen] = await Promise.all([model.look(), real.look()])
          expect(seen, told).toEqual(image)
          expect([model.ordered, real.ordered]).toEqual([true, true])
        }
      }),
      { numRuns: count({ test: 12, long: 1_000 }) },
    )
  })
})
