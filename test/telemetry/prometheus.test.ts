/** The text format of Prometheus, and the limit of names. promtool checks the text where it is installed by the conductor's tests. */
import { expect, test } from 'vitest'
import { INSTRUMENTS, Meter } from '../../src/core/metrics.ts'
import { PrometheusSink } from '../../src/telemetry/internal.ts'

function setup(options: { readonly maxNames?: number } = {}) {
  const sink = new PrometheusSink(INSTRUMENTS)
  const reported: string[] = []
  const meter = new Meter({ sinks: [sink], ...options, onTooMany: (label) => reported.push(label) })
  return { meter, reported, text: () => sink.text() }
}

test('counters add up, gauges are set, and instruments that were never recorded are left out', () => {
  const { meter, text } = setup()
  expect(text()).toBe('')
  meter.record('jobboard_jobs_claimed_total', 1, { board: 'x', flow: 'a', queue: 'q' })
  meter.record('jobboard_jobs_claimed_total', 2, { board: 'x', flow: 'a', queue: 'q' })
  meter.record('jobboard_jobs_claimed_total', 1, { board: 'x', flow: 'b', queue: 'q' })
  meter.record('jobboard_slots', 4, {})
  meter.record('jobboard_slots', 8, {})
  expect(text()).toBe(
    [
      '# HELP jobboard_slots The number of jobs that the conductor can run at once.',
      '# TYPE jobboard_slots gauge',
      'jobboard_slots 8',
      '# HELP jobboard_jobs_claimed_total Claimed jobs.',
      '# TYPE jobboard_jobs_claimed_total counter',
      'jobboard_jobs_claimed_total{board="x",flow="a",queue="q"} 3',
      'jobboard_jobs_claimed_total{board="x",flow="b",queue="q"} 1',
      '',
    ].join('\n'),
  )
})

test('the buckets of a histogram are cumulative, and a value on a bound is in its bucket', () => {
  const { meter, text } = setup()
  for (const value of [0.001, 0.005, 0.02, 100_000])
    meter.record('jobboard_run_seconds', value, { board: 'x', flow: 'a', outcome: 'done' })
  const lines = text().split('\n')
  const bucket = (bound: string) =>
    lines
      .find((line) => line.includes(`le="${bound}"`))
      ?.split(' ')
      .at(-1)
  expect([bucket('0.005'), bucket('0.025'), bucket('7200'), bucket('+Inf')]).toEqual(['2', '3', '3', '4'])
  expect(lines).toContain('jobboard_run_seconds_sum{board="x",flow="a",outcome="done"} 100000.026')
  expect(lines).toContain('jobboard_run_seconds_count{board="x",flow="a",outcome="done"} 4')
})

test('names of flows are escaped, and those above the limit count as other', () => {
  const { meter, text, reported } = setup({ maxNames: 2 })
  for (const flow of ['a"\\\n', 'b', 'c', 'd', 'b'])
    meter.record('jobboard_jobs_claimed_total', 1, { board: 'x', flow, queue: 'q' })
  expect(text().split('\n').slice(2, 5)).toEqual([
    String.raw`jobboard_jobs_claimed_total{board="x",flow="a\"\\\n",queue="q"} 1`,
    'jobboard_jobs_claimed_total{board="x",flow="b",queue="q"} 2',
    'jobboard_jobs_claimed_total{board="x",flow="other",queue="q"} 2',
  ])
  expect(reported).toEqual(['flow'])
})

test('counters are named as such, and no label carries an id', () => {
  for (const [name, { type, labels }] of Object.entries(INSTRUMENTS)) {
    expect(name.endsWith('_total'), name).toBe(type === 'counter')
    for (const label of labels) expect(['uuid', 'job', 'key', 'owner', 'resource', 'tenant']).not.toContain(label)
  }
})
