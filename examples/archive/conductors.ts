/** The conductors of a run: one in this process, or several in processes of their own. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type JobBoard, openPersistence, startConductor } from 'jobboard'
import { archiveFlow } from './flow.ts'
import { aborted } from './interrupt.ts'
import { archivePool } from './isolated-flow.ts'
import { isMemory } from './options.ts'

export interface Conductors extends AsyncDisposable {
  /** The description for people. */
  readonly who: string
  /** Resolves when all of them have ended without a request to stop. */
  readonly allGone: Promise<void>
  /** Stops them: running jobs may finish. Idempotent. */
  stop(): Promise<void>
  /** Aborts them: running jobs end at once and go back to the board. */
  abort(): void
}

/** The options of a conductor, as they are sent to its process. */
export interface Assignment {
  /** The URI of the board. */
  readonly board: string
  readonly persistence: string
  readonly flow: string
  readonly concurrency: number
  /** Whether tasks run in child processes. */
  readonly isolate: boolean
}

/** A later order to a conductor's process. */
export type Order = 'stop' | 'abort'

export interface ConductorsOptions extends Assignment {
  /** The number of processes; undefined for a conductor in this process. */
  readonly conductors: number | undefined
  /** The signal that ends the start. */
  readonly signal: AbortSignal
  /** Prints a line, when one of them has ended. */
  readonly say: (line: string) => void
}

/**
 * Starts the conductors.
 *
 * @param board open, for a conductor in this process
 * @throws what opening the logbooks throws; the signal's reason, when all that had been started have ended
 */
export async function startConductors(board: JobBoard, options: ConductorsOptions): Promise<Conductors> {
  const { persistence, flow, concurrency, isolate, conductors, say, signal } = options
  const assignment = { board: options.board, persistence, flow, concurrency, isolate }
  // A board in memory exists in this process only.
  if (conductors === undefined || isMemory(options.board)) return conductorInside(board, assignment)
  return conductorProcesses(assignment, { count: conductors, say, signal })
}

async function conductorInside(board: JobBoard, assignment: Assignment): Promise<Conductors> {
  const { persistence, flow, concurrency, isolate } = assignment
  const conductor = await startConductor({
    ...{ board, persistence, flows: [archiveFlow(flow)], concurrency },
    ...(isolate ? { pool: archivePool(flow) } : {}),
  })
  const stop = () => conductor.stop()
  return {
    who: 'a conductor in this process',
    allGone: new Promise(() => undefined),
    stop,
    abort: () => conductor.abort(),
    [Symbol.asyncDispose]: stop,
  }
}

/** Starts the processes. One that dies is not started again: the others continue. */
async function conductorProcesses(
  assignment: Assignment,
  options: { count: number; say: (line: string) => void; signal: AbortSignal },
): Promise<Conductors> {
  const { count, say, signal } = options
  // The logbooks are checked once, here, and not by each process.
  await (await openPersistence(assignment.persistence)).close()
  const children = Array.from({ length: count }, (_, index) => new ConductorProcess(index + 1))
  const allGone = Promise.all(children.map((child) => child.gone)).then(() => undefined)
  let stopping = false
  const order = (order: Order) => {
    stopping = true
    for (const child of children) child.send(order)
  }
  const stop = () => {
    order('stop')
    return allGone
  }
  for (const child of children) {
    void child.gone.then((how) => {
      if (!stopping && !signal.aborted) say(`${child} is gone (${how}), what it was doing goes to the others`)
    })
  }
  await Promise.race([Promise.all(children.map((child) => child.start(assignment))), aborted(signal)])
  if (signal.aborted) await stop()
  signal.throwIfAborted()
  return { who: children.join(', '), allGone, stop, abort: () => order('abort'), [Symbol.asyncDispose]: stop }
}

const PROGRAM = fileURLToPath(new URL('conductor-process.ts', import.meta.url))

class ConductorProcess {
  readonly #number: number
  /** The process id; undefined if the process was not started. */
  readonly #process: ChildProcess | undefined
  /** Resolves with how it ended, or why it did not start. */
  readonly gone: Promise<string>

  constructor(number: number) {
    this.#number = number
    try {
      // Start it with the options of this process, so that it runs TypeScript, too.
      const child = fork(PROGRAM, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
      this.#process = child
      this.gone = new Promise((resolve) => {
        child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
        // For a process that has started, this reports a message that could not be sent; its exit is reported as well.
        child.on('error', (error) => child.pid === undefined && resolve(error.message))
      })
    } catch (error) {
      this.gone = Promise.resolve(error instanceof Error ? error.message : String(error))
    }
  }

  /** Resolves when it claims jobs, or has ended. */
  async start(assignment: Assignment): Promise<void> {
    this.send(assignment)
    const ready = new Promise((resolve) => this.#process?.once('message', resolve))
    await Promise.race([ready, this.gone])
  }

  /** Sends an order, unless the process has ended or is about to. */
  send(message: Assignment | Order): void {
    if (this.#process?.connected) this.#process.send(message, () => undefined)
  }

  toString(): string {
    return `conductor ${this.#number} (process ${this.#process?.pid ?? 'none'})`
  }
}
