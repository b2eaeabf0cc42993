/** Processes that each do a part of a measurement: started beforehand, told together to begin, awaited. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { ROOT } from '../support/build.ts'
import { compiled } from '../support/compiled.ts'

export interface Done {
  /** What came of it. */
  readonly said: unknown
  /** When it was done, on our `performance` clock. */
  readonly at: number
  /** Microseconds of processor time that it took its process. */
  readonly cpu: number
}

export interface Part extends AsyncDisposable {
  /** Tells it to begin; resolves when it is done and the process has ended. */
  go(): Promise<Done>
  /** Ends a part that goes on until then. */
  end(): void
  /** Kills its process with SIGKILL, as its disposal does; resolves when it has ended. */
  kill(): Promise<void>
}

export interface PartOptions {
  /** The program; the one that runs this process by default. */
  readonly node?: string
}

/** A process that does rounds. Its script calls `repeatWhenTold`. Its disposal kills it. */
export interface RepeatedPart extends AsyncDisposable {
  /** Tells it to begin a round; resolves when the round is done. */
  go(): Promise<Done>
}

/** Starts a process that does one part; resolves when the process is connected. It begins at `go`. Its script calls `whenTold`. */
export async function startPart(script: string, args: readonly string[], options: PartOptions = {}): Promise<Part> {
  const { child, ended, next, kill } = await startChild(script, args, options)
  return {
    go: async () => {
      const done = await next()
      await ended
      return done
    },
    end: () => child.stdin.write('end\n'),
    kill,
    [Symbol.asyncDispose]: kill,
  }
}

/** Starts a process that does rounds; resolves when the process is connected. It begins a round at each `go`. */
export async function startRepeatedPart(script: string, args: readonly string[]): Promise<RepeatedPart> {
  const { next, kill } = await startChild(script, args, {})
  return { go: next, [Symbol.asyncDispose]: kill }
}

async function startChild(script: string, args: readonly string[], options: PartOptions) {
  const command = ['--expose-gc', await compiled(script, { bare: true }), ...args]
  const child = spawn(options.node ?? process.execPath, command, { cwd: ROOT, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const [ready] = await Promise.race([once(lines, 'line'), ended])
  if (ready !== 'ready') throw new Error(`${args.join(' ')} ended before it was ready`)
  /** Sends `go`; resolves to the result. */
  const next = async (): Promise<Done> => {
    const saying = once(lines, 'line')
    child.stdin.write('go\n')
    const [line] = await Promise.race([saying, ended])
    const at = performance.now()
    if (typeof line !== 'string') throw new Error(`${args.join(' ')} ended without a result`)
    return { ...(JSON.parse(line) as Omit<Done, 'at'>), at }
  }
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await ended
  }
  return { child, ended, next, kill }
}
