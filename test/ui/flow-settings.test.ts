/** Settings of flows through the dashboard: what is set, who may change it, and what they do to jobs that wait. */
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type JobBoard, openBoard } from '../../src/board/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { FLOW_SETTINGS } from '../../src/board/settings/record.ts'
import { input, linear, task } from '../../src/flow/index.ts'
import type { WireFlow, WireFlowSettings, WireOverview } from '../../src/ui/wire/board.ts'
import type { WireJobDetail } from '../../src/ui/wire/jobs.ts'
import { type Client, openClient } from './client.ts'

const PATH = '/boards/main/flows/settings'

let board: JobBoard
let client: Client
let lines: Record<string, unknown>[]

beforeEach(async () => {
  board = await openBoard('memory:', { who: 'server' })
  lines = []
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  client = openClient({ board, log, authorize: () => ({ who: 'ada', level: 'admin', values: true }) })
})

afterEach(async () => {
  await client[Symbol.asyncDispose]()
  await board.close()
})

const read = async <T>(path: string): Promise<T> => {
  const { status, body } = await client.get<T>(`/boards/main${path}`)
  expect(status, JSON.stringify(body)).toBe(200)
  return body
}
const listed = async () => (await read<{ settings: WireFlowSettings[] }>('/flows/settings')).settings
const change = async (body: object) => {
  const { status, body: answer } = await client.post(PATH, body)
  return status === 200 ? 'done' : [status, answer['code'], answer['message']]
}

test('settings are set and removed, with the person and the reason, and are listed as they are typed', async () => {
  expect(await listed()).toEqual([])
  const settings = ['maxAttempts=7', 'queue=bulk', 'backOff.first=10s', 'deadline=1h']
  expect(await change({ action: 'set', flow: 'report*', settings, reason: ' slow disks ' })).toBe('done')
  expect(await change({ action: 'set', flow: 'import', settings: ['enabled=false'] })).toBe('done')
  const since = expect.stringMatching(/^\d{4}-.*Z$/)
  expect(await listed()).toEqual([
    { flow: 'import', enabled: false, settings: [{ key: 'enabled', text: 'false' }], by: 'ada', since },
    {
      ...{ flow: 'report*', enabled: true, by: 'ada', since, reason: 'slow disks' },
      settings: [
        { key: 'maxAttempts', text: '7' },
        { key: 'queue', text: 'bulk' },
        { key: 'backOff.first', text: '10s' },
        { key: 'deadline', text: '1h' },
      ].sort((a, b) => ORDER.indexOf(a.key) - ORDER.indexOf(b.key)),
    },
  ])
  expect(lines).toContainEqual(
    expect.objectContaining({
      ...{ audit: 'flow.set', who: 'ada', board: 'main', what: 'settings of flow report*', reason: ' slow disks ' },
    }),
  )
  expect(await change({ action: 'unset', flow: 'report*', keys: ['queue', 'backOff'] })).toBe('done')
  expect(await board.flowSettings.list()).toMatchObject([
    { flow: 'import' },
    { flow: 'report*', settings: { maxAttempts: 7, deadline: 3_600_000 } },
  ])
  expect(await change({ action: 'unset', flow: 'report*', reason: 'new disks' })).toBe('done')
  expect((await listed()).map(({ flow }) => flow)).toEqual(['import'])
  expect(lines).toContainEqual(expect.objectContaining({ audit: 'flow.unset', who: 'ada', reason: 'new disks' }))
})

test('bad input changes nothing, and its message says what is wrong', async () => {
  const set = (settings: string[], flow = 'report') => change({ action: 'set', flow, settings })
  const refused = (message: string) => [400, 'INVALID_ARGUMENT', message]
  expect(await set(['maxAttempt=7'])).toEqual(refused('there is no setting maxAttempt; did you mean maxAttempts?'))
  expect(await set(['maxAttempts'])).toEqual(
    refused("a setting must be key=value, such as maxAttempts=7, got 'maxAttempts'"),
  )
  expect(await set(['maxAttempts=0'])).toEqual(refused(expect.stringContaining('settings of flow report: ')))
  expect(await set(['enabled=false'], 'a*b')).toEqual(
    refused('settings of flow a*b: a pattern has one *, at its end, such as report*'),
  )
  expect(await change({ action: 'unset', flow: 'report', keys: ['nothing'] })).toEqual(
    refused(expect.stringContaining('there is no setting nothing')),
  )
  expect(await change({ action: 'set', flow: 'report', settings: [] })).toEqual([
    ...[400, 'BAD_REQUEST', expect.stringContaining('settings')],
  ])
  expect(await change({ action: 'unset', flow: 'report' })).toEqual([
    ...[404, 'NOT_FOUND', 'settings of flow report: nothing is set'],
  ])
  expect(await listed()).toEqual([])
})

