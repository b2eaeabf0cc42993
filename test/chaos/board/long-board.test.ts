/** Boards with more jobs than a process wants to keep in memory. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { type JobBoard, openBoard } from '../../../src/board/index.ts'
import { postgresPlaceOn } from '../../board/backends/postgres/boards.ts'
import { redisPlace } from '../../board/backends/redis/places.ts'
import { refresh } from '../../board/jobs.ts'
import { count } from '../../support/counts.ts'
import { startPostgres } from '../../support/postgres.ts'
import { startRedis } from '../../support/redis.ts'

const JOBS = count({ test: 3_000, long: 1_000_000 })
const BLOCKED = count({ test: 500, long: 20_000 })
const WINDOW = count({ test: 200, long: 10_000 })
/** What a view may take, in bytes: what it holds of the board, twice over, and what a process needs besides. */
const MOST_HEAP = 2 * WINDOW * 2_000 + 20 * 1_024 * 1_024
const TIMEOUT = 1_800_000
/** How many copies are made at once. */
const STEP = 5_000

interface LongPlace extends AsyncDisposable {
  readonly uri: string
  /** So many copies of the job with this uuid, each with one of its own, behind it; posted by nobody. */
  copy(uuid: string, copies: number): Promise<void>
}

const SERVERS: [string, () => Promise<LongPlace>][] = [
  ['Postgres', onPostgres],
  ['Redis', onRedis],
]

describe.each(SERVERS)('a long board on %s', (name, start) => {
  test('takes no more memory than its window, and is worked off from its head', { timeout: TIMEOUT }, async () => {
    await using place = await start()
    const uri = `${place.uri}&window=${WINDOW}`
    await fill(place, {}, JOBS)
    const before = await heap()
    const begin = performance.now()
    await using board = await openBoard(uri)
    console.log(`${name}: ${JOBS} jobs opened in ${(performance.now() - begin).toFixed(0)} ms`)
    expect(await board.countJobs()).toBe(JOBS)
    const after = await heap()
    console.log(`${name}: ${((after - before) / 1_024 / 1_024).toFixed(1)} MiB`)
    expect(after - before).toBeLessThan(MOST_HEAP)
    await using other = await openBoard(uri)
    for (const priority of ['LOW', 'VERY_HIGH'] as const) await other.post('flow', {}, { name: priority, priority })
    await refresh(board)
    expect(await names(board, 3)).toEqual(['VERY_HIGH', 'waiting', 'waiting'])
    const worked = performance.now()
    const some = 3 * WINDOW
    for (let left = some; left > 0; ) {
      const claims = await board.claimNext({ max: Math.min(100, left) })
      await Promise.all(claims.map((claim) => claim.consume()))
      left -= claims.length
    }
    console.log(`${name}: ${((some * 1_000) / (performance.now() - worked)).toFixed(0)} life cycles a second`)
    await refresh(board)
    expect(await board.countJobs()).toBe(JOBS - some + 1)
    const worn = (await heap()) - before
    console.log(`${name}: ${(worn / 1_024 / 1_024).toFixed(1)} MiB, of two boards, at the end`)
    expect(worn).toBeLessThan(2 * MOST_HEAP)
  })

  test('lets a job past those that are blocked on a resource', { timeout: TIMEOUT }, async () => {
    await using place = await start()
    const uri = `${place.uri}&window=${WINDOW}`
    await using board = await openBoard(uri)
    const took = async (on: JobBoard) => {
      const begin = performance.now()
      await on.post('flow', {}, { name: 'unrelated' })
      const [claim] = await on.claimNext()
      expect(claim.job.name).toBe('unrelated')
      await claim.consume()
      return performance.now() - begin
    }
    const usual = await several(() => took(board))
    await board.post('flow', {}, { name: 'holder', resources: { exclusive: ['disk'] } })
    const [holder] = await board.claimNext()
    await fill(place, { exclusive: ['disk'] }, BLOCKED)
    // Nobody was told of the copies: a board that is opened now sees them.
    await using third = await openBoard(uri)
    expect(await third.countJobs()).toBe(BLOCKED + 1)
    const behind = await several(() => took(third))
    console.log(`${name}: behind ${BLOCKED} blocked ${behind.toFixed(1)} ms, else ${usual.toFixed(1)} ms`)
    await holder.consume()
    expect(await names(third, 1)).toEqual(['waiting'])
  })
})

