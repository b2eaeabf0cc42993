/** Windows of keys in Redis: to the millisecond of its clock, what is left of them, and what somebody else has written there. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fieldName } from '../../../../src/board/backends/redis/store/layout.ts'
import type { JobBoard } from '../../../../src/board/index.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { type RedisPlace, redisPlace } from './places.ts'

const KEY = { name: 'import', for: '1h' } as const

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** Moves the ends of all windows, as if this time had passed. */
async function passTime({ observer, key }: RedisPlace, ms: number): Promise<void> {
  for (const field of await observer.zrange(key('windows'), 0, -1)) await observer.zincrby(key('windows'), -ms, field)
}

async function consume(board: JobBoard, options: Parameters<JobBoard['post']>[2]): Promise<string> {
  const job = await board.post('flow', {}, options)
  expect(job.created).toBe(true)
  await (await board.claim(job)).consume()
  return job.uuid
}

describe('a window', () => {
  test('ends by the clock of Redis', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const uuid = await consume(board, { key: KEY })
    await passTime(place, 59 * 60_000)
    expect(await board.post('flow', {}, { key: KEY })).toMatchObject({ because: 'window', uuid })
    await passTime(place, 60_000)
    const next = await consume(board, { key: KEY })
    expect(await board.post('flow', {}, { key: KEY })).toMatchObject({ because: 'window', uuid: next })
    expect(await place.observer.hlen(place.key('keys'))).toBe(1)
  })

  test('that is over is removed by later posts with a key; a job that is on the board keeps its key', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const { observer, key } = place
    for (let n = 0; n < 20; n += 1) await consume(board, { key: { name: `old ${n}`, for: '1m' } })
    const waiting = await board.post('flow', {}, { key: { name: 'waiting', for: '1m' } })
    await passTime(place, 2 * 60_000)
    await consume(board, { key: 'old 3' })
    await consume(board, { key: KEY })
    await consume(board, { key: 'other' })
    expect(await observer.zrange(key('windows'), 0, -1)).toEqual([fieldName('import')])
    expect((await observer.hkeys(key('keys'))).sort()).toEqual([fieldName('import'), fieldName('waiting')])
    expect(await board.post('flow', {}, { key: 'waiting' })).toMatchObject({ because: 'waiting', uuid: waiting.uuid })
  })

  test('that is over when its job ends goes with the job', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const job = await board.post('flow', {}, { key: KEY })
    await passTime(place, 2 * 3_600_000)
    await (await board.claim(job)).consume()
    expect(await place.observer.exists(place.key('windows'), place.key('keys'))).toBe(0)
  })

  test.each(['inf', '-inf', '1e300'])('of which somebody has written the end %s is over, or never', async (end) => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    await consume(board, { key: KEY })
    await place.observer.zadd(place.key('windows'), end, fieldName('import'))
    const again = await board.post('flow', {}, { key: KEY })
    expect(again.because).toBe(end === '-inf' ? undefined : 'window')
  })

  test('whose Redis key is of another type refuses the posts that need it, and says so', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const errors: string[] = []
    board.on('error', ({ error }) => errors.push(error.message))
    await place.observer.set(place.key('windows'), 'x')
    await expect(board.post('flow', {}, { key: KEY })).rejects.toMatchObject({ code: 'JOBBOARD_WRITES_REFUSED' })
    expect(await board.post('flow', {})).toMatchObject({ created: true })
    expect(errors.join()).toContain('the step post was refused')
  })
})
