/** Telemetry for applications: metrics and spans for OpenTelemetry, metrics for Prometheus. */
export { type OpenTelemetryOptions, openTelemetry } from './open-telemetry.ts'
export type { OpenTelemetryApi } from './open-telemetry-api.ts'
export type { Propagation } from './otel-tracer.ts'
export { type PrometheusTelemetry, prometheus } from './prometheus.ts'
export { assertTelemetry, type Telemetry } from './telemetry.ts'
