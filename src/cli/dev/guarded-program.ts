/** A program that is gone when this process is, also when that is killed, and with it the folder that was its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { CliContext } from '../context.ts'

/**
 * A shell stands between: it passes on the signals whose names it reads on its standard input, and by the end of that it
 * hears of our own end, whatever ended us: it kills the program then, and deletes the folder. Ctrl-C reaches all of a
 * terminal's processes; the shell and the program leave it to us. What the shell would say itself, that something was
 * killed, would pass for the program's last words.
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
  /** Deleted when we are gone before the program is. */
  readonly folder: string
  /** A file for what it says on standard error, and on standard output as well unless that is `heard`. */
  readonly log: string
  /** Ends what outlives the program. */
  readonly cleanUpCommand?: readonly string[]
  /** Whether standard output is for us to read. */
  readonly readsStdout?: boolean
}

export class GuardedProgram implements AsyncDisposable {
  readonly #options: GuardedProgramOptions
  #guard: ChildProcess | undefined
  #ended: Promise<void> = Promise.resolve()

  constructor(options: GuardedProgramOptions) {
    this.#options = options
  }

  /** Resolves when it is gone, and all it has said is read. */
  get ended(): Promise<void> {
    return this.#ended
  }

  /** What it says, where that is heard. */
  get stdout(): Readable | undefined {
    return this.#guard?.stdout ?? undefined
  }

  /** Resolves when it has been started; not when it has got anywhere. @throws the error of a log that cannot be written */
  async start(): Promise<void> {
    await using log = await open(this.#options.log, 'w')
    const guard = this.#spawn(log)
    guard.stdin?.on('error', () => undefined)
    this.#guard = guard
    this.#ended = once(guard, 'close').then(() => undefined)
  }

  /** Whether it is alive is not asked: a signal to the dead does nothing. */
  signal(name: 'TERM' | 'KILL'): void {
    this.#guard?.stdin?.write(`${name}\n`)
  }

  /** The last line in its log, which tells the most. */
  async lastOutput(): Promise<string> {
    const log = await readFile(this.#options.log, 'utf8').catch(() => '')
    return log.trim().split('\n').at(-1) || 'it said nothing'
  }

  /** Kills it. */
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
