/** Who does the work: a conductor in this process, or several in processes of their own. */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type JobBoard, openPersistence, startConductor } from 'jobboard'
import { archiveFlow } from './flow.ts'
import { aborted } from './interrupt.ts'
import { isMemory } from './options.ts'

export interface Conductors extends AsyncDisposable {
  /** For people. */
  readonly who: string
  /** Resolves when none is left although nobody stopped them. */
  readonly allGone: Promise<void>
  /** What runs may end; idempotent. */
  stop(): Promise<void>
  /** What runs is told to end at once, and goes back to the board. */
  abort(): void
}

/** What a conductor needs to know, as it is sent to its process. */
export interface Assignment {
  /** A URI. */
  readonly board: string
  readonly persistence: string
  readonly flow: string
  readonly concurrency: number
}

/** What a conductor's process is told afterwards. */
export type Order = 'stop' | 'abort'

export interface ConductorsOptions extends Assignment {
  /** So many processes; undefined: none, a conductor in this one. */
  readonly conductors: number | undefined
  /** Gives up starting them. */
  readonly signal: AbortSignal
  /** Told when one of them is gone. */
  readonly say: (line: string) => void
}

/**
 * @param board open, for a conductor in this process
 * @throws what opening the logbooks throws; the signal's reason, when all that had been started are gone
 */
export async function startConductors(board: JobBoard, options: ConductorsOptions): Promise<Conductors> {
  const { persistence, flow, concurrency, conductors, say, signal } = options
  const assignment = { board: options.board, persistence, flow, concurrency }
  // A memory board is in this process only.
  if (conductors === undefined || isMemory(options.board)) return conductorInside(board, assignment)
  return conductorProcesses(assignment, { count: conductors, say, signal })
}

async function conductorInside(board: JobBoard, { persistence, flow, concurrency }: Assignment): Promise<Conductors> {
  const conductor = await startConductor({ board, persistence, flows: [archiveFlow(flow)], concurrency })
  const stop = () => conductor.stop()
  return {
    who: 'a conductor in this process',
    allGone: new Promise(() => undefined),
    stop,
    abort: () => conductor.abort(),
    [Symbol.asyncDispose]: stop,
  }
}

/** Whoever dies stays dead: the others go on. */
async function conductorProcesses(
  assignment: Assignment,
  options: { count: number; say: (line: string) => void; signal: AbortSignal },
): Promise<Conductors> {
  const { count, say, signal } = options
  // Whether the logbooks can be used is found out once, here, and not by each of them.
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
  /** Undefined where the system has not even tried to start it. */
  readonly #process: ChildProcess | undefined
  /** Resolves with how it ended, or why it never began. */
  readonly gone: Promise<string>

  constructor(number: number) {
    this.#number = number
    try {
      // Started as this process was, so that it understands TypeScript, too.
      const child = fork(PROGRAM, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
      this.#process = child
      this.gone = new Promise((resolve) => {
        child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
        // Of a process that has begun, this tells of a message that could not be sent, and its exit is told as well.
        child.on('error', (error) => child.pid === undefined && resolve(error.message))
      })
    } catch (error) {
      this.gone = Promise.resolve(error instanceof Error ? error.message : String(error))
    }
  }

  /** Resolves when it claims jobs, or is gone. */
  async start(assignment: Assignment): Promise<void> {
    this.send(assignment)
    const ready = new Promise((resolve) => this.#process?.once('message', resolve))
    await Promise.race([ready, this.gone])
  }

  /** It may be gone, or about to go; then there is nothing to tell. */
  send(message: Assignment | Order): void {
    if (this.#process?.connected) this.#process.send(message, () => undefined)
  }

  toString(): string {
    return `conductor ${this.#number} (process ${this.#process?.pid ?? 'none'})`
  }
}
