/**
 * A server as a child process that cannot outlive us, however we end. A shell stands between: when its standard input
 * closes, because we closed it or because we were killed, it kills the server.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const GUARD = `
exec 3<&0
"$@" </dev/null 3<&- >"$LOG_FILE" 2>&1 &
server=$!
echo $server
{ read -r _ <&3; kill -KILL $server; } 2>/dev/null &
reader=$!
wait $server
kill $reader
`

export interface GuardedProcess {
  /** Of the server itself. */
  readonly pid: number
  readonly running: boolean
  /** Resolves when the server is gone. */
  readonly ended: Promise<void>
  /** No-op once the server is gone. */
  signal(name: NodeJS.Signals): void
}

export async function startGuarded(command: readonly string[], options: { logFile: string }): Promise<GuardedProcess> {
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', ...command], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { ...process.env, LOG_FILE: options.logFile },
  })
  let running = true
  const ended = whenEnded(guard).then(() => {
    running = false
  })
  const pid = await firstLine(guard)
  return {
    pid: Number(pid),
    ended,
    get running() {
      return running
    },
    signal: (name) => {
      if (running) process.kill(Number(pid), name)
    },
  }
}

async function firstLine(guard: ChildProcess): Promise<string> {
  if (!guard.stdout) throw new Error('the guard has no standard output')
  const lines = createInterface(guard.stdout)
  const [line] = await once(lines, 'line')
  lines.close()
  return String(line)
}

async function whenEnded(guard: ChildProcess): Promise<void> {
  guard.stdin?.on('error', () => undefined)
  await once(guard, 'exit')
  guard.stdin?.destroy()
  guard.stdout?.destroy()
}
