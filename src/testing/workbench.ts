/** A workbench for tests of flows: a board, logbooks, and owners that work, or die, on demand. */
import { type Job, type JobBoard, openBoard } from '../board/index.ts'
import { memoryTestBackend } from '../board/internal.ts'
import {
  type ConductorEvents,
  type ConductorPool,
  type ErrorHandler,
  type ServicesFor,
  startConductor,
  type Tracked,
  track,
} from '../conductor/index.ts'
import { createDeferred } from '../core/async/abort.ts'
import { InvalidArgument, InvalidState, NotConnected } from '../core/errors.ts'
import { assertOptions, defined, type KnownOptions } from '../core/options.ts'
import type { AnyFlow } from '../flow/index.ts'
import { openPersistence, type Persistence } from '../persistence/index.ts'
import { spyOn } from './board-spy.ts'
import { CrashingPersistence } from './crashing-persistence.ts'
import { ManualClock } from './hand-clock.ts'
import { type WaitLimit, withinLimit } from './wait-limit.ts'

/** The options of a workbench. */
export interface WorkbenchOptions {
  /** The flows that can be run. */
  readonly flows: readonly AnyFlow[]
  /** The services for tasks, as of a conductor; the result of a function is made for each drain, and disposed of after it. */
  readonly services?: unknown
  /** The child processes for isolated tasks; by default these run in the process of the test, as the others do. */
  readonly pool?: ConductorPool
  /** The URI of a board with a server, for tests that need one; it has no clock to turn then. In memory by default. */
  readonly board?: string
  /** A URI, or open logbooks, which are left open; in memory by default. */
  readonly persistence?: string | Persistence
  /** The number of tasks of one flow that may run at once; 16 by default. */
  readonly flowConcurrency?: number
  /** A failed job: `retry` (the default) tries it again while attempts are left, `consume` is TaskFlow's way. */
  readonly onFailure?: 'retry' | 'consume'
  /** Chooses what becomes of a job that has failed, as of a conductor. */
  readonly onError?: ErrorHandler
}

const KNOWN_OPTIONS: KnownOptions<WorkbenchOptions> = {
  flows: true,
  services: true,
  pool: true,
  board: true,
  persistence: true,
  flowConcurrency: true,
  onFailure: true,
  onError: true,
}

/** The options of a drain. */
export interface DrainOptions extends WaitLimit {
  /** Whether resting jobs are run, too: whenever nothing is left to do, the clock turns on to the end of the next delay. */
  readonly skipDelays?: boolean
}

/** A run of a job: its settlement, and the reason if it failed. */
export type Drained = ConductorEvents['settled']

/** The point at which an owner dies: while that task runs, or when it is done, and that is not recorded yet. */
export type CrashPoint = { readonly during: string } | { readonly after: string }

/** Made by {@link workbench}. */
export class Workbench implements AsyncDisposable {
  readonly board: JobBoard
  readonly persistence: Persistence
  readonly #clock: ManualClock | undefined
  readonly #options: WorkbenchOptions
  readonly #another: (who: string) => Promise<JobBoard>

  /** @internal */
  constructor(parts: {
    board: JobBoard
    persistence: Persistence
    clock: ManualClock | undefined
    options: WorkbenchOptions
    another: (who: string) => Promise<JobBoard>
  }) {
    this.board = parts.board
    this.persistence = parts.persistence
    this.#clock = parts.clock
    this.#options = parts.options
    this.#another = parts.another
  }

