/** Telemetry by OpenTelemetry: the application's SDK decides where metrics and spans are sent. */
import { InvalidArgument } from '../core/errors.ts'
import { assertOptions } from '../core/options.ts'
import type { OpenTelemetryApi, OtelAttributes, OtelMeterProvider, OtelTracerProvider } from './open-telemetry-api.ts'
import { OtelMetricSink } from './otel-metrics.ts'
import { ApiTracer, type Propagation } from './otel-tracer.ts'
import type { Telemetry } from './telemetry.ts'

/** The options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /** The relation of a run's span to the span of its post: `link` by default. */
  readonly propagation?: Propagation
  /** The provider of the tracer: by default the provider that the application has registered. With false, there are no spans. */
  readonly tracerProvider?: OtelTracerProvider | false
  /** The provider of the meter: by default the provider that the application has registered. With false, there are no metrics. */
  readonly meterProvider?: OtelMeterProvider | false
  /** Attributes to add to each metric, such as the name of a conductor if the process has several. */
  readonly attributes?: OtelAttributes
}

const PROPAGATIONS: readonly unknown[] = ['link', 'parent', 'none'] satisfies Propagation[]

/**
 * Returns the telemetry for boards and conductors of an application that uses OpenTelemetry. Set up the SDK first: without one, the API
 * records nothing.
 *
 * @throws InvalidArgument
 * @example
 * import * as api from '@opentelemetry/api'
 * const board = await openBoard(uri, { telemetry: openTelemetry(api) })
 */
export function openTelemetry(api: OpenTelemetryApi, options: OpenTelemetryOptions = {}): Telemetry {
  const { trace, context, metrics, ROOT_CONTEXT: root }: Partial<OpenTelemetryApi> = Object(api)
  if (!trace || !context || !metrics || !root)
    throw new InvalidArgument(
      "openTelemetry: the first argument must be the API, as in import * as api from '@opentelemetry/api'",
    )
  assertOptions<OpenTelemetryOptions>(
    options,
    { propagation: true, tracerProvider: true, meterProvider: true, attributes: true },
    'openTelemetry',
  )
  const { propagation = 'link', tracerProvider = trace, meterProvider = metrics, attributes = {} } = options
  if (!PROPAGATIONS.includes(propagation))
    throw new InvalidArgument(`openTelemetry: propagation must be one of ${PROPAGATIONS.join(', ')}`)
  return {
    metrics: meterProvider === false ? undefined : new OtelMetricSink({ provider: meterProvider, attributes }),
    tracer: tracerProvider === false ? undefined : new ApiTracer({ api, provider: tracerProvider, propagation }),
  }
}

/**
 * Loads the package `@opentelemetry/api`, and returns its telemetry.
 *
 * @throws InvalidArgument if the package is not installed
 */
export async function loadOpenTelemetry(options: OpenTelemetryOptions = {}): Promise<Telemetry> {
  let api: OpenTelemetryApi
  try {
    api = await import('@opentelemetry/api')
  } catch (cause) {
    throw new InvalidArgument(
      'OpenTelemetry needs the package @opentelemetry/api: run npm install @opentelemetry/api, and set up an SDK',
      { cause },
    )
  }
  return openTelemetry(api, options)
}
