/** A Redis for tests: on a free loopback port in a moment, gone without a trace afterwards. */
import { mkdtemp } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Provision, provide, which } from './install.ts'
import { freePort } from './ports.ts'
import { type ContainerDefinition, ServerContainer } from './server-container.ts'
import { type Server, ServerProgram } from './server-program.ts'
import { contentsOf } from './settings-files.ts'

export const REDIS: Provision = {
  name: 'redis',
  packages: ['redis-server'],
  installed: async () => (await which(PROGRAM)) !== undefined,
}

const PROGRAM = 'redis-server'
export const REDIS_IMAGE = 'redis:7'
/** Where the image keeps its data. */
export const REDIS_FOLDER = '/data'
const TIMEOUT_MS = 2_000

export interface RedisOptions {
  readonly port?: number
  /** Further settings, as in `redis.conf`. */
  readonly config?: Readonly<Record<string, string>>
}

export interface RedisServer extends Server {
  /** `redis://127.0.0.1:PORT` */
  readonly uri: string
  /** SIGSTOP */
  pause(): Promise<void>
  /** SIGCONT */
  resume(): Promise<void>
}

/**
 * It keeps nothing on disk, as in Redis' own defaults but for the snapshots: `kill` loses everything, unless `config`
 * says otherwise (`{ appendonly: 'yes', appendfsync: 'always' }`).
 *
 * @throws Error saying what to install when there is no Redis
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const way = await provide(REDIS)
  if (way === 'skip') throw new Error('there is no Redis, and JOBBOARD_SKIP says to do without')
  const port = options.port ?? (await freePort())
  const { config = {} } = options
  const ready = async () => (await ask(port, 'PING')) === '+PONG'
  const program =
    way === 'container'
      ? new ServerContainer({ definition: redisContainer(port, config, await contentsOf(config)), ready })
      : await programOn(port, { config, ready })
  await program.start()
  const stop = () => program.stop()
  return {
    uri: `redis://127.0.0.1:${port}`,
    port,
    version: await versionOf(port),
    get pid() {
      return program.pid
    },
    stop,
    kill: () => program.kill(),
    restart: () => program.restart(),
    pause: () => program.pause(),
    resume: () => program.resume(),
    [Symbol.asyncDispose]: stop,
  }
}

/** @param files contents by path, of what the settings name */
export function redisContainer(
  port: number,
  config: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>>,
): ContainerDefinition {
  const command = [PROGRAM, ...flagsOf({ port, folder: REDIS_FOLDER, config })]
  return { name: 'Redis', image: REDIS_IMAGE, command, files }
}

async function programOn(
  port: number,
  { config, ready }: { config: Readonly<Record<string, string>>; ready: () => Promise<boolean> },
): Promise<ServerProgram> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-redis-'))
  return new ServerProgram({ name: 'Redis', command: [PROGRAM, ...flagsOf({ port, folder, config })], folder, ready })
}

function flagsOf(options: { port: number; folder: string; config: Readonly<Record<string, string>> }): string[] {
  const { port, folder, config } = options
  const settings = { bind: '127.0.0.1', port: String(port), dir: folder, save: '', ...config }
  return Object.entries(settings).flatMap(([key, value]) => [`--${key}`, value])
}

async function versionOf(port: number): Promise<string> {
  return /redis_version:(\S+)/.exec(await ask(port, 'INFO server'))?.[1] ?? 'of unknown version'
}

/** Resolves to what it answers on a connection of its own, to a command that is answered in one piece; empty when it does not. */
function ask(port: number, command: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: TIMEOUT_MS }, () => socket.write(`${command}\r\n`))
    socket.setEncoding('utf8')
    socket.on('data', (answer: string) => {
      resolve(answer.trim())
      socket.destroy()
    })
    socket.on('timeout', () => socket.destroy())
    socket.on('error', () => socket.destroy())
    socket.on('close', () => resolve(''))
  })
}
