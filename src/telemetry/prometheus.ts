/**
 * Keeps the values of a meter, and writes them in the text format of Prometheus.
 *
 * No library is used, because the format is small, and prom-client keeps its metrics in a registry of its module: an application that loads
 * two copies of it exports only a part of the metrics, without an error. See decision 45.
 */
import { INSTRUMENTS, type Instrument, type InstrumentName, type MetricSink } from '../core/metrics.ts'
import type { Telemetry } from './telemetry.ts'

/** The content type of {@link PrometheusSink.text}. */
export const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Telemetry whose metrics the application serves itself. */
export interface PrometheusTelemetry extends Telemetry {
  readonly contentType: string
  /** Returns the current values in the text format of Prometheus. */
  text(): string
}

/**
 * Returns telemetry that keeps metrics for Prometheus, for an application that serves `/metrics` itself. Pass it to a board and to its
 * conductor. Two conductors of one process need one each: they have the same gauges, such as `jobboard_slots`. A conductor with `health` and
 * `metrics: true` serves `/metrics` without it.
 *
 * @example
 * const metrics = prometheus()
 * const board = await openBoard(uri, { telemetry: metrics })
 * app.get('/metrics', (_, response) => response.type(metrics.contentType).send(metrics.text()))
 */
export function prometheus(): PrometheusTelemetry {
  const metrics = new PrometheusSink(INSTRUMENTS)
  return { metrics, contentType: PROMETHEUS_CONTENT_TYPE, text: () => metrics.text() }
}

interface Histogram {
  readonly counts: number[]
  sum: number
  count: number
}

/** The values of one instrument, by its labels in the text format. */
interface Series {
  readonly values: Map<string, number>
  readonly histograms: Map<string, Histogram>
}

/** @typeParam N the names of the instruments */
export class PrometheusSink<N extends string = InstrumentName> implements MetricSink<N> {
  readonly #instruments: Readonly<Record<N, Instrument>>
  readonly #series = new Map<N, Series>()
  readonly #refreshers = new Set<() => void>()

  constructor(instruments: Readonly<Record<N, Instrument>>) {
    this.#instruments = instruments
  }

  record(name: N, value: number, labels: Readonly<Record<string, string>>): void {
    const instrument = this.#instruments[name]
    const series = this.#series.get(name) ?? { values: new Map(), histograms: new Map() }
    this.#series.set(name, series)
    const key = formatLabels(labels)
    if (instrument.type === 'gauge') series.values.set(key, value)
    else if (instrument.type === 'counter') series.values.set(key, (series.values.get(key) ?? 0) + value)
    else observe(series.histograms, { key, value, buckets: instrument.buckets ?? [] })
  }

  onCollect(refresh: () => void): () => void {
    this.#refreshers.add(refresh)
    return () => this.#refreshers.delete(refresh)
  }

  /** Returns all values in the text format, in the order of the instruments. */
  text(): string {
    for (const refresh of this.#refreshers) refresh()
    return Object.keys(this.#instruments)
      .map((name) => this.#textOf(name as N))
      .join('')
  }

  #textOf(name: N): string {
    const series = this.#series.get(name)
    if (!series) return ''
    const { help, type, buckets = [] } = this.#instruments[name]
    const lines = [...series.values].map(([labels, value]) => `${name}${inBraces(labels)} ${formatNumber(value)}`)
    for (const [labels, { counts, sum, count }] of series.histograms) {
      let cumulative = 0
      for (const [index, bound] of buckets.entries()) {
        cumulative += counts[index] ?? 0
        lines.push(`${name}_bucket${inBraces(join(labels, `le="${bound}"`))} ${cumulative}`)
      }
      lines.push(`${name}_bucket${inBraces(join(labels, 'le="+Inf"'))} ${count}`)
      lines.push(`${name}_sum${inBraces(labels)} ${formatNumber(sum)}`, `${name}_count${inBraces(labels)} ${count}`)
    }
    return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join('\n')}\n`
  }
}

function observe(
  histograms: Map<string, Histogram>,
  { key, value, buckets }: { readonly key: string; readonly value: number; readonly buckets: readonly number[] },
): void {
  const histogram = histograms.get(key) ?? { counts: buckets.map(() => 0), sum: 0, count: 0 }
  histograms.set(key, histogram)
  const index = buckets.findIndex((bound) => value <= bound)
  if (index >= 0) histogram.counts[index] = (histogram.counts[index] ?? 0) + 1
  histogram.sum += value
  histogram.count += 1
}

function formatLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([label, value]) => `${label}="${escapeValue(value)}"`)
    .join(',')
}

function inBraces(labels: string): string {
  return labels === '' ? '' : `{${labels}}`
}

function join(labels: string, more: string): string {
  return labels === '' ? more : `${labels},${more}`
}

/** Escapes the characters that would end a value or a line. Prometheus takes all others, also control characters, as data. */
function escapeValue(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}

function escapeHelp(help: string): string {
  return help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function formatNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}
