/** A standalone ZooKeeper for tests: on a free loopback port in about a second, gone without a trace afterwards. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type GuardedProcess, startGuarded } from './guarded-process.ts'
import { exists, type Provision, provide, which } from './install.ts'
import { freePort } from './ports.ts'

export interface ZooKeeperOptions {
  /** Milliseconds; sessions are expired in steps of it. */
  readonly tickTime?: number
  readonly port?: number
  /** Kept when the server is stopped; a folder of its own, deleted at the end, by default. */
  readonly dataDir?: string
  /** Further lines for `zoo.cfg`. */
  readonly config?: Readonly<Record<string, string | number | boolean>>
}

export interface ZooKeeperServer extends AsyncDisposable {
  /** `127.0.0.1:PORT` */
  readonly hosts: string
  readonly port: number
  /** Of the server's process; 0 in a container. */
  readonly pid: number
  /** Ends it for good and deletes what it wrote. */
  stop(): Promise<void>
  /** SIGKILL; `restart` brings it back. */
  kill(): Promise<void>
  /** SIGSTOP */
  pause(): Promise<void>
  /** SIGCONT */
  resume(): Promise<void>
  /** The same port, the same data. Kills it first if it runs. */
  restart(): Promise<void>
  /** `srvr`, `mntr`, `cons`, … */
  fourLetter(command: string): Promise<string>
}

export const ZOOKEEPER: Provision = {
  name: 'zookeeper',
  packages: ['zookeeper', 'default-jre-headless'],
  installed: async () => (await exists(JAR)) && (await which('java')) !== undefined,
}

const JAR = '/usr/share/java/zookeeper.jar'
const READY_WITHIN = 30_000
const POLL = 25

/** @throws Error saying what to install when there is no way to a ZooKeeper */
export async function startZooKeeper(options: ZooKeeperOptions = {}): Promise<ZooKeeperServer> {
  const way = await provide(ZOOKEEPER)
  if (way === 'skip') throw new Error('there is no ZooKeeper, and JOBBOARD_SKIP says to do without')
  const port = options.port ?? (await freePort())
  if (way === 'container') {
    const { startContainer } = await import('./zookeeper-container.ts')
    return startContainer(port, settings(options))
  }
  return startProgram(port, options)
}

async function startProgram(port: number, options: ZooKeeperOptions): Promise<ZooKeeperServer> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-zookeeper-'))
  const dataDir = options.dataDir ?? join(folder, 'data')
  await mkdir(dataDir, { recursive: true })
  const config = { ...settings(options), dataDir, clientPort: port, clientPortAddress: '127.0.0.1' }
  const lines = Object.entries(config).map(([key, value]) => `${key}=${value}\n`)
  await writeFile(join(folder, 'zoo.cfg'), lines.join(''))
  let server = await launch(folder, port)

  const kill = async () => {
    server.signal('SIGKILL')
    await server.ended
  }
  const stop = async () => {
    await kill()
    await rm(folder, { recursive: true, force: true })
  }
  return {
    hosts: `127.0.0.1:${port}`,
    port,
    get pid() {
      return server.pid
    },
    stop,
    kill,
    pause: async () => server.signal('SIGSTOP'),
    resume: async () => server.signal('SIGCONT'),
    restart: async () => {
      await kill()
      server = await launch(folder, port)
    },
    fourLetter: (command) => fourLetter(port, command),
    [Symbol.asyncDispose]: stop,
  }
}

function settings({ tickTime = 500, config = {} }: ZooKeeperOptions): Record<string, string | number | boolean> {
  return {
    tickTime,
    minSessionTimeout: 1_000,
    maxSessionTimeout: 60_000,
    maxClientCnxns: 0,
    'admin.enableServer': false,
    '4lw.commands.whitelist': '*',
    extendedTypesEnabled: true,
    // Tests lose no data to a power cut; without this every write waits for the disk.
    forceSync: 'no',
    preAllocSize: 1_024,
    ...config,
  }
}

async function launch(folder: string, port: number): Promise<GuardedProcess> {
  const logFile = join(folder, 'log')
  const java = ['java', '-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', `${folder}:${JAR}`]
  const main = ['org.apache.zookeeper.server.quorum.QuorumPeerMain', join(folder, 'zoo.cfg')]
  const server = await startGuarded([...java, ...main], { logFile })
  try {
    await untilReady(port, { running: () => server.running })
  } catch (error) {
    server.signal('SIGKILL')
    const log = await readFile(logFile, 'utf8').catch(() => '')
    throw new Error(`ZooKeeper did not start on port ${port}: ${log.trim() || 'it said nothing'}`, { cause: error })
  }
  return server
}

export async function untilReady(port: number, options: { running: () => boolean }): Promise<void> {
  const deadline = performance.now() + READY_WITHIN
  while (performance.now() < deadline) {
    const answer = await fourLetter(port, 'srvr').catch(() => '')
    if (answer.includes('Mode:')) return
    if (!options.running()) throw new Error('the process ended')
    await sleep(POLL)
  }
  throw new Error(`no answer within ${READY_WITHIN} ms`)
}

/** Sends one of the four-letter commands on a connection of its own. */
export function fourLetter(port: number, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect({ host: '127.0.0.1', port, timeout: 2_000 }, () => socket.write(command))
    socket.setEncoding('utf8')
    socket.on('data', (text) => {
      answer += text
    })
    socket.on('timeout', () => socket.destroy(new Error(`${command}: no answer`)))
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}
