/** Conductors inside a process of one's own. */
import { availableParallelism } from 'node:os'
import { type JobBoard, openBoard } from '../board/index.ts'
import { InvalidArgument } from '../core/errors.ts'
import { type Logger, silent } from '../core/log.ts'
import { type Duration, milliseconds } from '../core/time.ts'
import type { AnyFlow } from '../flow/index.ts'
import { openPersistence, type Persistence } from '../persistence/index.ts'
import { Conductor } from './conductor.ts'
import type { OnFailure } from './decide.ts'
import { KnownFlows } from './known-flows.ts'

export interface ConductorOptions {
  /** A URI, opened here and closed at the stop; or an open board, left open. */
  readonly board: string | JobBoard
  /** A URI, opened here and closed at the stop; or an open persistence, left open. */
  readonly persistence: string | Persistence
  readonly flows: readonly AnyFlow[]
  /** How many jobs run at once; as many as the machine has processors by default. */
  readonly concurrency?: number
  /** Unique among living conductors; the board's `who` by default, with a number behind it from the second on. */
  readonly name?: string
  /** How long a stop waits for what runs before it aborts it; 25 s by default. */
  readonly drainTimeout?: Duration
  /** How long an abort waits for tasks that do not heed their signal before it leaves them behind; 5 s by default. */
  readonly abortTimeout?: Duration
  /** `retry` (the default): tried again while attempts are left, then trashed. `consume` is TaskFlow's way. */
  readonly onFailure?: OnFailure
  readonly log?: Logger
  /** Gives up starting. */
  readonly signal?: AbortSignal
}

/**
 * Starts a conductor; it has registered itself and claims when the promise resolves.
 *
 * @throws InvalidArgument for options that make no sense; what opening a board or logbooks throws
 * @example await using conductor = await startConductor({ board, persistence: 'directory:./logbooks', flows: [hello] })
 */
export async function startConductor(options: ConductorOptions): Promise<Conductor> {
  const { concurrency = availableParallelism(), drainTimeout = '25s', abortTimeout = '5s', log = silent } = options
  const { onFailure = 'retry' } = options
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
    throw new InvalidArgument(`concurrency has to be a whole number from 1, not ${concurrency}`)
  }
  milliseconds(drainTimeout, 'drainTimeout')
  milliseconds(abortTimeout, 'abortTimeout')
  const flows = new KnownFlows(options.flows)
  const owned: AsyncDisposable[] = []
  try {
    const persistence = await openPersistence(options.persistence)
    if (persistence !== options.persistence) owned.unshift(persistence)
    const board = await openedBoard(options, log)
    if (board !== options.board) owned.unshift(board)
    const name = options.name ?? nextName(board)
    const limits = { concurrency, drainTimeout, abortTimeout }
    const conductor = new Conductor({ name, board, persistence, flows, ...limits, onFailure, log, owned })
    await conductor.start()
    return conductor
  } catch (error) {
    for (const opened of owned) await opened[Symbol.asyncDispose]()
    throw error
  }
}

async function openedBoard(options: ConductorOptions, log: Logger): Promise<JobBoard> {
  const { board, name, signal } = options
  if (typeof board !== 'string') return board
  return openBoard(board, { log, ...(name === undefined ? {} : { who: name }), ...(signal ? { signal } : {}) })
}

/** How many conductors this process has named by itself. */
let named = 0

function nextName(board: JobBoard): string {
  named += 1
  return named === 1 ? board.who : `${board.who}/${named}`
}
