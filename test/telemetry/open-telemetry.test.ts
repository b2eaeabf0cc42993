/** The outlet to OpenTelemetry: the names and kinds of metrics, and what is refused. */
import { expect, test } from 'vitest'
import { INSTRUMENTS, type InstrumentName, Meter } from '../../src/core/metrics.ts'
import { openTelemetry } from '../../src/index.ts'
import { nameMetric } from '../../src/telemetry/conventions.ts'
import { openSdk } from './sdk.ts'

function openMeter({ attributes }: { readonly attributes?: Record<string, string> } = {}) {
  const sdk = openSdk()
  const { metrics } = openTelemetry(sdk.api, attributes ? { attributes } : {})
  if (!metrics) throw new Error('there is no sink')
  return { ...sdk, meter: new Meter({ sinks: [metrics] }) }
}

test('counters add up, histograms have the buckets of Prometheus, and gauges are read when they are collected', async () => {
  const { meter, metrics } = openMeter()
  meter.record('jobboard_jobs_claimed_total', 2, { board: 'x', flow: 'a', queue: 'q' })
  meter.record('jobboard_jobs_claimed_total', 1, { board: 'x', flow: 'a', queue: 'q' })
  meter.record('jobboard_run_seconds', 0.02, { board: 'x', flow: 'a', outcome: 'done' })
  let slots = 1
  const off = meter.onCollect(() => meter.record('jobboard_slots', slots, {}))
  slots = 4
  const read = await metrics()
  expect(read.get('jobboard.jobs_claimed')?.dataPoints).toMatchObject([{ attributes: { flow: 'a' }, value: 3 }])
  expect(read.get('jobboard.run')).toMatchObject({
    descriptor: { unit: 's' },
    dataPoints: [
      {
        attributes: { flow: 'a', outcome: 'done' },
        value: { count: 1, buckets: { boundaries: INSTRUMENTS.jobboard_run_seconds.buckets } },
      },
    ],
  })
  expect(read.get('jobboard.slots')?.dataPoints).toMatchObject([{ value: 4 }])
  off()
  slots = 8
  expect((await metrics()).get('jobboard.slots')?.dataPoints).toMatchObject([{ value: 4 }])
})

test('each metric has the attributes of the outlet', async () => {
  const { meter, metrics } = openMeter({ attributes: { conductor: 'first' } })
  meter.record('jobboard_running', 2, { board: 'x', flow: 'a' })
  const read = await metrics()
  expect(read.get('jobboard.running')?.dataPoints).toMatchObject([
    { attributes: { flow: 'a', conductor: 'first' }, value: 2 },
  ])
})

test('a collector makes the names of Prometheus of those of OpenTelemetry', () => {
  for (const [name, { type }] of Object.entries(INSTRUMENTS)) {
    const { name: sent, unit } = nameMetric(name as InstrumentName)
    const ending = unit === undefined ? '' : { s: '_seconds', By: '_bytes' }[unit]
    expect(`${sent.replaceAll('.', '_')}${ending}${type === 'counter' ? '_total' : ''}`).toBe(name)
  }
})

test.each([
  [() => openTelemetry({} as never), 'the first argument must be the API'],
  [
    () => openTelemetry(openSdk().api, { propagation: 'child' as never }),
    'propagation must be one of link, parent, none',
  ],
  [() => openTelemetry(openSdk().api, { propagate: 'link' } as never), 'openTelemetry has no option "propagate"'],
])('refuses what it cannot use: %#', (open, says) => {
  expect(open).toThrow(says)
})
