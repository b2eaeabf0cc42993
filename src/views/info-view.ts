/** The state of a board as plain data. */
import {
  type BoardPause,
  DEFAULT_QUEUE,
  type JobBoard,
  type LimitKeyUse,
  type LimitView,
  PRIORITIES,
  type Priority,
  type QueuePause,
  type SessionState,
} from '../board/index.ts'
import { boardInternals } from '../board/internal.ts'
import { defined } from '../core/options.ts'
import { type ConductorView, conductorViews, countSlots, doesServe, type Slots } from './conductor-view.ts'
import { EndRateReader, type EndRates } from './end-rates.ts'
import type { JobView } from './job-view.ts'
import { LiveJobs } from './live-jobs.ts'
import { pauseOfQueue, type QueuePauseView, queuesPausedByName } from './record-views.ts'

export interface JobCount {
  readonly unclaimed: number
  readonly claimed: number
}

export interface InfoView {
  readonly board: string
  /** The state of this reader's own session. */
  readonly state: SessionState
  readonly paused: boolean
  /** Who has paused it, when and why, if that is known. */
  readonly pause?: BoardPause
  /** The queues that have jobs, have had some in the last minute, or are paused by their names, by name. */
  readonly queues: readonly QueueView[]
  readonly jobs: JobCount & { readonly byPriority: Readonly<Record<Priority, JobCount>> }
  readonly trashed: number
  readonly conductors: readonly ConductorView[]
  readonly slots: Slots
  /** The jobs that have been running longest, the longest first. */
  readonly running: readonly RunningView[]
  /** The limits that are set; undefined where none is. */
  readonly limits?: LimitsView
}

/** A queue of a board. */
export interface QueueView extends JobCount {
  readonly queue: string
  /** The time of the post of the unclaimed job that was posted first. */
  readonly oldest?: Date
  /** Who has paused it, when and why, and by which pattern. */
  readonly pause?: QueuePauseView
  /** The number of conductors that serve it. */
  readonly conductors: number
  /** The number of its jobs that have ended in the last minute, done or not; absent where the board has no history. */
  readonly endedPerMinute?: number
  /** The median of the milliseconds from the post to the start of the jobs that have ended in the last minute and ran once; absent without such a job. */
  readonly waitedMs?: number
}

export interface LimitsView {
  /** The number of keys and patterns for which something is set. */
  readonly set: number
  /** The keys and patterns whose jobs do not start, because they are held or permit 0 jobs. */
  readonly stopped: readonly string[]
  /** The keys whose slots are all taken, or which have no token left. */
  readonly full: readonly string[]
}

export type RunningView = Pick<JobView, 'uuid' | 'name' | 'owner'> & { readonly since?: Date }

/** The maximum number of running jobs in the view. */
const MAX_RUNNING_SHOWN = 10

/** A reader of the state of a board. It counts the trash again only if that may have changed, because a ZooKeeper board lists all of it. */
export class InfoReader implements Disposable {
  readonly #board: JobBoard
  readonly #unsubscribe: (() => void)[]
  readonly #live: LiveJobs
  readonly #rates: EndRateReader
  #trashed: number | undefined
  #readCount = 0

  constructor(board: JobBoard) {
    this.#board = board
    this.#live = new LiveJobs(board)
    this.#rates = new EndRateReader(board)
    const forget = () => {
      this.#trashed = undefined
    }
    this.#unsubscribe = [board.on('trashed', forget), board.on('posted', forget), board.on('state', forget)]
  }

