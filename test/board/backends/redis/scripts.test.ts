import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { SCRIPTS } from '../../../../src/board/backends/redis/store/scripts.ts'
import { startRedis } from '../../../support/redis.ts'

test('Redis compiles every script, under the hash by which it is called', async () => {
  await using server = await startRedis()
  const redis = new Redis({ port: server.port })
  try {
    for (const [name, script] of Object.entries(SCRIPTS)) {
      const { lua, sha } = script.load()
      expect(await redis.script('LOAD', lua), name).toBe(sha)
    }
  } finally {
    redis.disconnect()
  }
})