/** The median. */
async function several(step: () => Promise<number>): Promise<number> {
  const times = []
  for (let round = 0; round < 50; round += 1) times.push(await step())
  return times.sort((a, b) => a - b)[25] ?? Number.NaN
}

async function fill(place: LongPlace, resources: { readonly exclusive?: string[] }, jobs: number): Promise<void> {
  await using board = await openBoard(place.uri)
  const job = await board.post('flow', { path: '/some/where/a/file.txt' }, { name: 'waiting', resources })
  await place.copy(job.uuid, jobs - 1)
}

async function names(board: JobBoard, max: number): Promise<string[]> {
  const claims = await board.claimNext({ max })
  await Promise.all(claims.map((claim) => (claim.job.name === 'waiting' ? claim.abandon() : claim.consume())))
  return claims.map(({ job }) => job.name)
}

async function onPostgres(): Promise<LongPlace> {
  const server = await startPostgres({ config: { fsync: 'off' } })
  const place = await postgresPlaceOn(server.uri)
  return {
    uri: place.uri,
    copy: async (uuid, copies) => {
      for (let done = 0; done < copies; done += STEP) {
        await place.query(
          `INSERT INTO @.jobs (board, uuid, name, priority, body)
          SELECT board, new, name, priority,
            overlay(body PLACING convert_to(new, 'UTF8') FROM position(convert_to(uuid, 'UTF8') IN body))
          FROM @.jobs, LATERAL (SELECT gen_random_uuid()::text AS new FROM generate_series(1, $2)) AS made WHERE uuid = $1`,
          [uuid, Math.min(STEP, copies - done)],
        )
      }
    },
    [Symbol.asyncDispose]: async () => {
      await place[Symbol.asyncDispose]()
      await server.stop()
    },
  }
}

const COPY = `
local key, uuid, copies, seed = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local named = redis.call('ZRANGEBYLEX', key .. 'uuids', '[' .. uuid .. ':', '(' .. uuid .. ';')[1]
local id = string.sub(named, #uuid + 2)
local posting, row = redis.call('HGET', key .. 'jobs', id), redis.call('HGET', key .. 'rows', id)
local score, number = tonumber(redis.call('ZSCORE', key .. 'order', id)), tonumber(string.sub(id, 4))
local at = string.find(posting, uuid, 1, true)
for n = seed + 1, seed + copies do
  local new, other = string.sub(uuid, 1, 24) .. string.format('%012d', n), string.format('job%.0f', number + n)
  redis.call('HSET', key .. 'jobs', other, string.sub(posting, 1, at - 1) .. new .. string.sub(posting, at + 36))
  redis.call('HSET', key .. 'rows', other, row)
  redis.call('ZADD', key .. 'order', string.format('%.0f', score + n), other)
  redis.call('ZADD', key .. 'uuids', 0, new .. ':' .. other)
end
redis.call('HSET', key .. 'board', 'sequence', string.format('%.0f', number + seed + copies))
`

async function onRedis(): Promise<LongPlace> {
  const server = await startRedis()
  const place = await redisPlace(server)
  return {
    uri: place.uri,
    copy: async (uuid, copies) => {
      for (let done = 0; done < copies; done += STEP) {
        const many = String(Math.min(STEP, copies - done))
        await place.observer.call('eval', COPY, '1', place.key(''), uuid, many, String(done))
      }
    },
    [Symbol.asyncDispose]: async () => {
      await place[Symbol.asyncDispose]()
      await server.stop()
    },
  }
}

/** In bytes, without what nobody needs. */
async function heap(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  // What is held weakly is let go of in the turn after the one that looked at it last.
  for (let turn = 0; turn < 3; turn += 1) {
    await nextTurn()
    collect()
  }
  return process.memoryUsage().heapUsed
}