test('settings that cannot be read here are listed with the reason', async () => {
  await boardInternals(board)
    .records.of({ ...FLOW_SETTINGS, format: 2, parse: (value) => value as object })
    .write([{ id: 'later*', revision: undefined, value: {} }])
  expect(await listed()).toEqual([{ flow: 'later*', enabled: true, error: expect.stringContaining('later*') }])
  const { warnings } = await read<WireOverview>('/overview')
  expect(warnings).toContainEqual({ text: 'settings of flow later* cannot be read: its jobs wait', page: 'flows' })
})

test('a flow that is not enabled is marked, and the jobs that wait for it are grouped', async () => {
  const flows = ['import', 'report-a'].map((name) => linear(name, input<object>(), task('t', { execute: () => 1 })))
  await boardInternals(board).publishFlows(flows)
  await board.flowSettings.set('report*', { enabled: false }, { by: 'bob', reason: 'the disk is full' })
  await board.flowSettings.set('report-b', { enabled: true })
  for (const flow of ['report-a', 'report-a', 'report-b']) await board.post(flow, {})
  const { flows: rows } = await read<{ flows: WireFlow[] }>('/flows')
  expect(rows.map(({ name, disabled }) => [name, disabled])).toEqual([
    ['import', undefined],
    ['report-a', { flow: 'report*', by: 'bob', since: expect.any(String), reason: 'the disk is full' }],
  ])
  const { waitingFor, warnings } = await read<WireOverview>('/overview')
  expect(waitingFor).toContainEqual(
    expect.objectContaining({
      jobs: 2,
      reason: { kind: 'disabled', flow: 'report-a', text: expect.stringContaining('the disk is full') },
    }),
  )
  expect(waitingFor.map(({ reason }) => reason.kind).filter((kind) => kind === 'disabled')).toHaveLength(1)
  expect(warnings).toContainEqual({ text: 'flow report* is disabled: its jobs wait', page: 'flows' })
})

test('a job has the options that count, and where those are set that its post does not decide', async () => {
  const detail = async (uuid: string) => read<WireJobDetail>(`/jobs/${uuid}`)
  const before = await board.post('report', {}, { backOff: { first: 1_000 } })
  const plain = await detail(before.uuid)
  expect(plain).toMatchObject({ maxAttempts: before.maxAttempts })
  expect(plain).not.toHaveProperty('settings')
  await board.flowSettings.set('rep*', { maxAttempts: 7, deadline: '1h', backOff: { first: '10s' } })
  await board.flowSettings.set('*', { onOwnerLost: 'fail', expiresAfter: '1d', resultTtl: '2h', maxAttempts: 3 })
  const found = await detail(before.uuid)
  expect(found).toMatchObject({ maxAttempts: 7, deadline: 3_600_000, onOwnerLost: 'fail', resultTtl: 7_200_000 })
  expect(found.settings).toEqual({
    maxAttempts: 'rep*',
    deadline: 'rep*',
    onOwnerLost: '*',
    resultTtl: '*',
    expiresAfter: '*',
  })
  expect(found.backOff).toMatch(/^1s to /)
  expect(Date.parse(found.expiresAt ?? '') - Date.parse(found.postedAt ?? '')).toBe(86_400_000)
  await board.flowSettings.set('rep*', { maxAttempts: 7, force: true })
  const forced = await detail(before.uuid)
  expect(forced.backOff).toMatch(/^10s to /)
  expect(forced.settings).toMatchObject({ backOff: 'rep*' })
})

/** The order in which settings are shown. */
const ORDER = ['queue', 'maxAttempts', 'backOff.first', 'deadline']
