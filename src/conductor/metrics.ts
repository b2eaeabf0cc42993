/** Records the metrics of a conductor from its events, if it has a meter with sinks. */

import { boardInternals } from '../board/internal.ts'
import { InvalidArgument } from '../core/errors.ts'
import type { Emitter } from '../core/events.ts'
import type { Logger } from '../core/log.ts'
import { INSTRUMENTS, Meter, type MetricSink } from '../core/metrics.ts'
import { assertOptions } from '../core/options.ts'
import { packageVersion } from '../core/package-version.ts'
import { monotonic } from '../core/time.ts'
import { PROMETHEUS_CONTENT_TYPE, PrometheusSink } from '../telemetry/internal.ts'
import { toBoardLabel } from './boards/board-entries.ts'
import type { ConductorEvents } from './events.ts'
import { type RunSettled, type RunStarted, toOutcome } from './runs/runs.ts'

/** The option `metrics` of conductors. */
export interface MetricsOptions {
  /** The number of names of flows, of queues, and of schedules, that are distinguished; others count as `other`. 200 by default. */
  readonly maxNames?: number
}

/** Checks the option `metrics`. @throws InvalidArgument */
export function assertMetrics(metrics: boolean | MetricsOptions | undefined): void {
  if (metrics === undefined || typeof metrics === 'boolean') return
  if (typeof metrics !== 'object' || metrics === null)
    throw new InvalidArgument('a conductor: metrics must be true, false, or an object, as in { maxNames: 500 }')
  assertOptions<MetricsOptions>(metrics, { maxNames: true }, 'metrics')
  const { maxNames } = metrics
  if (maxNames !== undefined && (!Number.isSafeInteger(maxNames) || maxNames < 1))
    throw new InvalidArgument(`metrics: maxNames must be a whole number from 1, got ${maxNames}`)
}

/** The state of a conductor at the moment, for its gauges. */
export interface ConductorGauges {
  readonly slots: number
  readonly ready: boolean
  readonly boards: readonly BoardGauges[]
  /** Whether suspects wait for a running suspect. */
  readonly suspectsWait: boolean
  /** The number of child processes by state. */
  readonly children: Readonly<Record<string, number>> | undefined
  /** The resident memory of the largest child process, in bytes; undefined if it is not known. */
  readonly childBytes: number | undefined
}

/** The state of one board of a conductor. */
export interface BoardGauges {
  /** The name of the board, without its servers. */
  readonly board: string
  readonly connected: boolean
  /** Whether a job of this board could be claimed if a slot were free. */
  readonly usable: boolean
  readonly storage: 'there' | 'away'
  readonly clockAheadMs: number
  /** The totals of the board's counters since the start. */
  readonly totals: Readonly<Partial<Record<BoardCounter, number>>>
}

/** The counters of a board that are read with the gauges. */
type BoardCounter = 'jobboard_notifications_missed_total' | 'jobboard_stopped_backends_total'

export interface ConductorMetricsOptions extends MetricsOptions {
  /** Whether there is a text for Prometheus. */
  readonly hasText: boolean
  /** The sink of the option `telemetry`. */
  readonly sink: MetricSink | undefined
  readonly events: Emitter<ConductorEvents>
  readonly log: Logger
  /** The release of the application. */
  readonly release: string | undefined
  /** Returns the gauges; called when the metrics are read. */
  readonly gauges: () => ConductorGauges
}

/** The metrics as HTTP answers them. */
export interface MetricsAnswer {
  readonly contentType: string
  /** Returns the present values. */
  text(): string
}

/** The metrics of one conductor. */
export class ConductorMetrics {
  readonly #options: ConductorMetricsOptions
  readonly #prometheus: PrometheusSink | undefined
  readonly #meter: Meter
  readonly #running = new Map<string, { readonly board: string; readonly flow: string; jobs: number }>()
  readonly #boards = new Set<string>()
  /** The totals that were recorded last, by counter and board. */
  readonly #totals = new Map<string, number>()
  readonly #childStates = new Set<string>()
  /** The starts of the runs under way, by job and run. */
  readonly #startedAt = new Map<string, number>()

