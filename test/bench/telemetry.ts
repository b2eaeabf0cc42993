/**
 * What metrics and spans cost: jobs of a two-task flow, done by a conductor on a board in memory, without telemetry, with Prometheus' text, and with
 * OpenTelemetry, whose SDK keeps no span: what an exporter costs is not measured.
 */
import { cpus } from 'node:os'
import * as api from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base'
import { input, linear, openBoard, openTelemetry, startConductor, type Telemetry, task } from 'jobboard'
import { times } from './brief.ts'
import { printGoals } from './goals.ts'
import { median, spread } from './spread.ts'

const JOBS = times(20_000, 200)
const ROUNDS = times(9, 1)
const WIDTH = 128
/** Longer than the benchmark. */
const NEVER_MS = 100_000_000

const flow = linear(
  'two-tasks',
  input<{ n: number }>(),
  task('first', { requires: ['n'], provides: 'sum', execute: ({ n }: { n: number }) => n + 1 }),
  task('second', { requires: ['sum'], execute: ({ sum }: { sum: number }) => sum }),
)

/** The cases in their order. Spans come last: a process that has entered an asynchronous context is slower from then on. */
const CASES = ['no telemetry', 'Prometheus', 'OpenTelemetry, metrics', 'OpenTelemetry, metrics and spans'] as const
type Case = (typeof CASES)[number]

export default async function telemetry(): Promise<void> {
  console.log(`Node ${process.version}, ${cpus().length} processors, ${JOBS} jobs, median of ${ROUNDS} rounds (range)`)
  const [bare, prometheus, metrics, spans] = CASES
  await using sdk = openSdk()
  const took = new Map<Case, number[]>(CASES.map((name) => [name, []]))
  const rounds = async (cases: readonly Case[]) => {
    for (const each of cases) await run(each)
    for (let round = 0; round < ROUNDS; round += 1) for (const each of cases) took.get(each)?.push(await run(each))
  }
  await rounds([bare, prometheus, metrics])
  sdk.enableContexts()
  await rounds([spans])
  for (const [name, all] of took) console.log(`  ${name.padEnd(34)} ${spread(all, 1)} µs of processor time per job`)
  const ratio = (name: Case) =>
    median((took.get(name) ?? []).map((each, round) => each / (took.get(bare)?.[round] ?? Number.NaN)))
  printGoals([
    {
      what: 'processor time per job with Prometheus, times without:',
      value: ratio(prometheus),
      goal: { atMost: 1.02 },
    },
  ])
  console.log(
    `  OpenTelemetry, times without: metrics ${ratio(metrics).toFixed(2)}, and spans ${ratio(spans).toFixed(2)}`,
  )
}

/** Returns the processor time of this process per job, in µs. */
async function run(what: Case): Promise<number> {
  const telemetry = telemetryOf(what)
  const given = telemetry ? { telemetry } : {}
  await using board = await openBoard('memory:', given)
  const items = Array.from({ length: JOBS }, (_, n) => ({ flow, store: { n } }))
  await board.postMany(items)
  const before = process.cpuUsage()
  const options = {
    board,
    persistence: 'memory:',
    flows: [flow],
    concurrency: WIDTH,
    burst: true,
    health: { port: 0 },
    metrics: what === 'Prometheus',
    ...given,
  }
  await using conductor = await startConductor(options)
  await conductor.stopped
  const { user, system } = process.cpuUsage(before)
  return (user + system) / JOBS
}

function telemetryOf(what: Case): Telemetry | undefined {
  if (what === 'OpenTelemetry, metrics') return openTelemetry(api, { tracerProvider: false })
  return what === 'OpenTelemetry, metrics and spans' ? openTelemetry(api) : undefined
}

/** Sets up the SDK. It aggregates metrics, and makes spans, which nothing exports. */
function openSdk() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: NEVER_MS })
  const meterProvider = new MeterProvider({ readers: [reader] })
  const tracerProvider = new BasicTracerProvider()
  api.metrics.setGlobalMeterProvider(meterProvider)
  api.trace.setGlobalTracerProvider(tracerProvider)
  return {
    enableContexts: () => api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()),
    [Symbol.asyncDispose]: async () => {
      await Promise.all([meterProvider.shutdown(), tracerProvider.shutdown()])
    },
  }
}