  [Symbol.dispose](): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
  }

  async read(): Promise<InfoView> {
    const board = this.#board
    const { jobs, queues, running } = await countJobs(this.#live)
    const conductors = conductorViews(await board.entities('conductor'))
    const [limits, pause, paused] = [await readLimits(board), await board.pauseOrigin(), await board.pausedQueues()]
    return {
      board: board.uri,
      state: board.state,
      paused: board.paused,
      ...(pause ? { pause } : {}),
      queues: toQueueViews(queues, { pauses: paused, conductors, rates: await this.#rates.read() }),
      jobs,
      trashed: await this.#countTrash(),
      conductors,
      slots: countSlots(conductors),
      running,
      ...(limits ? { limits } : {}),
    }
  }

  /** Counts the jobs in the trash. There is no event for purges by other processes. */
  async #countTrash(): Promise<number> {
    this.#readCount += 1
    if (this.#trashed !== undefined && this.#readCount % 30 !== 0) return this.#trashed
    this.#trashed = await boardInternals(this.#board).countTrash()
    return this.#trashed
  }
}

async function readLimits(board: JobBoard): Promise<LimitsView | undefined> {
  if (!board.limits.isSupported) return undefined
  const limits = await board.limits.list()
  if (limits.length === 0) return undefined
  const isFull = ({ concurrency = Number.POSITIVE_INFINITY }: LimitView, { running, nextStart }: LimitKeyUse) =>
    running >= concurrency || nextStart !== undefined
  const stopped = limits.filter(({ held, concurrency }) => held !== undefined || concurrency === 0)
  const others = limits.filter((limit) => !stopped.includes(limit))
  return {
    set: limits.length,
    stopped: stopped.map(({ key }) => key),
    full: others
      .flatMap((limit) => (limit.keys ?? []).filter((use) => isFull(limit, use)).map(({ key }) => key))
      .sort(),
  }
}

interface QueueCounts extends JobCount {
  readonly oldest?: Date | undefined
}

const NONE_ENDED = { endedPerMinute: 0 } as const

interface QueueFacts {
  readonly pauses: readonly QueuePause[]
  readonly conductors: readonly ConductorView[]
  readonly rates: EndRates | undefined
}

/** Returns the queues by name, with their pauses. */
function toQueueViews(
  counts: ReadonlyMap<string, QueueCounts>,
  { pauses, conductors, rates }: QueueFacts,
): QueueView[] {
  const names = new Set([...counts.keys(), ...queuesPausedByName(pauses), ...(rates?.keys() ?? [])])
  return [...names].sort().map((queue) => {
    const { unclaimed = 0, claimed = 0, oldest } = counts.get(queue) ?? {}
    const serving = conductors.filter((conductor) => doesServe(conductor, queue)).length
    return {
      queue,
      unclaimed,
      claimed,
      conductors: serving,
      ...defined({ oldest, pause: pauseOfQueue(queue, pauses) }),
      ...(rates && (rates.get(queue) ?? NONE_ENDED)),
    }
  })
}

interface CountedJobs extends Pick<InfoView, 'jobs' | 'running'> {
  readonly queues: ReadonlyMap<string, QueueCounts>
}

async function countJobs(live: LiveJobs): Promise<CountedJobs> {
  const byPriority = Object.fromEntries(PRIORITIES.map((word) => [word, { unclaimed: 0, claimed: 0 }])) as Record<
    Priority,
    { unclaimed: number; claimed: number }
  >
  const queues = new Map<string, QueueCounts>()
  const running: RunningView[] = []
  for (const { view, since } of await live.read()) {
    const claimed = view.state === 'CLAIMED'
    byPriority[view.priority][claimed ? 'claimed' : 'unclaimed'] += 1
    const { uuid, name, owner, queue = DEFAULT_QUEUE, postedAt } = view
    queues.set(queue, countInQueue(queues.get(queue), { claimed, postedAt }))
    if (claimed) running.push({ uuid, name, ...defined({ owner, since }) })
  }
  const counts = Object.values(byPriority)
  const unclaimed = counts.reduce((sum, count) => sum + count.unclaimed, 0)
  const claimed = counts.reduce((sum, count) => sum + count.claimed, 0)
  return { jobs: { unclaimed, claimed, byPriority }, queues, running: longestRunning(running) }
}

function countInQueue(
  { unclaimed, claimed, oldest }: QueueCounts = { unclaimed: 0, claimed: 0 },
  job: { readonly claimed: boolean; readonly postedAt: Date | undefined },
): QueueCounts {
  if (job.claimed) return { unclaimed, claimed: claimed + 1, oldest }
  const { postedAt } = job
  const isOlder = postedAt !== undefined && (oldest === undefined || postedAt < oldest)
  return { unclaimed: unclaimed + 1, claimed, oldest: isOlder ? postedAt : oldest }
}

/** Returns the jobs that have been running longest, the longest first; at most ten. */
export function longestRunning(running: readonly RunningView[]): RunningView[] {
  const startOf = ({ since }: RunningView) => since?.getTime() ?? Number.MAX_VALUE
  return running.toSorted((a, b) => startOf(a) - startOf(b)).slice(0, MAX_RUNNING_SHOWN)
}
