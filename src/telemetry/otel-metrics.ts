/** Records the instruments with a meter of OpenTelemetry. */
import { INSTRUMENTS, type Instrument, type InstrumentName, type MetricSink } from '../core/metrics.ts'
import { packageVersion } from '../core/package-version.ts'
import { nameMetric, SCOPE_NAME } from './conventions.ts'
import type { OtelAttributes, OtelMeter, OtelMeterProvider, OtelObservable } from './open-telemetry-api.ts'

type Recorder = (value: number, attributes: OtelAttributes) => void

interface GaugeValue {
  readonly value: number
  readonly attributes: OtelAttributes
}

export class OtelMetricSink implements MetricSink {
  readonly #provider: OtelMeterProvider
  readonly #attributes: OtelAttributes
  readonly #recorders = new Map<InstrumentName, Recorder>()
  readonly #refreshers = new Set<() => void>()
  #meter: OtelMeter | undefined
  #isFresh = false

  /** @param options.attributes added to each metric */
  constructor({ provider, attributes }: { readonly provider: OtelMeterProvider; readonly attributes: OtelAttributes }) {
    this.#provider = provider
    this.#attributes = attributes
  }

  record(name: InstrumentName, value: number, labels: Readonly<Record<string, string>>): void {
    const recorder = this.#recorders.get(name) ?? this.#createRecorder(name)
    recorder(value, { ...labels, ...this.#attributes })
  }

  onCollect(refresh: () => void): () => void {
    this.#refreshers.add(refresh)
    // This creates the gauges. Their callbacks call `refresh` later, so without a first value it would never be called.
    refresh()
    return () => this.#refreshers.delete(refresh)
  }

  /** Refreshes all gauges, once for each collection: every gauge has a callback of its own. */
  #refresh(): void {
    if (this.#isFresh) return
    this.#isFresh = true
    queueMicrotask(() => {
      this.#isFresh = false
    })
    for (const refresh of this.#refreshers) refresh()
  }

  /** Creates the instrument at its first value: a meter from before the application has set up its SDK would record nothing. */
  #createRecorder(name: InstrumentName): Recorder {
    const recorder = this.#toRecorder(name)
    this.#recorders.set(name, recorder)
    return recorder
  }

  #toRecorder(instrument: InstrumentName): Recorder {
    const { type, buckets = [] }: Instrument = INSTRUMENTS[instrument]
    const { name, ...described } = nameMetric(instrument)
    const meter = this.#openMeter()
    if (type === 'gauge') return this.#toGauge(meter.createObservableGauge(name, described))
    if (type === 'counter') {
      const counter = meter.createCounter(name, described)
      return (value, attributes) => counter.add(value, attributes)
    }
    const histogram = meter.createHistogram(name, { ...described, advice: { explicitBucketBoundaries: [...buckets] } })
    return (value, attributes) => histogram.record(value, attributes)
  }

  /** Keeps the last value of each series, which is observed when metrics are collected. */
  #toGauge(gauge: OtelObservable): Recorder {
    const values = new Map<string, GaugeValue>()
    gauge.addCallback((result) => {
      this.#refresh()
      for (const { value, attributes } of values.values()) result.observe(value, attributes)
    })
    return (value, attributes) => values.set(JSON.stringify(attributes), { value, attributes })
  }

  #openMeter(): OtelMeter {
    this.#meter ??= this.#provider.getMeter(SCOPE_NAME, packageVersion())
    return this.#meter
  }
}
