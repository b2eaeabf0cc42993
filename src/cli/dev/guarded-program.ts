/** A program that ends when this process ends, also when this process is killed; its folder is deleted with it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FileHandle, mkdtemp, open, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { JobboardError } from '../../core/errors.ts'
import type { CliContext } from '../context.ts'

/**
 * The shell between this process and the program. It passes on the signals whose names it reads on standard input. The
 * end of that input means that this process has ended, for whatever reason: the shell then kills the program and
 * deletes the folder. Ctrl-C reaches all processes of a terminal; shell and program ignore it and leave it to this
 * process. The shell's own message that a program was killed is suppressed: it would look like the program's last
 * output.
 */
const GUARD_SCRIPT = `
trap '' INT TERM HUP
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
exec 2>/dev/null
{
  while read -r name <&3; do kill -s "$name" $program; done
  trap '' USR1; kill -s KILL $program; exit 0
} >/dev/null &
reader=$!
wait $program
code=$?
[ -z "$FAREWELL" ] || $FAREWELL >/dev/null
kill -s USR1 $reader
if wait $reader; then rm -rf -- "$FOLDER"; fi
exit $code
`

export interface GuardedProgramOptions {
  readonly command: readonly string[]
  readonly env: CliContext['env']
  readonly cwd?: string
  /** The folder, deleted if this process ends before the program. */
  readonly folder: string
  /** The file for standard error, and for standard output too unless `readsStdout` is set. */
  readonly log: string
  /** A command that ends what outlives the program. */
  readonly cleanUpCommand?: readonly string[]
  /** Whether this process reads the program's standard output. */
  readonly readsStdout?: boolean
}

export class GuardedProgram implements AsyncDisposable {
  readonly #options: GuardedProgramOptions
  #guard: ChildProcess | undefined
  #ended: Promise<void> = Promise.resolve()

  constructor(options: GuardedProgramOptions) {
    this.#options = options
  }

  /** Resolves when the program has ended and all its output is read. */
  get ended(): Promise<void> {
    return this.#ended
  }

  /** The program's standard output, if it is read. */
  get stdout(): Readable | undefined {
    return this.#guard?.stdout ?? undefined
  }

  /**
   * Resolves when the program is spawned, which does not mean that it is ready.
   *
   * @throws the error of a log that cannot be written
   */
  async start(): Promise<void> {
    await using log = await open(this.#options.log, 'w')
    const guard = this.#spawn(log)
    guard.stdin?.on('error', () => undefined)
    this.#guard = guard
    this.#ended = once(guard, 'close').then(() => undefined)
  }

  /** Sends a signal. The program need not be alive: a signal to a dead one has no effect. */
  signal(name: 'TERM' | 'KILL'): void {
    this.#guard?.stdin?.write(`${name}\n`)
  }

  /** Returns the last line of the log, which usually has the cause. */
  async lastOutput(): Promise<string> {
    const log = await readFile(this.#options.log, 'utf8').catch(() => '')
    return log.trim().split('\n').at(-1) || 'it printed nothing'
  }

  /** Kills the program. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#guard?.stdin?.destroy()
    await this.#ended
  }

  #spawn({ fd }: FileHandle): ChildProcess {
    const { command, env, cwd, folder, cleanUpCommand = [], readsStdout } = this.#options
    return spawn('/bin/sh', ['-c', GUARD_SCRIPT, 'guard', ...command], {
      stdio: ['pipe', readsStdout ? 'pipe' : fd, fd],
      env: { ...env, FOLDER: folder, FAREWELL: cleanUpCommand.join(' ') },
      ...(cwd === undefined ? {} : { cwd }),
      detached: true,
    })
  }
}

/** Makes a temporary folder. @throws JobboardError if none can be made */
export async function temporaryFolder(prefix: string): Promise<string> {
  const above = tmpdir()
  try {
    return await mkdtemp(join(above, prefix))
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new JobboardError(`cannot create a folder in ${above}: ${code}; set TMPDIR to a writable folder`, {
      cause,
    })
  }
}
