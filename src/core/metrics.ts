/**
 * The instruments of this library, and the meter that records their values. A meter passes values to its sinks (`src/telemetry/`); without
 * a sink, nothing is recorded and nothing computed.
 *
 * Labels never contain ids, such as the uuid of a job, or names of owners, keys or resources. The number of flows and schedules in labels
 * is limited, because applications choose their names: each name is a series that Prometheus keeps.
 */

/** The name of an instrument, by the naming rules of Prometheus: it ends with the unit, and `_total` for counters. */
export type InstrumentName = keyof typeof INSTRUMENTS

export interface Instrument {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
  /** The upper bounds of a histogram's buckets, in its unit. */
  readonly buckets?: readonly number[]
}

const RUN_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200] as const
const WAIT_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200, 86_400] as const
const LATE_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 60, 600, 3_600] as const

export const INSTRUMENTS = {
  jobboard_info: {
    type: 'gauge',
    help: 'Always 1; its labels name the release of the application, and of jobboard, Node.js and the time-zone data.',
    labels: ['release', 'version', 'node', 'tz'],
  },
  jobboard_slots: { type: 'gauge', help: 'The number of jobs that the conductor can run at once.', labels: [] },
  jobboard_running: { type: 'gauge', help: 'The number of jobs that run now.', labels: ['board', 'flow'] },
  jobboard_ready: {
    type: 'gauge',
    help: 'Whether the conductor could claim a job if a slot were free: 1 or 0.',
    labels: [],
  },
  jobboard_session_connected: {
    type: 'gauge',
    help: 'Whether the conductor is connected to the board: 1 or 0.',
    labels: ['board'],
  },
  jobboard_board_usable: {
    type: 'gauge',
    help: 'Whether the conductor could claim a job of the board if a slot were free: 1 or 0.',
    labels: ['board'],
  },
  jobboard_logbooks_connected: {
    type: 'gauge',
    help: 'Whether the logbooks of the board could be reached when they were last used or checked: 1 or 0.',
    labels: ['board'],
  },
  jobboard_clock_ahead_seconds: {
    type: 'gauge',
    help: "By how much the clock of the conductor's machine is ahead of the servers' clock; 0 within 2 seconds.",
    labels: ['board'],
  },
  jobboard_notifications_missed_total: {
    type: 'counter',
    help: 'Periods in which the conductor has read changes of the board, and no notification of the server has arrived.',
    labels: ['board'],
  },
  jobboard_stopped_backends_total: {
    type: 'counter',
    help: 'Server processes of Postgres that this conductor has asked to end because their owner is gone, and that did not.',
    labels: ['board'],
  },
  jobboard_owner_deaths_total: {
    type: 'counter',
    help: 'Claimed jobs whose former owner died while it ran them.',
    labels: ['board', 'flow'],
  },
  jobboard_suspects_wait: {
    type: 'gauge',
    help: 'Whether jobs whose last owners died wait because the conductor runs another such job: 1 or 0.',
    labels: [],
  },
  jobboard_jobs_posted_total: {
    type: 'counter',
    help: 'Jobs that this process has posted, without those of schedules.',
    labels: ['flow'],
  },
  jobboard_jobs_claimed_total: { type: 'counter', help: 'Claimed jobs.', labels: ['board', 'flow', 'queue'] },
  jobboard_wait_seconds: {
    type: 'histogram',
    help: 'The time from the post of a job, or from its due time, to the claim of its first run.',
    labels: ['board', 'flow', 'queue'],
    buckets: WAIT_SECONDS,
  },
  jobboard_runs_total: {
    type: 'counter',
    help: 'Runs that have ended, by outcome: done, failed (the job is tried again), trashed, cancelled, returned, lost.',
    labels: ['board', 'flow', 'outcome'],
  },
  jobboard_run_seconds: {
    type: 'histogram',
    help: 'The time from the claim of a job to its settlement.',
    labels: ['board', 'flow', 'outcome'],
    buckets: RUN_SECONDS,
  },
  jobboard_event_loop_blocked_total: {
    type: 'counter',
    help: "Blocks of the event loop for half of the session's timeout or longer.",
    labels: [],
  },
  jobboard_errors_total: { type: 'counter', help: 'Errors of the conductor that belong to no job.', labels: [] },
  jobboard_schedule_fired_total: {
    type: 'counter',
    help: 'Jobs that this conductor has posted for schedules.',
    labels: ['schedule'],
  },
  jobboard_schedule_skipped_total: {
    type: 'counter',
    help: 'Times of schedules that were not run, by reason.',
    labels: ['schedule', 'reason'],
  },
  jobboard_schedule_late_seconds: {
    type: 'histogram',
    help: 'By how much a job of a schedule was posted later than its time.',
    labels: [],
    buckets: LATE_SECONDS,
  },
  jobboard_children: { type: 'gauge', help: 'Child processes for isolated tasks, by state.', labels: ['state'] },
  jobboard_child_rss_bytes: {
    type: 'gauge',
    help: 'The resident memory of the largest child process, when it was last read.',
    labels: [],
  },
  jobboard_child_deaths_total: {
    type: 'counter',
    help: 'Child processes that ended although the conductor had not ended them: crash, or out_of_memory.',
    labels: ['why'],
  },
} as const satisfies Readonly<Record<string, Instrument>>

