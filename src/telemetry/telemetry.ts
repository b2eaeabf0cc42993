/** The option `telemetry` of boards and conductors. */
import { InvalidArgument } from '../core/errors.ts'
import type { MetricSink } from '../core/metrics.ts'
import type { Tracer } from '../core/tracing.ts'

/** The receiver of metrics and spans. Create it with `openTelemetry(api)` or `prometheus()`: its properties may change in every release. */
export interface Telemetry {
  /** Receives the metrics; absent if there are none. */
  readonly metrics?: MetricSink | undefined
  /** Starts the spans; absent if there are none. */
  readonly tracer?: Tracer | undefined
}

/** Checks the option `telemetry`. @throws InvalidArgument */
export function assertTelemetry(telemetry: Telemetry | undefined, where: string): void {
  if (telemetry === undefined) return
  const { metrics, tracer }: Partial<Telemetry> = Object(telemetry)
  const isSink = metrics === undefined || typeof metrics.record === 'function'
  const isTracer = tracer === undefined || typeof tracer.startRun === 'function'
  if (isSink && isTracer && (metrics ?? tracer)) return
  throw new InvalidArgument(
    `${where}: telemetry must be the result of prometheus(), or of openTelemetry(api) with ` +
      "import * as api from '@opentelemetry/api'",
  )
}
