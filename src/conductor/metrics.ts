/** Records the metrics of a conductor from its events, if it has a meter with sinks. */
import { InvalidArgument } from '../core/errors.ts'
import type { Emitter } from '../core/events.ts'
import type { Logger } from '../core/log.ts'
import { INSTRUMENTS, Meter, type MetricSink } from '../core/metrics.ts'
import { assertOptions } from '../core/options.ts'
import { packageVersion } from '../core/package-version.ts'
import { monotonic } from '../core/time.ts'
import { PROMETHEUS_CONTENT_TYPE, PrometheusSink } from '../telemetry/internal.ts'
import type { ConductorEvents } from './events.ts'
import { type RunSettled, type RunStarted, toOutcome } from './runs/runs.ts'

/** The option `metrics` of conductors. */
export interface MetricsOptions {
  /** The number of names of flows, and of schedules, that are told apart; others count as `other`. 200 by default. */
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
  readonly connected: boolean
  /** The number of child processes by state. */
  readonly children: Readonly<Record<string, number>> | undefined
  /** The resident memory of the largest child process, in bytes; undefined if it is not known. */
  readonly childBytes: number | undefined
}

export interface ConductorMetricsOptions extends MetricsOptions {
  /** Whether there is a text for Prometheus. */
  readonly hasText: boolean
  /** The sink of the option `telemetry`. */
  readonly sink: MetricSink | undefined
  readonly events: Emitter<ConductorEvents>
  readonly log: Logger
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
  readonly #running = new Map<string, number>()
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

  /** What `/metrics` answers; undefined without a text. */
  get answer(): MetricsAnswer | undefined {
    const prometheus = this.#prometheus
    return prometheus && { contentType: PROMETHEUS_CONTENT_TYPE, text: () => prometheus.text() }
  }

  /** Records the events, and the gauges when values are read, until the result is disposed. */
  subscribe(): Disposable {
    const { events } = this.#options
    const meter = this.#meter
    const { node, tz = '' } = process.versions
    meter.record('jobboard_info', 1, { version: packageVersion(), node, tz })
    // A counter that is not there yet cannot be told from one that is not scraped.
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
        this.#recordGauges({ slots: 0, ready: false, connected: false, children, childBytes: 0 })
      },
    }
  }

  #recordGauges({ slots, ready, connected, children = {}, childBytes }: ConductorGauges): void {
    this.#meter.record('jobboard_slots', slots, {})
    this.#meter.record('jobboard_ready', ready ? 1 : 0, {})
    this.#meter.record('jobboard_session_connected', connected ? 1 : 0, {})
    for (const [state, count] of Object.entries(children)) {
      this.#childStates.add(state)
      this.#meter.record('jobboard_children', count, { state })
    }
    if (childBytes !== undefined) this.#meter.record('jobboard_child_rss_bytes', childBytes, {})
  }

  #onStarted(event: RunStarted): void {
    const { board, job, run } = event
    const flow = this.#flowOf(event)
    this.#meter.record('jobboard_jobs_claimed_total', 1, { flow })
    this.#changeRunning(flow, 1)
    this.#startedAt.set(toKey(event), monotonic())
    const readyAt = Math.max(job.postedAt?.getTime() ?? Number.NaN, job.delayedUntil?.getTime() ?? 0)
    // A later run waited for its back-off, or its owner was lost.
    if (run === 1 && !Number.isNaN(readyAt))
      // Jobs are posted and due by the clock of their board.
      this.#meter.record('jobboard_wait_seconds', Math.max(0, board.clock.now() - readyAt) / 1_000, { flow })
  }

  #onSettled(event: RunSettled): void {
    const flow = this.#flowOf(event)
    const outcome = toOutcome(event)
    this.#changeRunning(flow, -1)
    this.#meter.record('jobboard_runs_total', 1, { flow, outcome })
    const startedAt = this.#startedAt.get(toKey(event))
    this.#startedAt.delete(toKey(event))
    if (startedAt !== undefined)
      this.#meter.record('jobboard_run_seconds', (monotonic() - startedAt) / 1_000, { flow, outcome })
  }

  #flowOf({ job }: RunStarted): string {
    return this.#meter.limitName('flow', job.details.flow ?? 'none')
  }

  #changeRunning(flow: string, by: 1 | -1): void {
    const running = (this.#running.get(flow) ?? 0) + by
    this.#running.set(flow, running)
    this.#meter.record('jobboard_running', running, { flow })
  }
}

function toKey({ job, run }: Pick<RunStarted, 'job' | 'run'>): string {
  return `${job.ref} ${run}`
}
