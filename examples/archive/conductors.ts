/** Who does the work: a conductor in this process, or several in processes of their own. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type JobBoard, openPersistence, startConductor } from 'jobboard'
import { archiveFlow } from './flow.ts'
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
  /** Told when one of them is gone. */
  readonly say: (line: string) => void
}

/**
 * @param board open, for a conductor in this process
 * @throws what opening the logbooks throws
 */
export async function startConductors(board: JobBoard, options: ConductorsOptions): Promise<Conductors> {
  const { persistence, flow, concurrency, conductors, say } = options
  const assignment = { board: options.board, persistence, flow, concurrency }
  // A memory board is in this process only.
  if (conductors === undefined || isMemory(options.board)) return conductorInside(board, assignment)
  return conductorProcesses(assignment, { count: conductors, say })
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
  options: { count: number; say: (line: string) => void },
): Promise<Conductors> {
  // Whether the logbooks can be used is found out once, here, and not by each of them.
  await (await openPersistence(assignment.persistence)).close()
  const children = Array.from({ length: options.count }, (_, index) => new ConductorProcess(index + 1))
  const allGone = Promise.all(children.map((child) => child.exited)).then(() => undefined)
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
    void child.exited.then((how) => {
      if (!stopping) options.say(`${child} is gone (${how}), what it was doing goes to the others`)
    })
  }
  await Promise.all(children.map((child) => child.start(assignment)))
  return { who: children.join(', '), allGone, stop, abort: () => order('abort'), [Symbol.asyncDispose]: stop }
}

const PROGRAM = fileURLToPath(new URL('conductor-process.ts', import.meta.url))

class ConductorProcess {
  readonly #number: number
  readonly #process: ChildProcess
  /** Resolves with how it ended. */
  readonly exited: Promise<string>

  constructor(number: number) {
    this.#number = number
    // Started as this process was, so that it understands TypeScript, too.
    this.#process = fork(PROGRAM, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.exited = once(this.#process, 'exit').then(([code, signal]) => String(signal ?? `exit code ${code}`))
  }

  /** Resolves when it claims jobs, or is gone. */
  async start(assignment: Assignment): Promise<void> {
    this.#process.send(assignment)
    await Promise.race([once(this.#process, 'message'), this.exited])
  }

  /** It may be gone, or about to go; then there is nothing to tell. */
  send(order: Order): void {
    if (this.#process.connected) this.#process.send(order, () => undefined)
  }

  toString(): string {
    return `conductor ${this.#number} (process ${this.#process.pid})`
  }
}
