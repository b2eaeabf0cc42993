/** Subscriptions of a board on Redis: begun and ended on their own client, and hints about followed jobs. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type JobBoard, openBoard } from '../../../../src/board/index.ts'
import { boardInternals } from '../../../../src/board/internal.ts'
import { encode } from '../../../../src/core/codec.ts'
import { startProxy } from '../../../support/proxy.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { jobIdFor } from '../../boards.ts'
import { nextConnection, nextEvent, rejectionOf } from '../../events.ts'
import { type RedisPlace, redisPlace } from './places.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** How many clients receive the changes of the board. */
async function subscribers({ observer, key }: RedisPlace, channel = key('changes')): Promise<number> {
  const [, count] = (await observer.pubsub('NUMSUB', channel)) as [string, number]
  return Number(count)
}

function statesOf(board: JobBoard): string[] {
  const states: string[] = []
  board.on('state', ({ state }) => states.push(state))
  return states
}

test('a board that is not viewed any more receives nothing, and has one connection', async () => {
  await using place = await redisPlace(server)
  await using board = await place.openUnviewed()
  const states = statesOf(board)
  const connections = async () =>
    String(await place.observer.client('LIST'))
      .split('\n')
      .filter((line) => line.includes('name=jobboard')).length
  const alone = await connections()
  expect(await subscribers(place)).toBe(0)
  for (let round = 0; round < 3; round += 1) {
    {
      using _view = await board.view()
      expect(await subscribers(place)).toBe(1)
      expect(await connections()).toBe(alone + 1)
    }
    boardInternals(board).closeUnusedView()
    await vi.waitFor(async () => expect([await subscribers(place), await connections()]).toEqual([0, alone]), 60_000)
  }
  await board.post('flow', {})
  expect(states).toEqual([])
})

test('a user without the right to unsubscribe keeps its connection', async () => {
  await using place = await redisPlace(server)
  const rights = '+@hash +@sortedset +@list +@scripting +del +exists +pexpire +time +publish +subscribe +ping +info'
  const { observer, prefix } = place
  const who = ['ACL', 'SETUSER', 'silent', 'on', '>x', 'resetkeys', 'resetchannels'] as const
  await observer.call(...who, `~{${prefix}}:*`, `&{${prefix}}:*`, '-@all', ...rights.split(' '))
  await using board = await openBoard(place.uri.replace('redis://', 'redis://silent:x@'))
  await using worker = await place.open()
  const states = statesOf(board)
  const job = await board.post('flow', {})
  const ended = job.wait()
  await board.view().then((view) => view[Symbol.dispose]())
  boardInternals(board).closeUnusedView()
  await (await worker.claim(job)).consume()
  expect(await ended).toBe('COMPLETE')
  await board.view().then((view) => view[Symbol.dispose]())
  expect(states).toEqual([])
})

test('a user without the right to subscribe keeps its connection, and posts', async () => {
  await using place = await redisPlace(server)
  const rights = '+@hash +@sortedset +@list +@scripting +del +exists +pexpire +time +publish +ping +info'
  const { observer, prefix } = place
  const who = ['ACL', 'SETUSER', 'deaf', 'on', '>x', 'resetkeys', 'resetchannels'] as const
  await observer.call(...who, `~{${prefix}}:*`, `&{${prefix}}:*`, '-@all', ...rights.split(' '))
  await using board = await openBoard(place.uri.replace('redis://', 'redis://deaf:x@'))
  const states = statesOf(board)
  const failed = nextEvent(board, 'error')
  const job = await board.post('flow', {})
  expect(job.state).toBe('UNCLAIMED')
  expect((await failed).error).toMatchObject({ code: 'JOBBOARD_ACCESS_DENIED' })
  expect(await rejectionOf(board.view())).toMatchObject({ code: 'JOBBOARD_ACCESS_DENIED' })
  await board.post('flow', {})
  expect(states).toEqual([])
})

test('a subscription that is given up while its connection is replaced is not begun again', async () => {
  await using place = await redisPlace(server)
  await using proxy = await startProxy({ port: server.port })
  await using board = await openBoard(`redis://${proxy.hosts}/0?prefix=${place.prefix}&ttl=30s`)
  const view = await board.view()
  const gone = nextEvent(board, 'state', ({ state }) => state === 'disconnected')
  proxy.mode = 'refuse'
  proxy.resetAll()
  await gone
  view[Symbol.dispose]()
  boardInternals(board).closeUnusedView()
  const back = nextConnection(board)
  proxy.mode = 'pass'
  await back
  await board.post('flow', {})
  expect(await subscribers(place)).toBe(0)
})

test('what others publish on the channel of an owner ends no wait', async () => {
  await using place = await redisPlace(server)
  await using board = await place.openUnviewed()
  await using worker = await place.open()
  const [job, other] = [await board.post('flow', {}), await board.post('flow', {})]
  const channel = `${place.key('changes')}:${await place.ownerOf(board)}`
  let hasEnded = false
  const ended = job.wait().finally(() => {
    hasEnded = true
  })
  const otherEnded = other.wait()
  await vi.waitFor(async () => expect(await place.observer.hlen(place.key('followers'))).toBe(2), 60_000)
  expect(await subscribers(place, channel)).toBe(1)
  const version = Number(await place.observer.hget(place.key('board'), 'version')) + 5
  const forged = Buffer.from(encode([version, [`D${jobIdFor(job)}`]], 'msgpack'))
  for (const message of [forged, Buffer.concat([Buffer.alloc(40, '0'), forged]), Buffer.from([0xc1]), Buffer.from('')])
    await place.observer.publish(channel, message)
  await (await worker.claim(other)).consume()
  expect(await otherEnded).toBe('COMPLETE')
  expect({ hasEnded, state: job.state }).toEqual({ hasEnded: false, state: 'UNCLAIMED' })
  await (await worker.claim(job)).consume()
  expect(await ended).toBe('COMPLETE')
  expect(await place.observer.exists(place.key('followers'))).toBe(0)
})

test('a full memory lets jobs be found by reference, and be waited for', async () => {
  await using server = await startRedis()
  await using place = await redisPlace(server)
  await using board = await place.openUnviewed()
  await using worker = await place.open()
  const job = await board.post('flow', {}, { name: 'job' })
  await using late = await place.openUnviewed()
  await place.observer.config('SET', 'maxmemory', '1')
  const found = await late.find(job.ref)
  expect(found).toMatchObject({ name: 'job', state: 'UNCLAIMED' })
  const ended = found.wait()
  await (await worker.claim(job)).consume()
  expect(await ended).toBe('COMPLETE')
})
