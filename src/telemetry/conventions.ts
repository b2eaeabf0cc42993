/**
 * The names of spans, attributes and OpenTelemetry's metrics. Spans follow the conventions for messaging of OpenTelemetry, which are still
 * in development: when they change, this file does.
 *
 * A metric has the same name here and on `/metrics`: a collector converts `jobboard.run` in seconds to `jobboard_run_seconds`. So the same
 * alert rules and dashboards work with both.
 */
import { INSTRUMENTS, type Instrument, type InstrumentName } from '../core/metrics.ts'
import type { TracedPost, TracedRun, TracedTask } from '../core/tracing.ts'
import type { OtelAttributes } from './open-telemetry-api.ts'

/** The name of the tracer and the meter of this library. */
export const SCOPE_NAME = 'jobboard'

/** The kinds of spans, as `SpanKind` of the API. */
export const SPAN_KIND = { internal: 0, producer: 3, consumer: 4 } as const
/** The code of a span's status for an error, as `SpanStatusCode` of the API. */
export const STATUS_ERROR = 2

export const ERROR_TYPE = 'error.type'
export const OUTCOME = 'jobboard.outcome'
export const CREATED = 'jobboard.created'
export const MESSAGE_ID = 'messaging.message.id'
export const MESSAGE_COUNT = 'messaging.batch.message_count'

const SYSTEM = { 'messaging.system': 'jobboard' } as const
/** The destination of a post of several flows. */
const SEVERAL_FLOWS = 'several flows'
/** The destination of a job without a flow. */
const NO_FLOW = 'none'

/** The name and the attributes of a span. */
interface SpanNaming {
  readonly name: string
  readonly attributes: OtelAttributes
}

export function namePost({ board, flow = SEVERAL_FLOWS }: TracedPost): SpanNaming {
  const attributes = {
    ...SYSTEM,
    'messaging.operation.name': 'post',
    'messaging.operation.type': 'send',
    'messaging.destination.name': flow,
    'jobboard.board': board,
  }
  return { name: `post ${flow}`, attributes }
}

export function nameRun({ board, flow = NO_FLOW, uuid, run }: TracedRun): SpanNaming {
  const attributes = {
    ...SYSTEM,
    'messaging.operation.name': 'run',
    'messaging.operation.type': 'process',
    'messaging.destination.name': flow,
    [MESSAGE_ID]: uuid,
    'jobboard.board': board,
    'jobboard.run': run,
  }
  return { name: `run ${flow}`, attributes }
}

export function nameTask({ flow, task, step }: TracedTask): SpanNaming {
  return {
    name: `${step} ${task}`,
    attributes: { 'jobboard.flow': flow, 'jobboard.task': task, 'jobboard.step': step },
  }
}

/** The name, the unit and the description of a metric. */
export interface MetricNaming {
  readonly name: string
  readonly unit?: string
  readonly description: string
}

/** The endings that Prometheus' names have, and OpenTelemetry's have not: a counter, or the unit. */
const ENDING = /_(total|seconds|bytes)$/
/** The units of OpenTelemetry for these endings. */
const UNITS: Readonly<Record<string, string>> = { seconds: 's', bytes: 'By' }

/** Returns the name, the unit and the description that an instrument has in OpenTelemetry. */
export function nameMetric(instrument: InstrumentName): MetricNaming {
  const { help }: Instrument = INSTRUMENTS[instrument]
  const [, ending = ''] = ENDING.exec(instrument) ?? []
  const name = instrument.replace(/^jobboard_/, 'jobboard.').replace(ENDING, '')
  const unit = UNITS[ending]
  return { name, ...(unit === undefined ? {} : { unit }), description: help }
}
