/** Reads the gauges of one board: jobs from the view, without a request; the rest by few requests, which not every scrape repeats. */
import type { JobBoard, QueuePause } from '../../../board/index.ts'
import type { JobsSurvey } from '../../../board/internal.ts'
import { boardInternals } from '../../../board/internal.ts'
import { abortAfter, followSignals, rejectOnAbort } from '../../../core/async/abort.ts'
import { NotConnected, Timeout, UnsupportedCapability } from '../../../core/errors.ts'
import { NameLimit } from '../../../core/metrics.ts'
import type { PrometheusSink } from '../../../telemetry/internal.ts'
import {
  conductorView,
  countSlots,
  isLate,
  pauseOfQueue,
  queuesPausedByName,
  type Slots,
} from '../../../views/index.ts'
import type { BoardGauge } from './board-gauges.ts'
import { ThrottledRead } from './throttled-read.ts'

/** The time limit for reading a board, below the ten seconds for which Prometheus waits by default. */
const READ_TIMEOUT_MS = 8_000
/** The minimum time between two passes over the view. */
const JOBS_PERIOD_MS = 5_000
/** The minimum time between two reads of the trash: its jobs are listed, because no backend counts them. */
const TRASH_PERIOD_MS = 60_000
const CONDUCTORS_PERIOD_MS = 5_000
const SCHEDULES_PERIOD_MS = 30_000
/** The maximum number of jobs of the trash that are read. */
const MAX_TRASHED_JOBS = 10_000
/** The label of jobs without a flow. */
const NO_FLOW = 'none'

type Counts = ReadonlyMap<string, number>

interface Trash {
  readonly flows: Counts
  readonly isComplete: boolean
}

interface Conductors {
  readonly states: Counts
  readonly slots: Slots
}

interface Schedules {
  readonly states: Counts
  readonly late: number
}

export class GaugeReader implements Disposable {
  readonly #board: JobBoard
  readonly #label: string
  readonly #flows = new NameLimit()
  readonly #queues = new NameLimit()
  readonly #kinds = new NameLimit()
  readonly #jobs: ThrottledRead<JobsSurvey>
  readonly #trash: ThrottledRead<Trash>
  readonly #conductors: ThrottledRead<Conductors>
  readonly #schedules: ThrottledRead<Schedules | undefined>
  readonly #paused: ThrottledRead<readonly QueuePause[]>
  #viewing: Promise<Disposable> | undefined

  /** @param options.label the name of the board in labels */
  constructor(
    board: JobBoard,
    { label, maxTrash = MAX_TRASHED_JOBS }: { readonly label: string; readonly maxTrash?: number },
  ) {
    this.#board = board
    this.#label = label
    this.#jobs = new ThrottledRead(() => this.#survey(), { minPeriodMs: JOBS_PERIOD_MS })
    this.#trash = new ThrottledRead(() => this.#readTrash(maxTrash), { minPeriodMs: TRASH_PERIOD_MS })
    this.#conductors = new ThrottledRead(() => this.#readConductors(), { minPeriodMs: CONDUCTORS_PERIOD_MS })
    this.#schedules = new ThrottledRead(() => this.#readSchedules(), { minPeriodMs: SCHEDULES_PERIOD_MS })
    this.#paused = new ThrottledRead(() => this.#board.pausedQueues(), { minPeriodMs: SCHEDULES_PERIOD_MS })
  }

