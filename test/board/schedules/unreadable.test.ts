/** Records of schedules that somebody has planted: each hides itself, is reported, and keeps no other schedule from anything. */
import { expect, onTestFinished, test } from 'vitest'
import { boardInternals } from '../../../src/board/internal.ts'
import { Job } from '../../../src/board/jobs/job.ts'
import type { RecordKind } from '../../../src/board/records/record-store.ts'
import { SCHEDULES } from '../../../src/board/schedules/record.ts'
import { decodeWeighed } from '../../../src/core/codec.ts'
import { input, linear, openBoard, schedule, startConductor, task } from '../../../src/index.ts'
import { explainSpec, type ScheduleSpec } from '../../../src/schedule/index.ts'

const RAW: RecordKind<object> = { name: 'schedule', format: 1, parse: (value) => Object(value) }
const report = linear('report', input<object>(), task('work', { execute: () => 'done' }))
const WEEK_MS = 7 * 86_400_000

async function boardWithSchedule() {
  const board = await openBoard('memory:')
  onTestFinished(() => board.close())
  await board.schedules.put(schedule('real', { every: '1h' }, report, {}))
  const found = await boardInternals(board).records.of(RAW).get('real')
  if (!found || 'error' in found) throw new Error('the schedule cannot be read')
  const real: Readonly<Record<string, unknown>> = { ...found.value }
  const due = (ms: number) => ({ cursor: Date.now() - ms - 1, next: { nominal: Date.now() - ms, at: Date.now() - ms } })
  const plant = async (id: string, fields: object) =>
    boardInternals(board)
      .records.of(RAW)
      .write([{ id, revision: undefined, value: { ...real, ...fields } }])
  return { board, real, plant, due }
}

test.each<[string, (parts: { policies: object; job: object; counts: object }) => object]>([
  ['a maximum of very many jobs', ({ policies }) => ({ policies: { ...policies, max: 1e15 } })],
  ['policies that contradict each other', ({ policies }) => ({ policies: { ...policies, catchUp: 'all' } })],
  ['an endless jitter', ({ policies }) => ({ policies: { ...policies, jitterMs: 1e300 } })],
  ['a jitter that is a text', ({ policies }) => ({ policies: { ...policies, jitterMs: '5m' } })],
  ['a due time of 64 bits', () => ({ next: { nominal: 1, at: 2n ** 53n } })],
  ['a due time that is no number', () => ({ next: { nominal: 1, at: Number.NaN } })],
  ['a due time after the last date', () => ({ next: { nominal: 1, at: 1e300 } })],
  ['a time that is posted before it comes', () => ({ next: { nominal: 9e12, at: 1 } })],
  ['a next time that is a list', () => ({ next: [] })],
  ['a cursor that is no number', () => ({ cursor: Number.NaN })],
  ['firings that are null', () => ({ recent: [null] })],
  ['firings without times', () => ({ recent: [{ why: 'time' }] })],
  ['a pause since a text', () => ({ paused: { since: 'long', by: 'me' } })],
  ['a count of 64 bits', ({ counts }) => ({ counts: { ...counts, fired: 2n ** 60n } })],
  ['skipped times that are no numbers', ({ counts }) => ({ counts: { ...counts, skipped: { missed: {} } } })],
  ['two rules', () => ({ spec: { cron: '* * * * *', every: '1s' } })],
  ['an interval that is no duration', () => ({ spec: { every: 'x' } })],
  ['a rule that is no text', () => ({ spec: { rrule: 7 } })],
  ['a job that cannot be posted', ({ job }) => ({ job: { ...job, attempts: [null], maxAttempts: -1 } })],
  ['a job without a flow', ({ job }) => ({ job: { ...job, details: {} } })],
  ['a tenant that is a date', () => ({ tenant: new Date() })],
  ['a declaration without a version', () => ({ declared: { owner: 'me' } })],
  ['a last job that is null', () => ({ last: null })],
])('a schedule with %s is shown as unreadable, is reported once, and the others fire', async (_, change) => {
  const { board, real, plant, due } = await boardWithSchedule()
  const { policies = {}, job = {}, counts = {} } = real as Record<string, object>
  await plant('bad', { ...due(WEEK_MS), ...change({ policies, job, counts }) })
  await plant('good', due(1_000))
  const views = await board.schedules.list()
  expect(views.map(({ id, state }) => `${id} ${state}`)).toEqual(['bad unreadable', 'good active', 'real active'])
  expect(views[0]?.error?.message).toContain('schedule bad')
  const conductor = await startConductor({ board, persistence: 'memory:', flows: [report] })
  onTestFinished(() => conductor.stop())
  const reported: string[] = []
  conductor.on('error', ({ error }) => reported.push(error.message))
  expect((await board.schedules.show('good')).counts?.fired).toBe(1)
  expect(JSON.stringify(await board.schedules.list())).toContain('unreadable')
  expect(reported.length).toBeLessThanOrEqual(1)
})

