/** Damaged values that scripts read: each is reported, and stops neither the board nor a batch nor the take-over of others. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fieldName } from '../../../../src/board/backends/redis/store/layout.ts'
import type { JobBoard } from '../../../../src/board/index.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { jobIdFor } from '../../boards.ts'
import { nextEvent, nextSession, rejectionOf } from '../../events.ts'
import { claimed, namesOn, refresh } from '../../jobs.ts'
import { redisPlace } from './places.ts'

/** More than a script looks at in one call. */
const FAKE_OWNERS = 40
const MAX_WAIT_MS = 20_000

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

function errorsOf(board: JobBoard): string[] {
  const messages: string[] = []
  board.on('error', ({ error }) => messages.push(String(error)))
  return messages
}

describe('the take-over from a dead owner', { timeout: MAX_WAIT_MS }, () => {
  test.each(['garbage', '\xc1', ''])('frees all that it held, where the record of its grants is %j', async (record) => {
    await using place = await redisPlace(server)
    await using nextOwner = await place.open({ who: 'next-owner' })
    await using mortal = await place.open({ who: 'mortal' })
    const errors = [errorsOf(nextOwner), errorsOf(mortal)]
    const resources = { exclusive: ['disk'], shared: ['net'] }
    await nextOwner.post('flow', {}, { name: 'damaged', resources })
    await nextOwner.post('flow', {}, { name: 'sharer', resources: { shared: ['net', 'cpu'] } })
    const damaged = await claimed(mortal, 'damaged')
    await claimed(mortal, 'sharer')
    await place.observer.hset(place.key('granted'), jobIdFor(damaged.job), record)
    await place.expire(mortal)
    await (await claimed(nextOwner, 'damaged')).consume()
    await (await claimed(nextOwner, 'sharer')).consume()
    await nextOwner.post('flow', {}, { name: 'wants all', resources: { exclusive: ['disk', 'net', 'cpu'] } })
    await (await claimed(nextOwner, 'wants all')).consume()
    const keys = ['granted', 'exclusive', 'shared', 'held'].map((name) => place.key(name))
    expect(await place.observer.exists(...keys)).toBe(0)
    await refresh(mortal)
    await refresh(nextOwner)
    expect(errors.flat()).toMatchObject([expect.stringContaining(place.key('granted'))])
  })

  test('keeps what others share, where the record of its grants is damaged', async () => {
    await using place = await redisPlace(server)
    await using nextOwner = await place.open({ who: 'next-owner' })
    await using mortal = await place.open({ who: 'mortal' })
    for (const name of ['damaged', 'sharer']) await nextOwner.post('flow', {}, { name, resources: { shared: ['net'] } })
    const damaged = await claimed(mortal, 'damaged')
    const sharer = await claimed(nextOwner, 'sharer')
    await place.observer.hset(place.key('granted'), jobIdFor(damaged.job), 'garbage')
    await place.expire(mortal)
    await (await claimed(nextOwner, 'damaged')).consume()
    expect(await place.observer.hgetall(place.key('shared'))).toEqual({ [fieldName('net')]: '1' })
    await sharer.consume()
    expect(await place.observer.exists(place.key('shared'))).toBe(0)
  })

  test.each([
    ['a living key', 'hash'],
    ['a key of another type', 'string'],
  ])('is not kept back by many owners with %s whose time is over', async (_, type) => {
    await using place = await redisPlace(server)
    await using nextOwner = await place.open({ who: 'next-owner' })
    await using mortal = await place.open({ who: 'mortal' })
    await nextOwner.post('flow', {}, { name: 'job' })
    await claimed(mortal, 'job')
    const planting = place.observer.multi()
    for (let fake = 0; fake < FAKE_OWNERS; fake += 1) {
      planting.zadd(place.key('owners'), '-inf', `fake${fake}`)
      if (type === 'hash') planting.hset(place.key(`owner:fake${fake}`), 'number', '0')
      else planting.set(place.key(`owner:fake${fake}`), '0')
    }
    await planting.exec()
    await place.expire(mortal)
    await (await claimed(nextOwner, 'job')).consume()
    // None is due at once: a board that always finds somebody late asks again without a pause.
    for (let looks = 0; looks < FAKE_OWNERS / 16; looks += 1) await refresh(nextOwner)
    expect(await place.observer.zcount(place.key('owners'), '-inf', Date.now())).toBe(0)
  })

  test('comes, where the time of that owner was put off for ever', async () => {
    await using place = await redisPlace(server)
    await using nextOwner = await place.open({ who: 'next-owner' })
    await using mortal = await place.open({ who: 'mortal' })
    await nextOwner.post('flow', {}, { name: 'job' })
    await claimed(mortal, 'job')
    const owner = await place.ownerOf(mortal)
    const key = place.key(`owner:${owner}`)
    await place.observer.multi().del(key).zadd(place.key('owners'), 'inf', owner).exec()
    await refresh(nextOwner)
    await (await claimed(nextOwner, 'job')).consume()
  })

  test('of which the keys are of another type is tried again later, and reported once', async () => {
    await using place = await redisPlace(server)
    await using nextOwner = await place.open({ who: 'next-owner' })
    await using mortal = await place.open({ who: 'mortal' })
    const errors = errorsOf(nextOwner)
    await nextOwner.post('flow', {}, { name: 'job' })
    await claimed(mortal, 'job')
    await place.observer.rename(place.key('held'), place.key('aside'))
    await place.observer.set(place.key('held'), 'x')
    const owner = await place.ownerOf(mortal)
    const key = place.key(`owner:${owner}`)
    let isReported = false
    const reported = nextEvent(nextOwner, 'error', ({ error }) => String(error).includes(owner)).then(() => {
      isReported = true
    })
    // The mortal lives, and says so from time to time.
    while (!isReported) {
      await place.observer.multi().del(key).zadd(place.key('owners'), 0, owner).exec()
      await place.observer.publish(place.key('changes'), '')
      await Promise.race([reported, refresh(nextOwner)])
    }
    expect(Number(await place.observer.zscore(place.key('owners'), owner))).toBeGreaterThan(Date.now())
    await place.observer.rename(place.key('aside'), place.key('held'))
    await place.observer.zadd(place.key('owners'), 0, owner)
    await refresh(nextOwner)
    await (await claimed(nextOwner, 'job')).consume()
    expect(errors.filter((message) => message.includes(owner))).toHaveLength(1)
  })
})

