/** A conductor as anybody would start it, `jobboard conductor`, in a process of its own that cannot outlive the demo. */
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

/** One job at a time, so that it is plain which one a death leaves behind. What runs is given back when it is stopped. */
const CONDUCTOR_FLAGS = ['--concurrency', '1', '--drain-timeout', '0s', '--abort-timeout', '1s', '--log-level', 'error']

/** In milliseconds: to give a job back and to leave the board. */
const STOP_TIMEOUT_MS = 5_000

export interface ConductorProcessOptions {
  /** For people. */
  readonly shown: string
  /** On the board. */
  readonly name: string
  /** Deleted where the demo is gone first. */
  readonly folder: string
  /** Board, logbooks and everything else: others could read a command line. */
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

  /** Resolves when it claims. @throws JobboardError with what it said, when it ends instead; the signal's reason */
  async start(signal: AbortSignal): Promise<void> {
    await this.#program.start()
    const { stdout } = this.#program
    if (stdout) createInterface(stdout).on('line', (line) => this.#handleLine(line))
    await rejectOnAbort(Promise.race([this.#ready.promise, this.failed()]), signal)
    this.#claims = true
  }

  /** Rejects when it has ended. @throws JobboardError with what it said */
  async failed(): Promise<never> {
    await this.#program.ended
    const said = (await this.#program.lastOutput()).replace(/^jobboard: /, '')
    throw new JobboardError(`conductor ${this.shown} has ended: ${said}`)
  }

  /** By SIGKILL: it can do nothing about it. */
  async kill(): Promise<void> {
    this.#program.signal('KILL')
    await this.#program.ended
  }

  /** By SIGTERM, so that it leaves the board in order; one that takes too long, or does not listen yet, is killed. */
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