/** The labels of an instrument, each with its value. */
export type LabelsOf<N extends InstrumentName> = {
  readonly [L in (typeof INSTRUMENTS)[N]['labels'][number]]: string
}

/**
 * Receives the values of a meter. Never throws.
 *
 * @typeParam N the names of the instruments
 */
export interface MetricSink<N extends string = InstrumentName> {
  /** Adds to a counter, sets a gauge, or observes a value with a histogram. */
  record(name: N, value: number, labels: Readonly<Record<string, string>>): void
  /** Calls `refresh`, which records the current gauges, each time before values are read. Returns a function that ends this. */
  onCollect(refresh: () => void): () => void
}

/** Limits the number of different label values, because Prometheus keeps a series for each. */
export class NameLimit {
  readonly #known = new Set<string>()
  readonly #max: number
  readonly #onTooMany: (() => void) | undefined
  #isReported = false

  /** @param options.onTooMany called once, at the first name above the limit */
  constructor({ max = DEFAULT_MAX_NAMES, onTooMany }: { readonly max?: number; readonly onTooMany?: () => void } = {}) {
    this.#max = max
    this.#onTooMany = onTooMany
  }

  /** Returns the name, or `other` if the limit was reached before this name was first used. */
  limit(name: string): string {
    if (this.#known.has(name)) return name
    if (this.#known.size < this.#max) {
      this.#known.add(name)
      return name
    }
    if (!this.#isReported) this.#onTooMany?.()
    this.#isReported = true
    return OTHER
  }
}

/** The labels whose values applications choose: their number is limited. */
const NAMED_BY_USERS = ['flow', 'queue', 'schedule'] as const
/** The label value for names above the limit. */
const OTHER = 'other'
const DEFAULT_MAX_NAMES = 200

export interface MeterOptions {
  readonly sinks: readonly MetricSink[]
  /** The number of flows, of queues, and of schedules, with a label value of their own; others count as `other`. 200 by default. */
  readonly maxNames?: number
  /** Called once for each label with more names than `maxNames`. */
  readonly onTooMany?: (label: string) => void
}

/** Records values with the instruments. */
export class Meter {
  readonly #sinks: readonly MetricSink[]
  readonly #names: ReadonlyMap<string, NameLimit>

  constructor({ sinks, maxNames = DEFAULT_MAX_NAMES, onTooMany }: MeterOptions) {
    this.#sinks = sinks
    this.#names = new Map(
      NAMED_BY_USERS.map((label) => [label, new NameLimit({ max: maxNames, onTooMany: () => onTooMany?.(label) })]),
    )
  }

  /** Calls `refresh`, which records the current gauges, each time before values are read. Returns a function that ends this. */
  onCollect(refresh: () => void): () => void {
    const off = this.#sinks.map((sink) => sink.onCollect(refresh))
    return () => {
      for (const each of off) each()
    }
  }

  /** Records a value. For a counter, it is the number to add. */
  record<N extends InstrumentName>(name: N, value: number, labels: LabelsOf<N>): void {
    const limited = this.#limit(labels)
    for (const sink of this.#sinks) sink.record(name, value, limited)
  }

  #limit(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const limited: Record<string, string> = {}
    for (const [label, value] of Object.entries(labels)) limited[label] = this.limitName(label, value)
    return limited
  }

  /** Returns the name, or `other` if the label has too many names: a caller that sums up a gauge adds to the same series. */
  limitName(label: string, value: string): string {
    return this.#names.get(label)?.limit(value) ?? value
  }
}