describe('a batch', { timeout: MAX_WAIT_MS }, () => {
  test('is not half done beside a step that a damaged key refuses', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const errors = errorsOf(board)
    for (const name of ['a', 'b']) await board.post('flow', {}, { name, key: name, resources: { exclusive: [name] } })
    const [a, b] = [await claimed(board, 'a'), await claimed(board, 'b')]
    await place.observer.set(place.key('trash'), 'x')
    const [trashing] = await Promise.allSettled([a.trash({ reason: 'why' }), b.consume()])
    expect(trashing).toMatchObject({ status: 'rejected', reason: { code: 'JOBBOARD_WRITES_REFUSED' } })
    expect(await place.jobIds()).toEqual([jobIdFor(a.job)])
    const counts = ['rows', 'order', 'uuids', 'held', 'granted', 'exclusive', 'keys'].map(async (name) => {
      const command = ['order', 'uuids'].includes(name) ? 'zcard' : 'hlen'
      return [name, await place.observer[command](place.key(name))]
    })
    for (const [name, count] of await Promise.all(counts)) expect(count, String(name)).toBe(1)
    expect(errors).toHaveLength(1)
    await place.observer.del(place.key('trash'))
    await refresh(board)
    expect(await namesOn(board)).toEqual(['a'])
  })

  test('with a key whose holder is nothing that a board writes posts all jobs', async () => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    await place.observer.hset(place.key('keys'), fieldName('k'), 'garbage')
    await Promise.all([board.post('flow', {}, { name: 'keyed', key: 'k' }), board.post('flow', {}, { name: 'other' })])
    expect((await namesOn(board)).sort()).toEqual(['keyed', 'other'])
    await board.post('flow', {}, { name: 'again', key: 'k' })
    expect(await namesOn(board)).toHaveLength(2)
  })
})

