/** The state of a board as plain data. */
import type { BoardPause, JobBoard, LimitKeyUse, LimitView, Priority, SessionState } from '../../board/index.ts'
import { type ConductorView, conductorView, type JobView } from '../../views/index.ts'
import { PRIORITY_CHOICES } from '../input/choices.ts'
import { LiveJobs } from './live-jobs.ts'

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
  readonly jobs: JobCount & { readonly byPriority: Readonly<Record<Priority, JobCount>> }
  readonly trashed: number
  readonly conductors: readonly ConductorView[]
  /** The slots of all conductors that report them. */
  readonly slots: { readonly busy: number; readonly all: number }
  /** The jobs that have been running longest, the longest first. */
  readonly running: readonly RunningView[]
  /** The limits that are set; undefined where none is. */
  readonly limits?: LimitsView
}

export interface LimitsView {
  /** The number of keys and patterns for which something is set. */
  readonly set: number
  /** The keys and patterns of which no job starts, because they are held or permit 0 jobs. */
  readonly stopped: readonly string[]
  /** The keys of which all slots are taken, or no token is left. */
  readonly full: readonly string[]
}

export type RunningView = Pick<JobView, 'uuid' | 'name' | 'owner'> & { readonly since?: Date }

/** The maximum number of running jobs in the view. */
const MAX_RUNNING_SHOWN = 10

/** Reads a board repeatedly. Reads the trash, which costs most, only if it may have changed. */
export class InfoReader implements Disposable {
  readonly #board: JobBoard
  readonly #unsubscribe: (() => void)[]
  readonly #live: LiveJobs
  #trashed: number | undefined
  #looks = 0

  constructor(board: JobBoard) {
    this.#board = board
    this.#live = new LiveJobs(board)
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
    const { jobs, running } = await countJobs(this.#live)
    const conductors = (await board.entities('conductor')).map(conductorView)
    const [limits, pause] = [await readLimits(board), await board.pauseOrigin()]
    conductors.sort((a, b) => (a.name < b.name ? -1 : 1))
    return {
      board: board.uri,
      state: board.state,
      paused: board.paused,
      ...(pause ? { pause } : {}),
      jobs,
      trashed: await this.#countTrash(),
      conductors,
      slots: {
        busy: sum(conductors.map(({ running = 0 }) => running)),
        all: sum(conductors.map(({ concurrency = 0 }) => concurrency)),
      },
      running,
      ...(limits ? { limits } : {}),
    }
  }

  /** Counts the jobs in the trash. There is no event for purges by other processes. */
  async #countTrash(): Promise<number> {
    this.#looks += 1
    if (this.#trashed !== undefined && this.#looks % 30 !== 0) return this.#trashed
    let count = 0
    for await (const _ of this.#board.trashed()) count += 1
    this.#trashed = count
    return count
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

async function countJobs(live: LiveJobs): Promise<Pick<InfoView, 'jobs' | 'running'>> {
  const byPriority = Object.fromEntries(PRIORITY_CHOICES.map((word) => [word, { unclaimed: 0, claimed: 0 }])) as Record<
    Priority,
    { unclaimed: number; claimed: number }
  >
  const running: RunningView[] = []
  for (const { view, since } of await live.read()) {
    const claimed = view.state === 'CLAIMED'
    byPriority[view.priority][claimed ? 'claimed' : 'unclaimed'] += 1
    if (claimed) running.push(runningView(view, since))
  }
  running.sort((a, b) => (a.since?.getTime() ?? Infinity) - (b.since?.getTime() ?? Infinity))
  const counts = Object.values(byPriority)
  const unclaimed = sum(counts.map((count) => count.unclaimed))
  const claimed = sum(counts.map((count) => count.claimed))
  return { jobs: { unclaimed, claimed, byPriority }, running: running.slice(0, MAX_RUNNING_SHOWN) }
}

function runningView({ uuid, name, owner }: JobView, since: Date | undefined): RunningView {
  return { uuid, name, ...(owner === undefined ? {} : { owner }), ...(since ? { since } : {}) }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
