/** A Redis with a replica and a sentinel that watches over them, for tests of fail-over. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { provide } from './install.ts'
import { freePort } from './ports.ts'
import { REDIS, REDIS_FOLDER, REDIS_IMAGE, type RedisServer, startRedis } from './redis.ts'
import { type ContainerDefinition, ServerContainer } from './server-container.ts'
import { ServerProgram } from './server-program.ts'

/** What the sentinel calls the master. */
const NAME = 'boards'

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
  const watched = { port, master: master.port }
  const redis = new Redis({ port, lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => undefined)
  // Until it knows of the replica there is nobody to make master.
  const ready = async () => {
    await redis.connect().catch(() => undefined)
    const known = await redis.call('SENTINEL', 'REPLICAS', NAME).catch(() => [])
    return Array.isArray(known) && known.length === 1 && String(known[0]).includes('master-link-status,ok')
  }
  const inContainer = (await provide(REDIS)) === 'container'
  const program = inContainer
    ? new ServerContainer({ definition: sentinelContainer(watched), ready })
    : await sentinelProgram(watched, ready)
  await program.start()
  // The former master takes writes, which are lost, until it is told that it is a replica: usually for ten seconds after the fail-over, in which
  // boards sweep. By the second period the sentinel tells it after 0.4 s, by the first one it sees sooner who is master.
  for (const period of ['info-period', 'publish-period'])
    await redis.call('SENTINEL', 'DEBUG', period, '100').catch(() => undefined)
  return {
    sentinel: `127.0.0.1:${port}`,
    name: NAME,
    master,
    failOver: async () => {
      const writer = new Redis(master.uri)
      await writer.set('test:written-before-the-fail-over', 1)
      await writer.wait(1, 0)
      writer.disconnect()
      await redis.call('SENTINEL', 'FAILOVER', NAME)
    },
    [Symbol.asyncDispose]: async () => {
      redis.disconnect()
      await Promise.all([program.stop(), master.stop(), replica.stop()])
    },
  }
}

interface Watched {
  /** The sentinel's own. */
  readonly port: number
  /** The master's. */
  readonly master: number
}

export function sentinelContainer(watched: Watched): ContainerDefinition {
  const config = `${REDIS_FOLDER}/sentinel.conf`
  return {
    name: 'Redis Sentinel',
    image: REDIS_IMAGE,
    command: commandOf(config),
    files: { [config]: configFile(REDIS_FOLDER, watched) },
  }
}

async function sentinelProgram(watched: Watched, ready: () => Promise<boolean>): Promise<ServerProgram> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-sentinel-'))
  const config = join(folder, 'sentinel.conf')
  await writeFile(config, configFile(folder, watched))
  return new ServerProgram({ name: 'Redis Sentinel', command: commandOf(config), folder, ready })
}

const commandOf = (config: string) => ['redis-server', config, '--sentinel']

function configFile(folder: string, { port, master }: Watched): string {
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${master} 1`,
    // Far more than a busy machine stalls: a second fail-over, on the sentinel's own account, may make master who is still
    // being sent the data, and then the data are gone.
    `sentinel down-after-milliseconds ${NAME} 60000`,
  ]
  return lines.map((line) => `${line}\n`).join('')
}
