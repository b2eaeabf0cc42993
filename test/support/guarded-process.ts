/**
 * A child process that cannot outlive us, however we end. A shell stands between: when its standard input closes,
 * because we closed it or because we were killed, it kills the child, and deletes the folder that was the child's.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** The child says its own number before it becomes what it is to be, so that this is always the first line. */
const GUARD = `
trap '' INT
exec 3<&0 4>&1
if [ -n "$LOG_FILE" ]; then exec 4>"$LOG_FILE" 2>&4; fi
sh -c 'echo $$; exec "$@" >&4 4>&-' child "$@" </dev/null 3<&- &
child=$!
exec >&- 4>&- 2>/dev/null
{ read -r _ <&3; trap '' TERM; kill -s $LAST_SIGNAL $child; exit 0; } 2>/dev/null &
reader=$!
wait $child
code=$?
kill $reader
if wait $reader && [ -n "$FOLDER" ]; then rm -rf -- "$FOLDER"; fi
exit $code
`

export interface GuardedProcess {
  /** Of the child itself. */
  readonly pid: number
  readonly running: boolean
  /** Resolves when the child is gone, with its exit code (128 and the signal's number when it was killed). */
  readonly ended: Promise<number>
  /** Calls the listener with each line that the child has printed, and that it prints; with none when they go to a file. Call it once. */
  onLine(listener: (line: string) => void): void
  /** No-op once the child is gone. */
  signal(name: NodeJS.Signals): void
}

export interface GuardOptions {
  /** Where what it prints goes; without it that is in `lines`, and its errors are ours. */
  readonly logFile?: string
  /** Deleted when we are gone before the child is. */
  readonly folder?: string
  /** What ends the child when we are gone; SIGKILL by default. */
  readonly lastSignal?: NodeJS.Signals
}

export async function startGuarded(command: readonly string[], options: GuardOptions = {}): Promise<GuardedProcess> {
  const { logFile = '', folder = '', lastSignal = 'SIGKILL' } = options
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', ...command], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, LOG_FILE: logFile, FOLDER: folder, LAST_SIGNAL: lastSignal.slice('SIG'.length) },
  })
  let running = true
  const ended = whenEnded(guard).then((code) => {
    running = false
    return code
  })
  // On a busy machine, the guard's line and the child's may be read at once: the child's are kept for the listener.
  const printed: string[] = []
  let listener = (line: string): void => void printed.push(line)
  const reader = createInterface(guard.stdout)
  const hasBegun = new Promise<number>((resolve) => {
    reader.once('line', (first) => {
      resolve(Number(first))
      reader.on('line', (line) => listener(line))
    })
  })
  const hasFailed = ended.then((code) => {
    throw new Error(`the guard of ${command[0]} ended (${code}) before the process had begun`)
  })
  const pid = await Promise.race([hasBegun, hasFailed])
  return {
    pid,
    ended,
    onLine: (given) => {
      for (const line of printed.splice(0)) given(line)
      listener = given
    },
    get running() {
      return running
    },
    signal: (name) => {
      if (!running) return
      try {
        process.kill(pid, name)
      } catch (error) {
        // It is gone, and the guard has not said so yet.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
    },
  }
}

async function whenEnded(guard: ChildProcess): Promise<number> {
  guard.stdin?.on('error', () => undefined)
  // Closed, not only ended: everything that was printed has been read.
  const [code] = await once(guard, 'close')
  guard.stdin?.destroy()
  return Number(code)
}
