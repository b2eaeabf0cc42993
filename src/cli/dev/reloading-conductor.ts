/** A conductor in a process of its own, which is started anew whenever code, JSON, YAML or SQL of its flows changes. */
import { type FSWatcher, watch } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withinTime } from '../../core/time.ts'
import type { CliContext } from '../context.ts'
import { GuardedProgram, temporaryFolder } from './guarded-program.ts'

/** The time without a change after which the conductor is started anew: editors write several files at once. */
const QUIET_MS = 200
/** The time in which running jobs can end. */
const STOP_MS = 5_000
/** The files that may belong to flows. Flows write the others: logs, pictures, databases. */
const OF_FLOWS = /\.([cm]?[jt]sx?|json|ya?ml|sql|wasm)$/
/** The folders whose files do not belong to flows. */
const IGNORED = /(^|\/)(node_modules|\.[^/]+|logbooks)(\/|$)/

export interface ReloadingConductorOptions {
  readonly flows: readonly string[]
  readonly board: string
  readonly persistence: string
  readonly context: Pick<CliContext, 'cwd' | 'env' | 'stderr'>
}

export class ReloadingConductor implements AsyncDisposable {
  readonly #options: ReloadingConductorOptions
  readonly #watchers: FSWatcher[] = []
  #program: GuardedProgram | undefined
  /** A folder of its own: the guard of a program deletes it with the program. */
  #folder: string | undefined
  #timer: NodeJS.Timeout | undefined
  /** What is under way: a start waits for the stop before it. */
  #step: Promise<void> = Promise.resolve()
  #isOver = false

  constructor(options: ReloadingConductorOptions) {
    this.#options = options
  }

  /** Starts the conductor, and watches the folders of its flows. */
  async start(): Promise<void> {
    const { flows, context } = this.#options
    const folders = await Promise.all(flows.map((module) => folderOf(resolve(context.cwd, module), context.cwd)))
    for (const folder of new Set(folders)) {
      const watcher = watch(folder, { recursive: true }, (_event, name) => this.#noteChange(name))
      // A folder that vanishes is not watched any more.
      watcher.on('error', () => undefined)
      this.#watchers.push(watcher)
    }
    await this.#enqueue(() => this.#startProgram())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers) watcher.close()
    await this.#enqueue(() => this.#stopProgram())
  }

  #noteChange(name: string | Buffer | null): void {
    if (this.#isOver || (typeof name === 'string' && (!OF_FLOWS.test(name) || IGNORED.test(name)))) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#options.context.stderr.write(`# ${name ?? 'a file'} has changed: the conductor is started anew\n`)
      void this.#enqueue(async () => {
        await this.#stopProgram()
        await this.#startProgram()
      })
    }, QUIET_MS)
  }

  #enqueue(step: () => Promise<void>): Promise<void> {
    this.#step = this.#step.then(step)
    return this.#step
  }

  async #startProgram(): Promise<void> {
    if (this.#isOver) return
    const { flows, board, persistence, context } = this.#options
    const folder = await temporaryFolder('jobboard-dev-')
    this.#folder = folder
    const places = ['--board', board, '--persistence', persistence]
    const command = [
      process.execPath,
      mainFile(),
      'conductor',
      ...flows.flatMap((module) => ['--flows', module]),
      ...places,
    ]
    const program = new GuardedProgram({
      // Both outputs come here, in their order.
      command: ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh', ...command],
      ...{ env: context.env, cwd: context.cwd, folder, readsStdout: true },
      log: join(folder, 'log'),
    })
    this.#program = program
    await program.start()
    program.stdout?.on('data', (chunk: Buffer) => context.stderr.write(chunk.toString('utf8')))
    void program.ended.then(() => this.#noteEnd(program))
  }

  #noteEnd(program: GuardedProgram): void {
    if (this.#program !== program || this.#isOver) return
    this.#program = undefined
    this.#options.context.stderr.write('# the conductor has ended; it is started again when a file changes\n')
  }

  async #stopProgram(): Promise<void> {
    const [program, folder] = [this.#program, this.#folder]
    this.#program = undefined
    this.#folder = undefined
    program?.signal('TERM')
    if (program) await withinTime(STOP_MS, program.ended)
    await program?.[Symbol.asyncDispose]()
    if (folder !== undefined) await rm(folder, { recursive: true, force: true })
  }
}

/** Returns the folder of a module; for a package, the folder of the command. */
async function folderOf(path: string, cwd: string): Promise<string> {
  const found = await stat(path).catch(() => undefined)
  if (!found) return cwd
  return found.isDirectory() ? path : dirname(path)
}

function mainFile(): string {
  const name = import.meta.url.endsWith('.ts') ? '../main.ts' : '../main.js'
  return fileURLToPath(new URL(name, import.meta.url))
}
