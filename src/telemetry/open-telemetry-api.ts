/**
 * The types of the part of `@opentelemetry/api` that this library uses. The package is an optional peer: importing its own types would make
 * every user install it, and a second copy next to the application's would record nothing. Every release 1.x from 1.9 on fits.
 */

export type OtelAttributes = Record<string, string | number | boolean>

export interface OtelContext {
  getValue(key: symbol): unknown
}

export interface OtelSpanContext {
  readonly traceId: string
  readonly spanId: string
  readonly traceFlags: number
  readonly isRemote?: boolean
  readonly traceState?: OtelTraceState
}

/** The `tracestate` of a trace. Only the API creates and reads it. */
export interface OtelTraceState {
  set(key: string, value: string): OtelTraceState
  unset(key: string): OtelTraceState
  get(key: string): string | undefined
  serialize(): string
}

export interface OtelSpan {
  spanContext(): OtelSpanContext
  setAttributes(attributes: OtelAttributes): unknown
  setStatus(status: { code: number; message?: string }): unknown
  end(): void
}

export interface OtelSpanOptions {
  readonly kind: number
  readonly attributes: OtelAttributes
  readonly links?: { context: OtelSpanContext }[]
  readonly root?: boolean
}

export interface OtelTracer {
  startSpan(name: string, options?: OtelSpanOptions, context?: OtelContext): OtelSpan
}

export interface OtelTracerProvider {
  getTracer(name: string, version?: string): OtelTracer
}

export interface OtelInstrumentOptions {
  readonly description?: string
  readonly unit?: string
  readonly advice?: { explicitBucketBoundaries?: number[] }
}

export interface OtelObservable {
  addCallback(callback: (result: OtelObservableResult) => void): void
}

export interface OtelObservableResult {
  observe(value: number, attributes?: OtelAttributes): void
}

export interface OtelMeter {
  createCounter(
    name: string,
    options?: OtelInstrumentOptions,
  ): { add(value: number, attributes?: OtelAttributes): void }
  createHistogram(
    name: string,
    options?: OtelInstrumentOptions,
  ): { record(value: number, attributes?: OtelAttributes): void }
  createObservableGauge(name: string, options?: OtelInstrumentOptions): OtelObservable
}

export interface OtelMeterProvider {
  getMeter(name: string, version?: string): OtelMeter
}

/** The module `@opentelemetry/api`, as `import * as api` returns it. */
export interface OpenTelemetryApi {
  readonly ROOT_CONTEXT: OtelContext
  readonly context: {
    active(): OtelContext
    with<T>(context: OtelContext, work: () => T): T
  }
  readonly trace: OtelTracerProvider & {
    setSpan(context: OtelContext, span: OtelSpan): OtelContext
    setSpanContext(context: OtelContext, spanContext: OtelSpanContext): OtelContext
  }
  readonly metrics: OtelMeterProvider
  isSpanContextValid(spanContext: OtelSpanContext): boolean
  createTraceState(state?: string): OtelTraceState
}