  /** The clock for delays, pauses and deadlines; it stands still until the test advances it. @throws InvalidState with a server */
  get clock(): ManualClock {
    if (this.#clock) return this.#clock
    throw new InvalidState(`the time of ${this.board.uri} is its server's; leave board out for a clock to turn`)
  }

  /**
   * Works off what is on the board, one job at a time in claim order, until nothing is left that is due; what was due while
   * it worked is done, too. Pauses of retries and waits for tokens (`ctx.limits`) take no time: the clock is turned to their end. Rests of jobs stay
   * rests, unless `skipDelays` says otherwise.
   *
   * @returns what became of the jobs, run by run
   * @throws Timeout naming the jobs that still run; they are aborted, and back on the board
   * @throws what went wrong beside the jobs
   * @example const [run] = await bench.drain()     // run.settled is 'consumed'
   */
  async drain(options: DrainOptions = {}): Promise<Drained[]> {
    assertOptions(options, { skipDelays: true, within: true }, 'drain')
    const { skipDelays = false } = options
    const { clock } = skipDelays ? this : { clock: undefined }
    const drained: Drained[] = []
    do drained.push(...(await this.#work({ ...options, board: this.board, persistence: this.persistence })))
    while (clock?.advanceToNext('delay'))
    return drained
  }

  /**
   * Lets another owner work until it dies, at that task: its claims are lost, nothing that it does from then on is recorded,
   * and its tasks' signals fire. The next {@link drain} takes over.
   *
   * @returns the job that it has left half done
   * @throws InvalidState when no run came to that task
   * @example
   * const job = await bench.crash({ after: 'charge' })    // charged, but not recorded
   * await bench.drain()                                   // charges again: did that do any harm?
   */
  async crash(point: CrashPoint, limit: WaitLimit = {}): Promise<Job> {
    const { task, when } = toOwnerDeath(point)
    using spy = spyOn(this.board)
    const board = await this.#another('doomed')
    const persistence = new CrashingPersistence(this.persistence, { task, when, die: () => board.close() })
    try {
      await this.#work({ ...limit, board, persistence })
    } finally {
      await board.close()
    }
    if (persistence.job === undefined)
      throw new InvalidState(`no run came to task ${task}; post a job of a flow that has it, and that is due`)
    return spy.next('abandoned', { ...limit, of: { uuid: persistence.job } })
  }

  /** Returns the state of the job, with the results of its tasks, or their failures. */
  track(job: Pick<Job, 'uuid'>): Promise<Tracked> {
    return track(job.uuid, this)
  }

  /** Closes what it has opened. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.board.close()
    if (this.persistence !== this.#options.persistence) await this.persistence.close()
  }

  /** Runs jobs until nothing is left to do, or the board is closed. */
  async #work(how: { board: JobBoard; persistence: Persistence } & WaitLimit): Promise<Drained[]> {
    const { board, persistence } = how
    const { flows, services, pool = false, flowConcurrency, onFailure, onError } = this.#options
    const drained: Drained[] = []
    const running = new Map<string, Job>()
    const wrong: Error[] = []
    using _skipping = this.#clock?.skip('pause')
    using _waiting = this.#clock?.skip('limit')
    const conductor = await startConductor({
      ...{ board, persistence, flows, services, pool, burst: true, concurrency: 1, abortTimeout: '1s' },
      ...defined({ flowConcurrency, onFailure, onError }),
    })
    conductor.on('started', ({ job }) => running.set(job.uuid, job))
    conductor.on('settled', (run) => {
      running.delete(run.job.uuid)
      drained.push(run)
    })
    conductor.on('error', ({ error }) => wrong.push(error))
    const end = whenClosed(board)
    const stopped = Promise.race([conductor.stopped, end.promise])
    try {
      await withinLimit(
        how,
        () => stopped,
        () => `still running: ${[...running.values()].join(', ') || 'no job'}`,
      )
    } finally {
      end.forget()
      conductor.abort()
      await conductor.stop()
    }
    const [first] = wrong.filter((error) => board.connected || !(error instanceof NotConnected))
    if (first) throw first
    return drained
  }
}

/**
 * Returns a board in memory with a clock to turn by hand, logbooks in memory, and owners for the jobs that are posted there.
 *
 * @example
 * await using bench = await workbench({ flows: [hello] })
 * const job = await bench.board.post(hello, { name: 'Ada' })
 * await bench.drain()
 * assert.equal(job.state, 'COMPLETE')
 */
export async function workbench<const F extends readonly AnyFlow[]>(
  options: WorkbenchOptions & { readonly flows: F } & ServicesFor<F>,
): Promise<Workbench> {
  assertOptions<WorkbenchOptions>(options, KNOWN_OPTIONS, 'a workbench')
  const { board: uri, persistence: logbooks = 'memory:' } = options
  if (!Array.isArray(options.flows)) throw new InvalidArgument('a workbench: flows has to be a list, as in [hello]')
  const clock = uri === undefined ? new ManualClock() : undefined
  const place = clock && memoryTestBackend({ clock })
  const another = (who: string) => (place ? place.open({ who }) : openBoard(uri ?? '', { who }))
  const persistence = await openPersistence(logbooks)
  try {
    return new Workbench({ board: await another('test'), persistence, clock, options, another })
  } catch (error) {
    if (persistence !== logbooks) await persistence.close()
    throw error
  }
}

function toOwnerDeath(point: CrashPoint): { task: string; when: 'during' | 'after' } {
  const { during, after }: { during?: unknown; after?: unknown } = Object(point)
  const task = during ?? after
  if (typeof task !== 'string' || (during !== undefined && after !== undefined))
    throw new InvalidArgument("crash takes the name of a task, as in { during: 'charge' } or { after: 'charge' }")
  return { task, when: during === undefined ? 'after' : 'during' }
}

/** Resolves when the board's session is over for good. */
function whenClosed(board: JobBoard): { readonly promise: Promise<void>; readonly forget: () => void } {
  const { promise, resolve } = createDeferred()
  const forget = board.on('state', ({ state }) => {
    if (state === 'closed') resolve()
  })
  return { promise, forget }
}
