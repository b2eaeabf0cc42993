/** Tracks a job by board and logbook together: for a service that answers questions about a job by its UUID. */
import type { Attempt, Cancellation, Job, JobBoard, WaitingFor } from '../board/index.ts'
import type { Failure } from '../core/failure.ts'
import { parseReference } from '../core/job-names.ts'
import { assertOptions, defined } from '../core/options.ts'
import type { AtomState } from '../core/states.ts'
import type { AtomDetail, FlowDetail, Persistence, SavedCheckpoint } from '../persistence/index.ts'
import { type Located, locate, readRecord } from './locate.ts'

/** The locations in which a job is searched. */
export interface TrackOptions {
  readonly board: JobBoard
  /** The persistence in which the conductors of this board keep their logbooks. */
  readonly persistence: Persistence
  /** The UUID of the job's logbook, where `post` was given one; the job's own by default. */
  readonly book?: string
}

/** The fields that every status has. `tasks` are the tasks that have been recorded so far. */
interface TrackedBase {
  readonly uuid: string
  readonly tasks: Readonly<Record<string, AtomState>>
  /**
   * The progress of running tasks that report it (`ctx.progress`), from 0 to 1, up to a second old; absent where none
   * does.
   */
  readonly progress?: Readonly<Record<string, number>>
  /** The messages of running tasks that have one in their last progress report; absent where none has. */
  readonly messages?: Readonly<Record<string, string>>
  /** The checkpoints that tasks have saved, and whose tasks have not succeeded since; absent where there are none. */
  readonly checkpoints?: Readonly<Record<string, SavedCheckpoint>>
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
      /** The newest of them, and why it has ended: without `ended`, its owner was lost. */
      readonly lastRun?: Attempt
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
      /** Whether the job was cancelled. */
      readonly cancelled: boolean
      readonly failures: readonly Failure[]
    })
  /** The job was never posted; or it is over, and its logbook was removed. */
  | { readonly status: 'unknown'; readonly uuid: string }

/**
 * Returns the status of the job with this reference (`job.ref`) or uuid. Reads the board and the logbook once each. A job that is neither on the
 * board nor has succeeded is looked for in the trash (`board.findTrashed`), and then once more on the board.
 *
 * Results and failures may contain secrets.
 *
 * @throws the errors of board and logbooks when they are away
 * @example
 * const tracked = await track(uuid, { board, persistence })
 * if (tracked.status === 'done') console.log(tracked.results)
 */
export async function track(reference: string, options: TrackOptions): Promise<Tracked> {
  assertOptions(options, { board: true, persistence: true, book: true }, 'track')
  const { uuid } = parseReference(reference)
  for (;;) {
    const located = await locate(reference, options)
    if (!located) return { status: 'unknown', uuid }
    if (located.place === 'logbook') return toEnded(uuid, located.record.flow)
    if (located.place === 'trash') return toTrashed(uuid, located)
    const tracked = await trackOnBoard(located.job, options)
    // The job may have left the board during the reads.
    if (tracked) return tracked
  }
}

function toEnded(uuid: string, flow: FlowDetail): Tracked {
  const base = { ...toTrackedBase(uuid, flow), at: flow.updatedAt }
  if (flow.state === 'SUCCESS') return { ...base, status: 'done', results: toResults(flow) }
  if (flow.state === 'REVERTED' || flow.state === 'FAILURE')
    return { ...base, status: 'failed', failures: toFailures(flow) }
  return { status: 'unknown', uuid }
}

function toTrashed(uuid: string, { trashed, record }: Extract<Located, { place: 'trash' }>): Tracked {
  const { at, who: by, reason, cancelled, failure } = trashed
  const recorded = record ? toFailures(record.flow) : []
  const failures = recorded.length > 0 ? recorded : failure ? [failure] : []
  return { ...toTrackedBase(uuid, record?.flow), status: 'trashed', at, by, reason, cancelled, failures }
}

async function trackOnBoard(job: Job, { board, persistence, book }: TrackOptions): Promise<Tracked | undefined> {
  const owner = await board.findOwner(job)
  const waitingFor = owner === undefined ? await board.waitingFor(job) : undefined
  const record = await readRecord(job.uuid, book ?? job.book.uuid, persistence)
  const cancellation = job.cancelRequested ? await board.cancellation(job) : undefined
  if (job.state !== 'UNCLAIMED' && job.state !== 'CLAIMED') return undefined
  const pending = { ...toTrackedBase(job.uuid, record?.flow), ...(cancellation ? { cancellation } : {}) }
  if (owner !== undefined) {
    const since = job.attempts.at(-1)?.at
    return { ...pending, status: 'running', owner, run: job.runs, ...(since ? { since } : {}) }
  }
  const waits = defined({ since: job.postedAt, waitingFor, lastRun: job.attempts.at(-1) })
  return { ...pending, status: 'waiting', runs: job.runs, ...waits }
}

function toTrackedBase(uuid: string, flow: FlowDetail | undefined): TrackedBase {
  const atoms = flow?.atoms ?? []
  const tasks = Object.fromEntries(atoms.map(({ name, state }) => [name, state]))
  const running = atoms.filter(({ state }) => state === 'RUNNING')
  return {
    uuid,
    tasks,
    ...defined({
      progress: byName(running, ({ meta: { progress } }) => (typeof progress === 'number' ? progress : undefined)),
      messages: byName(running, ({ progressMessage }) => progressMessage),
      checkpoints: byName(atoms, ({ checkpoint }) => checkpoint),
    }),
  }
}

/** Returns what atoms have, by their names; undefined if none of them has it. */
function byName<T>(
  atoms: readonly AtomDetail[],
  read: (atom: AtomDetail) => T | undefined,
): Readonly<Record<string, T>> | undefined {
  const found = atoms.flatMap((atom) => {
    const value = read(atom)
    return value === undefined ? [] : [[atom.name, value] as const]
  })
  return found.length > 0 ? Object.fromEntries(found) : undefined
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