test('a schedule of every second that was due a week ago is fired once, and the process goes on', async () => {
  const { board, plant, due } = await boardWithSchedule()
  await plant('bad', { ...due(WEEK_MS), spec: { every: '1s' } })
  const conductor = await startConductor({ board, persistence: 'memory:', flows: [report] })
  onTestFinished(() => conductor.stop())
  expect((await board.schedules.show('bad')).counts?.fired).toBe(1)
})

test.each<[ScheduleSpec, string]>([
  [{ rrule: 'FREQ=NEVER' }, "rrule 'FREQ=NEVER' in UTC"],
  [{ rrule: 'FREQ=DAILY;UNTIL=x' }, "rrule 'FREQ=DAILY;UNTIL=x' in UTC"],
])('the spec %j, which no package explains, is described by its text', async (spec, text) => {
  expect(await explainSpec(spec)).toBe(text)
})

const minutes = Array.from({ length: 60 }, (_, n) => n).join(',')

test('schedules whose rules take too long to compute are paused with the reason, and the others fire', async () => {
  const { board, plant, due } = await boardWithSchedule()
  const exclude = (rule: object, count: number) => Array.from({ length: count }, () => rule)
  await plant('a position', { ...due(1_000), spec: { rrule: `FREQ=DAILY;BYMINUTE=${minutes};BYSETPOS=366` } })
  await plant('all excluded', { ...due(1_000), spec: { every: '1s', exclude: [{ cron: '* * * * * *' }] } })
  await plant('many', { ...due(1_000), spec: { every: '1s', exclude: exclude({ cron: '* 1-59 * * * *' }, 200) } })
  await plant('out of range', { ...due(1_000), spec: { rrule: 'FREQ=DAILY;BYMONTH=13' } })
  await plant('good', due(1_000))
  const conductor = await startConductor({ board, persistence: 'memory:', flows: [report] })
  onTestFinished(() => conductor.stop())
  const reasons = (await board.schedules.list()).map(({ id, paused }) => [id, paused?.by, paused?.reason])
  expect(reasons).toEqual([
    ['a position', 'its rule', expect.stringContaining('takes too long to compute')],
    ['all excluded', 'its rule', expect.stringContaining('takes too long to compute')],
    ['good', undefined, undefined],
    ['many', 'its rule', expect.stringContaining('at most 50 rules')],
    ['out of range', 'its rule', expect.stringContaining('BYMONTH must be from 1 to 12')],
    ['real', undefined, undefined],
  ])
  expect((await board.schedules.show('good')).counts?.fired).toBe(1)
  await expect(board.schedules.next('a position')).rejects.toThrow('takes too long to compute')
})

test.each([
  [10, 1, 1],
  [11, 2, 5],
])(
  'a schedule with maxAttempts %d has format %d, and its jobs have format %d: older releases say what they lack',
  async (maxAttempts, ofRecord, ofJob) => {
    await using board = await openBoard('memory:')
    await board.schedules.put(schedule('s', { every: '1h' }, 'report', {}, { post: { maxAttempts } }))
    const store = boardInternals(board).records.of(SCHEDULES)
    const found = await store.get('s')
    if (!found || 'error' in found) throw new Error('the schedule cannot be read')
    const { bytes = new Uint8Array() } = store.toChange(found)
    expect(Object(decodeWeighed(bytes, 'msgpack', { most: 1_000_000 }).value).format).toBe(ofRecord)
    const job = await board.find(await board.schedules.trigger('s'))
    expect(Job.entryFor(job).stored?.posting.format).toBe(ofJob)
  },
)
