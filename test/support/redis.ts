/** A Redis for tests: on a free loopback port in a moment, gone without a trace afterwards. */
import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Provision, provide, which } from './install.ts'
import { freePort } from './ports.ts'
import { type Server, ServerProgram } from './server-program.ts'

export const REDIS: Provision = {
  name: 'redis',
  packages: ['redis-server'],
  installed: async () => (await which(PROGRAM)) !== undefined,
}

const PROGRAM = 'redis-server'
const PATIENCE = 2_000

export interface RedisOptions {
  readonly port?: number
  /** Further settings, as in `redis.conf`. */
  readonly config?: Readonly<Record<string, string>>
}

export interface RedisServer extends Server {
  /** `redis://127.0.0.1:PORT` */
  readonly uri: string
  /** SIGSTOP */
  pause(): void
  /** SIGCONT */
  resume(): void
}

/**
 * It keeps nothing on disk, as in Redis' own defaults but for the snapshots: `kill` loses everything, unless `config`
 * says otherwise (`{ appendonly: 'yes', appendfsync: 'always' }`).
 *
 * @throws Error saying what to install when there is no Redis
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  if ((await provide(REDIS, { here: true })) === 'skip') {
    throw new Error('there is no Redis, and JOBBOARD_SKIP says to do without')
  }
  const port = options.port ?? (await freePort())
  const version = await programVersion()
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-redis-'))
  const settings = { bind: '127.0.0.1', port: String(port), dir: folder, save: '', ...options.config }
  const flags = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, value])
  const ready = async () => (await ping(port)) === '+PONG'
  const program = new ServerProgram({ name: 'Redis', command: [PROGRAM, ...flags], folder, ready })
  await program.start()
  const stop = () => program.stop()
  return {
    uri: `redis://127.0.0.1:${port}`,
    port,
    version,
    get pid() {
      return program.pid
    },
    stop,
    kill: () => program.kill(),
    restart: () => program.restart(),
    pause: () => program.signal('SIGSTOP'),
    resume: () => program.signal('SIGCONT'),
    [Symbol.asyncDispose]: stop,
  }
}

async function programVersion(): Promise<string> {
  const { stdout } = await promisify(execFile)(PROGRAM, ['--version'])
  return /v=(\S+)/.exec(stdout)?.[1] ?? stdout.trim()
}

/** What it answers on a connection of its own; nothing when it does not. */
function ping(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: PATIENCE }, () => socket.write('PING\r\n'))
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
