/** A conductor in a process of its own, started with `jobboard conductor`, that cannot outlive the demo. */
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createDeferred, rejectOnAbort } from '../../../core/async/abort.ts'
import { JobboardError } from '../../../core/errors.ts'
import { sleep } from '../../../core/time.ts'
import type { CliContext } from '../../context.ts'
import { GuardedProgram } from '../guarded-program.ts'
import { parseLine, type TaskLine } from './script.ts'

const CLI_MAIN_PATH = fileURLToPath(new URL('../../main.js', import.meta.url))
const DEMO_FLOW_PATH = fileURLToPath(new URL('flow.js', import.meta.url))

/**
 * The flags of a conductor: one job at a time, so that a death leaves exactly one; running jobs are given back on a
 * stop.
 */
const CONDUCTOR_FLAGS = ['--concurrency', '1', '--drain-timeout', '0s', '--abort-timeout', '1s', '--log-level', 'error']

/** The time to give a job back and to leave the board. */
const STOP_TIMEOUT_MS = 5_000

export interface ConductorProcessOptions {
  /** The name for people. */
  readonly shown: string
  /** The name on the board. */
  readonly name: string
  /** The folder of the demo, deleted if the demo ends first. */
  readonly folder: string
  /** The environment with board, logbooks and everything else: others could read a command line. */
  readonly env: CliContext['env']
  readonly cwd: string
  readonly onLine: (line: TaskLine) => void
}

export class ConductorProcess implements AsyncDisposable {
  readonly #options: ConductorProcessOptions
  readonly #program: GuardedProgram
  readonly #ready = createDeferred()
  #claims = false

  constructor(options: ConductorProcessOptions) {
    const { shown, name, folder, env, cwd } = options
    this.#options = options
    this.#program = new GuardedProgram({
      command: [
        process.execPath,
        CLI_MAIN_PATH,
        'conductor',
        '--flows',
        DEMO_FLOW_PATH,
        '--name',
        name,
        ...CONDUCTOR_FLAGS,
      ],
      ...{ folder, env, cwd, readsStdout: true },
      log: join(folder, `${shown}.log`),
    })
  }

  get shown(): string {
    return this.#options.shown
  }

  /**
   * Resolves when the conductor claims.
   *
   * @throws JobboardError with its last output if it ends instead; the signal's reason
   */
  async start(signal: AbortSignal): Promise<void> {
    await this.#program.start()
    const { stdout } = this.#program
    if (stdout) createInterface(stdout).on('line', (line) => this.#handleLine(line))
    await rejectOnAbort(Promise.race([this.#ready.promise, this.failed()]), signal)
    this.#claims = true
  }

  /** Rejects when the conductor has ended. @throws JobboardError with its last output */
  async failed(): Promise<never> {
    await this.#program.ended
    const said = (await this.#program.lastOutput()).replace(/^jobboard: /, '')
    throw new JobboardError(`conductor ${this.shown} has ended: ${said}`)
  }

  /** Kills the conductor with SIGKILL, which it cannot handle. */
  async kill(): Promise<void> {
    this.#program.signal('KILL')
    await this.#program.ended
  }

  /**
   * Stops the conductor with SIGTERM, so that it leaves the board in order; kills it if that takes too long or it does
   * not listen yet.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    const soon = new AbortController()
    if (this.#claims) {
      this.#program.signal('TERM')
      await Promise.race([this.#program.ended, sleep(STOP_TIMEOUT_MS, soon).catch(() => undefined)])
    }
    soon.abort()
    await this.#program[Symbol.asyncDispose]()
  }

  #handleLine(text: string): void {
    const line = parseLine(text)
    if (line) this.#options.onLine(line)
    else if (text.startsWith('conductor ')) this.#ready.resolve()
  }
}
