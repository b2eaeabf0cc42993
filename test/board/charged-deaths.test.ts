/** Jobs pay for owners that die, and not for stores that are away: with real servers and real processes. */
import { afterAll, beforeAll, expect } from 'vitest'
import { startNode } from '../support/node-process.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { usual as test, variant } from '../variant.ts'
import { redisPlace } from './backends/redis/places.ts'
import { nextSession, whenLost } from './events.ts'
import { claimed } from './jobs.ts'

const CLAIMER = new URL('./stopped-claimer.ts', import.meta.url)

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.stop())

test('a Redis that was away for longer than the sessions last costs the job nothing', async () => {
  await using place = await redisPlace(server)
  await using board = await place.openAt(`127.0.0.1:${server.port}`, { parameters: '&ttl=3s' })
  await board.post('flow', {})
  const [claim] = await board.claimNext()
  const [lost, back] = [whenLost(claim), nextSession(board)]
  await server.pause()
  await lost
  await server.resume()
  await back
  const [again] = await board.claimNext()
  expect(again.job.attempts.map(({ ended }) => ended)).toEqual(['returned', undefined])
})

variant('a process that was killed has died, also where another was started under its name', async () => {
  await using place = await redisPlace(server)
  await using nextOwner = await place.openAt(`127.0.0.1:${server.port}`, { who: 'next-owner', parameters: '&ttl=2s' })
  await nextOwner.post('flow', {}, { name: 'first' })
  await using killed = await startNode(CLAIMER, [`${place.uri}&ttl=2s`])
  await killed.says('claimed')
  killed.signal('SIGKILL')
  await killed.ended
  // One of the same name lives, and has shown that it does, before the job is claimed again.
  await using namesake = await place.openAt(`127.0.0.1:${server.port}`, { who: 'stopped', parameters: '&ttl=2s' })
  await namesake.post('flow', {}, { name: 'second' })
  await claimed(namesake, 'second')
  const taken = await claimed(nextOwner, 'first')
  expect(taken.job.attempts).toEqual([
    { who: 'stopped', at: expect.any(Date) },
    { who: 'next-owner', at: expect.any(Date) },
  ])
})
