/** A Redis with a replica and a sentinel that watches over them, for tests of fail-over. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from './ports.ts'
import { type RedisServer, startRedis } from './redis.ts'
import { ServerProgram } from './server-program.ts'

export interface WatchedRedis extends AsyncDisposable {
  /** `127.0.0.1:PORT`, of the sentinel. */
  readonly sentinel: string
  /** What the sentinel calls the master. */
  readonly name: string
  /** Makes the replica master, as a sentinel does that has lost sight of the master, once it has all that was written. */
  failOver(): Promise<void>
  readonly master: RedisServer
}

export async function startWatchedRedis(): Promise<WatchedRedis> {
  const [master, replica] = await Promise.all([startRedis(), startRedis()])
  const follower = new Redis(replica.uri)
  await follower.call('REPLICAOF', '127.0.0.1', String(master.port))
  while (!(await follower.info('replication')).includes('master_link_status:up')) await follower.ping()
  follower.disconnect()
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-sentinel-'))
  const config = join(folder, 'sentinel.conf')
  const name = 'boards'
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor ${name} 127.0.0.1 ${master.port} 1`,
  ]
  // Far more than a busy machine stalls: a second fail-over, on the sentinel's own account, may make master who is still
  // being sent the data, and then the data are gone.
  await writeFile(config, [...lines, `sentinel down-after-milliseconds ${name} 60000`, ''].join('\n'))
  const redis = new Redis({ port, lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => undefined)
  // Until it knows of the replica there is nobody to make master.
  const ready = async () => {
    await redis.connect().catch(() => undefined)
    const known = await redis.call('SENTINEL', 'REPLICAS', name).catch(() => [])
    return Array.isArray(known) && known.length === 1 && String(known[0]).includes('master-link-status,ok')
  }
  const program = new ServerProgram({
    name: 'Redis Sentinel',
    command: ['redis-server', config, '--sentinel'],
    folder,
    ready,
  })
  await program.start()
  return {
    sentinel: `127.0.0.1:${port}`,
    name,
    master,
    failOver: async () => {
      const writer = new Redis(master.uri)
      await writer.set('test:written-before-the-fail-over', 1)
      await writer.wait(1, 0)
      writer.disconnect()
      await redis.call('SENTINEL', 'FAILOVER', name)
    },
    [Symbol.asyncDispose]: async () => {
      redis.disconnect()
      await Promise.all([program.stop(), master.stop(), replica.stop()])
    },
  }
}
