/** Tracks a job by board and logbook together: for a service that answers questions about a job by its UUID. */
import type { Cancellation, JobBoard, TrashedJob, WaitingFor } from '../board/index.ts'
import { NotFound } from '../core/errors.ts'
import type { Failure } from '../core/failure.ts'
import { assertOptions } from '../core/options.ts'
import type { AtomState } from '../core/states.ts'
import type { FlowDetail, Persistence } from '../persistence/index.ts'

/** The locations in which a job is searched. */
export interface TrackOptions {
  readonly board: JobBoard
  /** The persistence in which the conductors of this board keep their logbooks. */
  readonly persistence: Persistence
  /** The UUID of the job's logbook, where `post` was given one; the job's own by default. */
  readonly book?: string
}

/** The fields that every status has. `tasks` are those that have been recorded so far. */
interface TrackedBase {
  readonly uuid: string
  readonly tasks: Readonly<Record<string, AtomState>>
  /**
   * The progress of running tasks that report it (`ctx.progress`), from 0 to 1, up to a second old; absent where none
   * does.
   */
  readonly progress?: Readonly<Record<string, number>>
}

/** The fields of a job on the board. */
interface TrackedOnBoard extends TrackedBase {
  /** The cancellation, when one was requested. */
  readonly cancellation?: Cancellation
}

/** The status of a job: `waiting`, `running`, `done`, `failed`, `trashed`, or `unknown`. */
export type Tracked =
  | (TrackedOnBoard & {
      readonly status: 'waiting'
      readonly since?: Date
      /** The reason why it waits, if one is known; otherwise it waits for its turn only. */
      readonly waitingFor?: WaitingFor
      /** The number of earlier runs. */
      readonly runs: number
    })
  | (TrackedOnBoard & {
      readonly status: 'running'
      readonly owner: string
      readonly since?: Date
      readonly run: number
    })
  | (TrackedBase & {
      readonly status: 'done'
      readonly at: Date
      /** The results of the tasks, by the tasks' names. */
      readonly results: Readonly<Record<string, unknown>>
    })
  /** The job has left the board; its flow was reverted, or its revert failed. */
  | (TrackedBase & { readonly status: 'failed'; readonly at: Date; readonly failures: readonly Failure[] })
  /** The job is in the trash, from where it can be restored. */
  | (TrackedBase & {
      readonly status: 'trashed'
      readonly at: Date
      readonly by: string
      readonly reason: string
      readonly failures: readonly Failure[]
    })
  /** The job was never posted; or it is over, and its logbook was removed. */
  | { readonly status: 'unknown'; readonly uuid: string }

/**
 * Returns the status of a job. Reads the board and the logbook once each. A job that is neither on the board nor has
 * succeeded is searched in the trash, which is read whole, and then once more on the board.
 *
 * Results and failures may contain secrets.
 *
 * @throws the errors of board and logbooks when they are away
 * @example
 * const tracked = await track(uuid, { board, persistence })
 * if (tracked.status === 'done') console.log(tracked.results)
 */
export async function track(uuid: string, options: TrackOptions): Promise<Tracked> {
  assertOptions(options, { board: true, persistence: true, book: true }, 'track')
  const { board, persistence } = options
  const onBoard = await trackOnBoard(uuid, options)
  if (onBoard) return onBoard
  const flow = await readFlow(uuid, options.book ?? uuid, persistence)
  if (flow?.state === 'SUCCESS')
    return { ...toTrackedBase(uuid, flow), status: 'done', at: flow.updatedAt, results: toResults(flow) }
  const trashed = await findInTrash(uuid, board)
  if (trashed) {
    const there = flow ?? (await readFlow(uuid, trashed.book.uuid, persistence))
    const { at, who: by, reason, failure } = trashed
    const failures = there && toFailures(there).length > 0 ? toFailures(there) : failure ? [failure] : []
    return { ...toTrackedBase(uuid, there), status: 'trashed', at, by, reason, failures }
  }
  // The job is in neither place: it may have been restored between the two reads.
  return (await trackOnBoard(uuid, options)) ?? toEnded(uuid, flow)
}

function toEnded(uuid: string, flow: FlowDetail | undefined): Tracked {
  if (flow?.state === 'REVERTED' || flow?.state === 'FAILURE')
    return { ...toTrackedBase(uuid, flow), status: 'failed', at: flow.updatedAt, failures: toFailures(flow) }
  return { status: 'unknown', uuid }
}

async function trackOnBoard(uuid: string, { board, persistence, book }: TrackOptions): Promise<Tracked | undefined> {
  const job = await board.find(uuid).catch(ignoreNotFound)
  if (!job) return undefined
  const owner = await board.findOwner(job)
  const waitingFor = owner === undefined ? await board.waitingFor(job) : undefined
  const flow = await readFlow(uuid, book ?? job.book.uuid, persistence)
  const cancellation = job.cancelRequested ? await board.cancellation(job) : undefined
  // The job may have left the board during the reads.
  if (job.state !== 'UNCLAIMED' && job.state !== 'CLAIMED') return undefined
  const pending = { ...toTrackedBase(uuid, flow), ...(cancellation ? { cancellation } : {}) }
  if (owner !== undefined) {
    const since = job.attempts.at(-1)?.at
    return { ...pending, status: 'running', owner, run: job.runs, ...(since ? { since } : {}) }
  }
  const since = job.postedAt
  const waits = { ...(since ? { since } : {}), ...(waitingFor ? { waitingFor } : {}) }
  return { ...pending, status: 'waiting', runs: job.runs, ...waits }
}

async function readFlow(uuid: string, book: string, persistence: Persistence): Promise<FlowDetail | undefined> {
  const found = await persistence.getBook(book).catch(ignoreNotFound)
  return found?.flows.find((flow) => flow.uuid === uuid)
}

/** Returns the newest trashed job of that UUID. */
async function findInTrash(uuid: string, board: JobBoard): Promise<TrashedJob | undefined> {
  let found: TrashedJob | undefined
  for await (const job of board.trashed()) if (job.uuid === uuid) found = job
  return found
}

function toTrackedBase(uuid: string, flow: FlowDetail | undefined): TrackedBase {
  const atoms = flow?.atoms ?? []
  const tasks = Object.fromEntries(atoms.map(({ name, state }) => [name, state]))
  const reported = atoms.flatMap(({ name, state, meta: { progress } }) => {
    return state === 'RUNNING' && typeof progress === 'number' ? [[name, progress] as const] : []
  })
  return { uuid, tasks, ...(reported.length > 0 ? { progress: Object.fromEntries(reported) } : {}) }
}

function toResults({ atoms }: FlowDetail): Record<string, unknown> {
  const results = atoms.filter(
    ({ kind, state, result }) => kind === 'task' && state === 'SUCCESS' && result !== undefined,
  )
  return Object.fromEntries(results.map(({ name, result }) => [name, result]))
}

function toFailures({ atoms }: FlowDetail): Failure[] {
  return atoms.flatMap(({ failure, revertFailure }) => [failure, revertFailure].filter((each) => each !== undefined))
}

function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof NotFound)) throw error
}
