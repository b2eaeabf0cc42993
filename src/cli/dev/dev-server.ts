/** A ZooKeeper in a folder of its own; both are removed when this process ends, also when it is killed. */

import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { InvalidArgument, JobboardError } from '../../core/errors.ts'
import { monotonic, sleep } from '../../core/time.ts'
import type { CliContext } from '../context.ts'
import { askServers } from '../doctor/four-letter.ts'
import { GuardedProgram, temporaryFolder } from './guarded-program.ts'
import type { ServerPlacement, ServerRecipe } from './servers.ts'

/** The time limit for the start: a container's image may have to be fetched first. */
const READY_TIMEOUT_MS = 120_000
const POLL_PERIOD_MS = 50

export interface DevServerOptions {
  readonly recipe: ServerRecipe
  readonly port: number
  readonly env: CliContext['env']
}

export class DevServer implements AsyncDisposable {
  readonly #options: DevServerOptions
  #folder: string | undefined
  #program: GuardedProgram | undefined

  constructor(options: DevServerOptions) {
    this.#options = options
  }

  /** Resolves when the server has ended. */
  get ended(): Promise<void> {
    return this.#program?.ended ?? Promise.resolve()
  }

  /**
   * Resolves when the server answers.
   *
   * @throws JobboardError with its last output if it does not start; the signal's reason
   */
  async start(signal: AbortSignal): Promise<void> {
    const { recipe, port, env } = this.#options
    const folder = await temporaryFolder('jobboard-dev-')
    this.#folder = folder
    const place = { folder, port }
    await mkdir(join(folder, 'data'))
    await writeFile(join(folder, 'zoo.cfg'), toServerConfig(recipe, place))
    const cleanUpCommand = recipe.cleanUpCommand?.(place) ?? []
    const program = new GuardedProgram({
      ...{ command: recipe.command(place), env, folder, cleanUpCommand },
      log: join(folder, 'log'),
    })
    this.#program = program
    await program.start()
    await this.#waitUntilReady(signal)
  }

  /** Returns the last line of the server's output, which usually has the cause. */
  async lastOutput(): Promise<string> {
    return (await this.#program?.lastOutput()) ?? 'it printed nothing'
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program?.[Symbol.asyncDispose]()
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true })
  }

  async #waitUntilReady(signal: AbortSignal): Promise<void> {
    let gone = false
    const over = this.ended.then(() => {
      gone = true
    })
    const until = monotonic() + READY_TIMEOUT_MS
    while (!gone && monotonic() < until) {
      const [answer] = await askServers([{ host: '127.0.0.1', port: this.#options.port }])
      if (answer?.mode !== undefined) return
      await Promise.race([sleep(POLL_PERIOD_MS, { signal }), over])
    }
    throw new JobboardError(`ZooKeeper did not start on port ${this.#options.port}: ${await this.lastOutput()}`)
  }
}

/**
 * Returns the configuration for one developer: without forced flushes the data are lost with the power, and they are
 * temporary anyway.
 */
function toServerConfig({ word }: ServerRecipe, { folder, port }: ServerPlacement): string {
  const settings = {
    tickTime: 1_000,
    dataDir: word === 'docker' ? '/data' : join(folder, 'data'),
    clientPort: port,
    ...(word === 'docker' ? {} : { clientPortAddress: '127.0.0.1' }),
    'admin.enableServer': false,
    '4lw.commands.whitelist': 'srvr,ruok',
    extendedTypesEnabled: true,
    maxClientCnxns: 0,
    forceSync: 'no',
  }
  return Object.entries(settings)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('')
}

/** ZooKeeper's default port, used in the examples. */
const DEFAULT_PORT = 2181

/**
 * Returns a port that is free.
 *
 * @param wanted by default the usual one, or any free one if that is in use
 * @throws InvalidArgument if the wanted port is in use
 */
export async function freePort(wanted?: number): Promise<number> {
  return wanted === undefined ? tryPort(DEFAULT_PORT).catch(() => tryPort(0)) : tryPort(wanted)
}

async function tryPort(wanted: number): Promise<number> {
  const server = createServer().listen(wanted, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (cause) {
    const code = String((cause as { code?: unknown }).code)
    const why = code === 'EADDRINUSE' ? 'the port is in use' : code
    throw new InvalidArgument(`--port ${wanted}: ${why}; give another, or none`, { cause })
  }
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
