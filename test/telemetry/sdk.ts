/** An SDK of OpenTelemetry in this process, for tests: it keeps spans and metrics in memory. */
import * as api from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { onTestFinished } from 'vitest'

/** Long enough never to come in a test, which reads metrics itself. */
const NEVER_MS = 1_000_000

export function openSdk() {
  const spans = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: NEVER_MS })
  const meterProvider = new MeterProvider({ readers: [reader] })
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  api.trace.setGlobalTracerProvider(tracerProvider)
  api.metrics.setGlobalMeterProvider(meterProvider)
  onTestFinished(async () => {
    api.context.disable()
    api.trace.disable()
    api.metrics.disable()
    await Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()])
  })
  return {
    api,
    tracer: api.trace.getTracer('test'),
    /** Returns the spans that have ended, in the order of their ends. */
    spans: () => spans.getFinishedSpans(),
    find: (name: string) => spans.getFinishedSpans().find((span) => span.name === name),
    /** Collects the metrics, and returns their data points by name. */
    metrics: async () => {
      exporter.reset()
      await meterProvider.forceFlush()
      const found = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
      return new Map(found.map(({ descriptor, dataPoints }) => [descriptor.name, { descriptor, dataPoints }]))
    },
  }
}

/** Returns the names of a span's links, by the spans that they lead to. */
export function linksOf(span: ReadableSpan | undefined, all: readonly ReadableSpan[]): (string | undefined)[] {
  return (span?.links ?? []).map(
    ({ context }) => all.find((each) => each.spanContext().spanId === context.spanId)?.name,
  )
}
