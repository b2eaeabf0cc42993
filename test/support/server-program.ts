/** A server that runs as a program on this machine, with a folder of its own: started, crashed, brought back, cleared away. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type GuardedProcess, startGuarded } from './guarded-process.ts'

/** What every server of the tests can do. */
export interface Server extends AsyncDisposable {
  readonly port: number
  /** Of the server's process; 0 in a container. */
  readonly pid: number
  /** What it says of itself, for reports: `7.0.15` */
  readonly version: string
  /** Ends it for good and deletes what it wrote. */
  stop(): Promise<void>
  /** Ends it as a crash would; `restart` brings it back. */
  kill(): Promise<void>
  /** The same port, the same data. Kills it first if it runs. */
  restart(): Promise<void>
}

export interface ServerProgramOptions {
  /** For messages. */
  readonly name: string
  readonly command: readonly string[]
  /** Deleted at the end. */
  readonly folder: string
  /** Whether it serves by now. */
  readonly ready: () => Promise<boolean>
  /** What ends it at once without anything left behind; SIGKILL by default. */
  readonly lastSignal?: NodeJS.Signals
}

const READY_WITHIN = 30_000
const POLL = 25

export class ServerProgram {
  readonly #options: ServerProgramOptions
  #process: GuardedProcess | undefined

  constructor(options: ServerProgramOptions) {
    this.#options = options
  }

  get pid(): number {
    return this.#process?.pid ?? 0
  }

  /**
   * Starts it and waits until it serves.
   *
   * @throws Error with what it said when it ends, or does not serve in half a minute; its folder is gone then
   */
  async start(): Promise<void> {
    const { name, command, folder, lastSignal = 'SIGKILL' } = this.#options
    const logFile = join(folder, 'log')
    this.#process = await startGuarded(command, { logFile, folder, lastSignal })
    try {
      await this.#untilReady()
    } catch (error) {
      const log = await readFile(logFile, 'utf8').catch(() => '')
      await this.stop()
      throw new Error(`${name} did not start: ${log.trim() || 'it said nothing'}`, { cause: error })
    }
  }

  async kill(): Promise<void> {
    this.#process?.signal(this.#options.lastSignal ?? 'SIGKILL')
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

  async stop(): Promise<void> {
    await this.kill()
    await rm(this.#options.folder, { recursive: true, force: true })
  }

  async #untilReady(): Promise<void> {
    const deadline = performance.now() + READY_WITHIN
    while (performance.now() < deadline) {
      if (await this.#options.ready()) return
      if (!this.#process?.running) throw new Error('the process ended')
      await sleep(POLL)
    }
    throw new Error(`no answer within ${READY_WITHIN} ms`)
  }
}