  constructor(options: ConductorMetricsOptions) {
    this.#options = options
    const { maxNames, log, hasText, sink } = options
    this.#prometheus = hasText ? new PrometheusSink(INSTRUMENTS) : undefined
    this.#meter = new Meter({
      sinks: [this.#prometheus ?? [], sink ?? []].flat(),
      ...(maxNames === undefined ? {} : { maxNames }),
      onTooMany: (label) =>
        log.warn({ label }, `metrics: there are more names than maxNames; further ones count as other`),
    })
  }

  /** The answer of `/metrics`; undefined without a text. */
  get answer(): MetricsAnswer | undefined {
    const prometheus = this.#prometheus
    return prometheus && { contentType: PROMETHEUS_CONTENT_TYPE, text: () => prometheus.text() }
  }

  /** Records the events, and the gauges when values are read, until the result is disposed. */
  subscribe(): Disposable {
    const { events, release = '' } = this.#options
    const meter = this.#meter
    const { node, tz = '' } = process.versions
    meter.record('jobboard_info', 1, { release, version: packageVersion(), node, tz })
    // A missing counter cannot be distinguished from a counter that is not scraped.
    meter.record('jobboard_errors_total', 0, {})
    meter.record('jobboard_event_loop_blocked_total', 0, {})
    events.on('started', (event) => this.#onStarted(event))
    events.on('settled', (event) => this.#onSettled(event))
    events.on('eventLoopBlocked', () => meter.record('jobboard_event_loop_blocked_total', 1, {}))
    events.on('error', () => meter.record('jobboard_errors_total', 1, {}))
    events.on('fired', ({ schedule, lateMs }) => {
      meter.record('jobboard_schedule_fired_total', 1, { schedule })
      meter.record('jobboard_schedule_late_seconds', lateMs / 1_000, {})
    })
    events.on('skipped', ({ schedule, reason, count }) =>
      meter.record('jobboard_schedule_skipped_total', count, { schedule, reason }),
    )
    events.on('childDied', ({ expected, outOfMemory }) => {
      if (!expected) meter.record('jobboard_child_deaths_total', 1, { why: outOfMemory ? 'out_of_memory' : 'crash' })
    })
    const off = meter.onCollect(() => this.#recordGauges(this.#options.gauges()))
    return {
      [Symbol.dispose]: () => {
        off()
        // An application may serve the metrics for longer than the conductor lives: a stopped one must not look ready.
        const children = Object.fromEntries([...this.#childStates].map((state) => [state, 0]))
        const away = { connected: false, usable: false, storage: 'away', clockAheadMs: 0 } as const
        const boards = [...this.#boards].map((board) => ({ board, ...away, totals: {} }))
        this.#recordGauges({ slots: 0, ready: false, boards, suspectsWait: false, children, childBytes: 0 })
      },
    }
  }

  #recordGauges({ slots, ready, boards, suspectsWait, children = {}, childBytes }: ConductorGauges): void {
    this.#meter.record('jobboard_slots', slots, {})
    this.#meter.record('jobboard_ready', ready ? 1 : 0, {})
    this.#meter.record('jobboard_suspects_wait', suspectsWait ? 1 : 0, {})
    for (const { board, connected, usable, storage, clockAheadMs, totals } of boards) {
      this.#boards.add(board)
      this.#meter.record('jobboard_session_connected', connected ? 1 : 0, { board })
      this.#meter.record('jobboard_board_usable', usable ? 1 : 0, { board })
      this.#meter.record('jobboard_logbooks_connected', storage === 'there' ? 1 : 0, { board })
      this.#meter.record('jobboard_clock_ahead_seconds', clockAheadMs / 1_000, { board })
      for (const [counter, total] of Object.entries(totals)) this.#recordTotal(counter as BoardCounter, total, board)
    }
    for (const [state, count] of Object.entries(children)) {
      this.#childStates.add(state)
      this.#meter.record('jobboard_children', count, { state })
    }
    if (childBytes !== undefined) this.#meter.record('jobboard_child_rss_bytes', childBytes, {})
  }

  #recordTotal(counter: BoardCounter, total: number, board: string): void {
    const key = `${counter} ${board}`
    this.#meter.record(counter, total - (this.#totals.get(key) ?? 0), { board })
    this.#totals.set(key, total)
  }

  #onStarted(event: RunStarted): void {
    const { board, job, run } = event
    const labels = this.#labelsOf(event)
    const queue = this.#meter.limitName('queue', job.queue)
    this.#meter.record('jobboard_jobs_claimed_total', 1, { ...labels, queue })
    const former = job.attempts.at(-2)
    if (former && former.ended === undefined) this.#meter.record('jobboard_owner_deaths_total', 1, labels)
    this.#changeRunning(labels, 1)
    this.#startedAt.set(toKey(event), monotonic())
    const readyAt = Math.max(job.postedAt?.getTime() ?? Number.NaN, job.delayedUntil?.getTime() ?? 0)
    // A later run waited for its back-off, or its owner was lost.
    if (run === 1 && !Number.isNaN(readyAt))
      // Times of posts and due times are from the servers' clock: the clock of this machine may be an hour off.
      this.#meter.record('jobboard_wait_seconds', Math.max(0, boardInternals(board).now - readyAt) / 1_000, {
        ...labels,
        queue,
      })
  }

  #onSettled(event: RunSettled): void {
    const labels = this.#labelsOf(event)
    const outcome = toOutcome(event)
    this.#changeRunning(labels, -1)
    this.#meter.record('jobboard_runs_total', 1, { ...labels, outcome })
    const startedAt = this.#startedAt.get(toKey(event))
    this.#startedAt.delete(toKey(event))
    if (startedAt !== undefined)
      this.#meter.record('jobboard_run_seconds', (monotonic() - startedAt) / 1_000, { ...labels, outcome })
  }

  #labelsOf({ board, job }: RunStarted): { readonly board: string; readonly flow: string } {
    return { board: toBoardLabel(board.uri), flow: this.#meter.limitName('flow', job.details.flow ?? 'none') }
  }

  #changeRunning({ board, flow }: { readonly board: string; readonly flow: string }, by: 1 | -1): void {
    const key = `${board}\0${flow}`
    const running = this.#running.get(key) ?? { board, flow, jobs: 0 }
    running.jobs += by
    this.#running.set(key, running)
    this.#meter.record('jobboard_running', running.jobs, { board, flow })
  }
}

function toKey({ job, run }: Pick<RunStarted, 'job' | 'run'>): string {
  return `${job.ref} ${run}`
}
