/** A standalone ZooKeeper for tests: on a free loopback port in about a second, gone without a trace afterwards. */
import { provide } from './install.ts'
import { freePort } from './ports.ts'
import type { ServerContainer } from './server-container.ts'
import { prepareContainer } from './zookeeper-container.ts'
import { fourLetter, type Settings, usualSettings, ZOOKEEPER, ZooKeeperProgram } from './zookeeper-program.ts'

export { ZOOKEEPER } from './zookeeper-program.ts'

export interface ZooKeeperOptions {
  /** Milliseconds; sessions are expired in steps of it. */
  readonly tickTime?: number
  readonly port?: number
  /** Kept when the server is stopped, which then is no container; a folder of its own, deleted at the end, by default. */
  readonly dataDir?: string
  /** Further lines for `zoo.cfg`. */
  readonly config?: Settings
  /** Further flags for `java`. */
  readonly java?: readonly string[]
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

/** @throws Error saying what to install when there is no way to a ZooKeeper */
export async function startZooKeeper(options: ZooKeeperOptions = {}): Promise<ZooKeeperServer> {
  const way = await provide(ZOOKEEPER, { here: options.dataDir !== undefined })
  if (way === 'skip') throw new Error('there is no ZooKeeper, and JOBBOARD_SKIP says to do without')
  const port = options.port ?? (await freePort())
  const own = { clientPort: port, clientPortAddress: '127.0.0.1' }
  const settings = { ...usualSettings(options), ...options.config, ...own }
  const { dataDir, java } = options
  const program =
    way === 'container'
      ? await prepareContainer({ port, settings, java })
      : await ZooKeeperProgram.prepare({ port, settings, dataDir, java })
  await program.start()
  return serverOf(program)
}

/** A program, or a container, as a server for tests. */
export function serverOf(program: ZooKeeperProgram | (ServerContainer & { readonly port: number })): ZooKeeperServer {
  const stop = () => program.stop()
  return {
    hosts: `127.0.0.1:${program.port}`,
    port: program.port,
    get pid() {
      return program.pid
    },
    stop,
    kill: () => program.kill(),
    pause: () => program.pause(),
    resume: () => program.resume(),
    restart: () => program.restart(),
    fourLetter: (command) => fourLetter(program.port, command),
    [Symbol.asyncDispose]: stop,
  }
}
