/** A ZooKeeper server that runs as a program on this machine: written down in a folder, started, killed, brought back. */
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ROOT } from './build.ts'
import { type GuardedProcess, startGuarded } from './guarded-process.ts'
import { exists, type Provision, which } from './install.ts'
import { freePort } from './ports.ts'

export type Settings = Readonly<Record<string, string | number | boolean>>

export const ZOOKEEPER: Provision = {
  name: 'zookeeper',
  packages: ['zookeeper', 'default-jre-headless'],
  installed: async () => (await exists(JAR)) && (await which('java')) !== undefined,
}

const JAR = '/usr/share/java/zookeeper.jar'
/** Needed for TLS, and missing from what the jar itself says it needs. */
const NETTY = ['codec', 'resolver'].map((part) => `/usr/share/java/netty-${part}.jar`)
/** Comes with the server's package. Without a logger, a server that cannot start writes no reason. */
const LOGGER = '/usr/share/java/slf4j-simple.jar'
const LOGGER_FLAG = '-Dorg.slf4j.simpleLogger.defaultLogLevel=error'
/** Without folders: Java archives no classes where the path has one. */
const CLASS_PATH = [JAR, ...NETTY, LOGGER].join(':')
/** For a small heap, and a start in a second. */
export const JAVA_FLAGS: readonly string[] = ['-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC']
/** What Java keeps of the classes that a server loads, so that the next one need not read and check them. */
const CLASS_ARCHIVE = join(ROOT, '.test/zookeeper.jsa')
const READY_WITHIN = 30_000
const POLL = 25

/** What every server of the tests is configured with. */
export function usualSettings({ tickTime = 500 }: { readonly tickTime?: number | undefined }): Settings {
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
  }
}

/** The lines of a `zoo.cfg`. */
export function configFile(settings: Settings): string {
  return Object.entries(settings)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('')
}

export interface ProgramOptions {
  /** Where it answers the four-letter words. */
  readonly port: number
  readonly settings: Settings
  /** Kept at the end; a folder of its own, deleted at the end, by default. */
  readonly dataDir?: string | undefined
  /** Further flags for `java`. */
  readonly java?: readonly string[] | undefined
  /** Its number in an ensemble. */
  readonly id?: number
}

export class ZooKeeperProgram {
  readonly port: number
  readonly #folder: string
  readonly #java: readonly string[]
  #process: GuardedProcess | undefined

  private constructor(folder: string, options: ProgramOptions) {
    this.port = options.port
    this.#folder = folder
    this.#java = options.java ?? []
  }

  /** Writes its files; it does not run yet. */
  static async prepare(options: ProgramOptions): Promise<ZooKeeperProgram> {
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-zookeeper-'))
    const dataDir = options.dataDir ?? join(folder, 'data')
    await mkdir(dataDir, { recursive: true })
    if (options.id !== undefined) await writeFile(join(dataDir, 'myid'), String(options.id))
    await writeFile(join(folder, 'zoo.cfg'), configFile({ ...options.settings, dataDir }))
    return new ZooKeeperProgram(folder, options)
  }

  get pid(): number {
    return this.#process?.pid ?? 0
  }

  get running(): boolean {
    return this.#process?.running ?? false
  }

  /**
   * Starts it and waits until it serves; in an ensemble that is when enough of the others do.
   *
   * @throws Error with what it said when it ends, or does not serve in half a minute
   */
  async start(): Promise<void> {
    const logFile = join(this.#folder, 'log')
    const archive = (await exists(CLASS_ARCHIVE)) ? [`-XX:SharedArchiveFile=${CLASS_ARCHIVE}`, '-Xshare:auto'] : []
    const flags = [...JAVA_FLAGS, LOGGER_FLAG, ...archive, ...this.#java]
    const main = ['org.apache.zookeeper.server.quorum.QuorumPeerMain', join(this.#folder, 'zoo.cfg')]
    this.#process = await startGuarded(['java', ...flags, '-cp', CLASS_PATH, ...main], { logFile })
    try {
      await untilReady(this.port, { running: () => this.running })
    } catch (error) {
      await this.kill()
      const log = await readFile(logFile, 'utf8').catch(() => '')
      const said = log.trim() || 'it said nothing'
      throw new Error(`ZooKeeper did not start on port ${this.port}: ${said}`, { cause: error })
    }
  }

  async kill(): Promise<void> {
    this.#process?.signal('SIGKILL')
    await this.#process?.ended
  }

  /** Ends it as an administrator would. */
  async end(): Promise<void> {
    this.#process?.signal('SIGTERM')
    await this.#process?.ended
  }

  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  async pause(): Promise<void> {
    this.#process?.signal('SIGSTOP')
  }

  async resume(): Promise<void> {
    this.#process?.signal('SIGCONT')
  }

  /** Kills it and deletes what it wrote. */
  async stop(): Promise<void> {
    await this.kill()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Makes the archive of classes if there is none. Java before 13 cannot, and servers then start without. */
export async function archiveClasses(): Promise<void> {
  if (await exists(CLASS_ARCHIVE)) return
  const port = await freePort()
  const settings = { ...usualSettings({}), clientPort: port, clientPortAddress: '127.0.0.1' }
  const draft = `${CLASS_ARCHIVE}-${process.pid}`
  await mkdir(dirname(CLASS_ARCHIVE), { recursive: true })
  const program = await ZooKeeperProgram.prepare({ port, settings, java: [`-XX:ArchiveClassesAtExit=${draft}`] })
  try {
    await program.start()
    await program.end()
    await rename(draft, CLASS_ARCHIVE)
  } catch {
    await rm(draft, { force: true })
  } finally {
    await program.stop()
  }
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