describe('a count of a shared resource', { timeout: MAX_WAIT_MS }, () => {
  test.each(['x', 'inf', 'nan', '-3', '1e300'])(
    'of %j lets no other job in beside those that share it',
    async (count) => {
      await using place = await redisPlace(server)
      await using board = await place.open()
      await board.post('flow', {}, { name: 'sharer', resources: { shared: ['net'] } })
      const alone = await board.post('flow', {}, { name: 'alone', resources: { exclusive: ['net'] } })
      const sharer = await claimed(board, 'sharer')
      await place.observer.hset(place.key('shared'), fieldName('net'), count)
      expect(await rejectionOf(board.claim(alone))).toMatchObject({ code: 'JOBBOARD_UNCLAIMABLE' })
      await sharer.consume()
      await (await board.claim(alone)).consume()
      expect(await place.observer.exists(place.key('shared'))).toBe(0)
    },
  )
})

describe('a field of the board', { timeout: MAX_WAIT_MS }, () => {
  const fields = ['version', 'sequence', 'fence'].flatMap((field) =>
    ['abc', '', 'inf', '-inf', 'nan', '-5', '1e999'].map((value): [string, string] => [field, value]),
  )
  test.each([
    ...fields,
    ['version', '1e300'],
    ['version', '9007199254740992'],
    ['version', '1.5'],
    ['sequence', '1e300'],
    ['sequence', '9007199254740990'],
    ['sequence', '1.5'],
  ])('%s of %j is reported, and the board goes on', async (field, value) => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    await board.post('flow', {}, { name: 'before' })
    const before = await claimed(board, 'before')
    const errors = errorsOf(board)
    await place.observer.hset(place.key('board'), field, value)
    await board.post('flow', {}, { name: 'early' })
    const early = await claimed(board, 'early')
    expect(early.fence).toBeGreaterThan(before.fence)
    await Promise.all([early.consume(), before.consume()])
    await using late = await place.open()
    const job = await late.post('flow', {}, { name: 'late' })
    await (await claimed(board, 'late')).consume()
    expect(await job.wait()).toBe('COMPLETE')
    const reported = errors.filter((message) => message.includes(`field ${field} of ${place.key('board')}`))
    expect(reported).toHaveLength(1)
    expect(errors).toEqual(reported)
  })

  test.each(['9007199254740991', '1e300'])('fence of %s refuses claims until it is set', async (value) => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const errors = errorsOf(board)
    await place.observer.hset(place.key('board'), 'fence', value)
    const job = await board.post('flow', {}, { name: 'job', resources: { exclusive: ['disk'] } })
    expect(await rejectionOf(board.claim(job))).toMatchObject({
      code: 'JOBBOARD_WRITES_REFUSED',
      message: expect.stringContaining('fence'),
    })
    expect(await place.observer.exists(...['held', 'exclusive', 'granted'].map(place.key))).toBe(0)
    expect(errors).toMatchObject([expect.stringContaining('set it to a number')])
    await place.observer.hset(place.key('board'), 'fence', '9007199254740980')
    const claim = await claimed(board, 'job')
    expect(claim.fence).toBe(9_007_199_254_740_981n)
    await claim.consume()
    expect(errors).toHaveLength(1)
  })

  test('format of another text is a release that is not known', async () => {
    await using place = await redisPlace(server)
    await (await place.open()).close()
    await place.observer.hset(place.key('board'), 'format', 'abc')
    expect(await rejectionOf(place.open())).toMatchObject({ code: 'JOBBOARD_INCOMPATIBLE_VERSION' })
  })

  test.each(['no number', 'no hash'])('of an owner that is %s begins another session', async (what) => {
    await using place = await redisPlace(server)
    await using board = await place.open()
    const key = place.key(`owner:${await place.ownerOf(board)}`)
    const back = nextSession(board)
    if (what === 'no number') await place.observer.hset(key, 'number', 'abc')
    else await place.observer.set(key, 'x')
    await place.observer.publish(place.key('changes'), '')
    await back
    await board.post('flow', {}, { name: 'job' })
    await (await claimed(board, 'job')).consume()
  })
})