  [Symbol.dispose](): void {
    this.#viewing?.then(
      (view) => view[Symbol.dispose](),
      () => undefined,
    )
  }

  /** Records the gauges, or only that the board could not be read in time. */
  async record(sink: PrometheusSink<BoardGauge>): Promise<void> {
    using time = followSignals([])
    using _timer = abortAfter(time, READ_TIMEOUT_MS, () => new Timeout('the board does not answer'))
    const reading = this.#read()
    try {
      const record = await rejectOnAbort(reading, time)
      this.#set(sink, 'jobboard_board_up', 1)
      record(sink)
    } catch (error) {
      reading.catch(() => undefined)
      if (!(error instanceof NotConnected || error instanceof Timeout)) throw error
      this.#set(sink, 'jobboard_board_up', 0)
    }
  }

  /** Reads everything before it records anything: a board that goes away during the reads must have no gauges rather than some. */
  async #read(): Promise<(sink: PrometheusSink<BoardGauge>) => void> {
    if (!this.#board.connected) throw new NotConnected(`${this.#board.uri} is away`)
    const [jobs, trash, conductors, schedules, paused] = await Promise.all([
      this.#jobs.get(),
      this.#trash.get(),
      this.#conductors.get(),
      this.#schedules.get(),
      this.#paused.get(),
    ])
    return (sink) => {
      this.#set(sink, 'jobboard_board_paused', this.#board.paused ? 1 : 0)
      this.#recordJobs(sink, jobs)
      this.#recordPauses(sink, paused, jobs)
      this.#recordAll(sink, 'jobboard_board_trash', { label: 'flow', counts: limitNames(trash.flows, this.#flows) })
      this.#set(sink, 'jobboard_board_complete', trash.isComplete ? 1 : 0, { part: 'trash' })
      this.#recordAll(sink, 'jobboard_board_conductors', { label: 'state', counts: conductors.states })
      this.#set(sink, 'jobboard_board_slots', conductors.slots.all)
      this.#set(sink, 'jobboard_board_slots_taken', conductors.slots.busy)
      if (!schedules) return
      this.#recordAll(sink, 'jobboard_board_schedules', { label: 'state', counts: schedules.states })
      this.#set(sink, 'jobboard_board_schedules_late', schedules.late)
    }
  }

  #recordJobs(sink: PrometheusSink<BoardGauge>, { total, isComplete, flows, queues, limited }: JobsSurvey): void {
    this.#set(sink, 'jobboard_board_length', total)
    this.#set(sink, 'jobboard_board_complete', isComplete ? 1 : 0, { part: 'jobs' })
    this.#recordSurveys(sink, flows, {
      ...{ label: 'flow', names: this.#flows },
      ...{ jobs: 'jobboard_board_jobs', oldest: 'jobboard_board_oldest_waiting_seconds' },
    })
    this.#recordSurveys(sink, queues, {
      ...{ label: 'queue', names: this.#queues },
      ...{ jobs: 'jobboard_board_queue_jobs', oldest: 'jobboard_board_queue_oldest_waiting_seconds' },
    })
    const kinds = countBy(
      [...limited],
      ([key]) => this.#kinds.limit(key.split('/', 1)[0] ?? key),
      ([, count]) => count,
    )
    this.#recordAll(sink, 'jobboard_board_limit_waiting', { label: 'kind', counts: kinds })
  }

  /** Records which queues are paused: those that were named, and those with jobs that a pattern pauses. */
  #recordPauses(sink: PrometheusSink<BoardGauge>, pauses: readonly QueuePause[], { queues }: JobsSurvey): void {
    const withJobs = [...queues.keys()].filter((queue) => pauseOfQueue(queue, pauses))
    const names = [...queuesPausedByName(pauses), ...withJobs].map((queue) => this.#queues.limit(queue))
    for (const queue of new Set(names)) this.#set(sink, 'jobboard_board_queue_paused', 1, { queue })
  }

  /** Records the jobs by name and state, and the ages of the jobs that have waited longest. */
  #recordSurveys(
    sink: PrometheusSink<BoardGauge>,
    surveys: JobsSurvey['flows'],
    gauges: {
      readonly label: string
      readonly names: NameLimit
      readonly jobs: BoardGauge
      readonly oldest: BoardGauge
    },
  ): void {
    const { label, names } = gauges
    const counts = new Map<string, { readonly name: string; readonly state: string; count: number }>()
    const oldest = new Map<string, number>()
    const now = boardInternals(this.#board).now
    for (const [full, survey] of surveys) {
      const name = names.limit(full)
      for (const [state, count] of Object.entries(survey.counts)) {
        const key = JSON.stringify([name, state])
        counts.set(key, { name, state, count: count + (counts.get(key)?.count ?? 0) })
      }
      const age = survey.oldest === undefined ? 0 : Math.max(0, now - survey.oldest) / 1_000
      oldest.set(name, Math.max(age, oldest.get(name) ?? 0))
    }
    for (const { name, state, count } of counts.values()) this.#set(sink, gauges.jobs, count, { [label]: name, state })
    this.#recordAll(sink, gauges.oldest, { label, counts: oldest })
  }

  #recordAll(
    sink: PrometheusSink<BoardGauge>,
    gauge: BoardGauge,
    { label, counts }: { readonly label: string; readonly counts: Counts },
  ): void {
    for (const [value, count] of counts) this.#set(sink, gauge, count, { [label]: value })
  }

  #set(
    sink: PrometheusSink<BoardGauge>,
    gauge: BoardGauge,
    value: number,
    labels: Readonly<Record<string, string>> = {},
  ): void {
    sink.record(gauge, value, { board: this.#label, ...labels })
  }

  async #survey(): Promise<JobsSurvey> {
    this.#viewing ??= this.#board.view()
    try {
      await this.#viewing
    } catch (error) {
      this.#viewing = undefined
      throw error
    }
    return boardInternals(this.#board).survey()
  }

  async #readTrash(max: number): Promise<Trash> {
    const flows = new Map<string, number>()
    let count = 0
    for await (const { details } of this.#board.trashed()) {
      if (count === max) return { flows, isComplete: false }
      count += 1
      const flow = details.flow ?? NO_FLOW
      flows.set(flow, (flows.get(flow) ?? 0) + 1)
    }
    return { flows, isComplete: true }
  }

  async #readConductors(): Promise<Conductors> {
    const conductors = (await this.#board.entities('conductor')).map(conductorView)
    return { states: countBy(conductors, ({ state = 'unknown' }) => state), slots: countSlots(conductors) }
  }

  /** Reads the schedules; returns undefined for a board without schedules, such as a board that TaskFlow shares. */
  async #readSchedules(): Promise<Schedules | undefined> {
    try {
      const schedules = await this.#board.schedules.list()
      const late = schedules.filter((schedule) => schedule.state === 'active' && isLate(schedule))
      return { states: countBy(schedules, ({ state }) => state), late: late.length }
    } catch (error) {
      if (error instanceof UnsupportedCapability) return undefined
      throw error
    }
  }
}

/** Sums up `countOf` of the things by their keys. */
function countBy<T>(
  things: readonly T[],
  keyOf: (thing: T) => string,
  countOf: (thing: T) => number = () => 1,
): Counts {
  const counts = new Map<string, number>()
  for (const thing of things) {
    const key = keyOf(thing)
    counts.set(key, (counts.get(key) ?? 0) + countOf(thing))
  }
  return counts
}

/** Adds up the counts of names above the limit as `other`. */
function limitNames(counts: Counts, names: NameLimit): Counts {
  return countBy(
    [...counts],
    ([name]) => names.limit(name),
    ([, count]) => count,
  )
}
