import { afterAll, beforeAll } from 'vitest'
import { boardContract } from '../../../contract/board.ts'
import { type RedisServer, startRedis } from '../../../support/redis.ts'
import { redisBoards } from './places.ts'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.stop())

boardContract(redisBoards(() => server))
