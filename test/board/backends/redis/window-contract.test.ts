import { afterAll, beforeAll } from 'vitest'
import { boardContract, WINDOW_PARTS } from '../../../contract/board.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { redisBoards } from './places.ts'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.stop())

/** So small that every job but a few is outside. */
boardContract(
  redisBoards(() => server, { window: 3 }),
  { variant: WINDOW_PARTS, opened: ['as used'] },
)
