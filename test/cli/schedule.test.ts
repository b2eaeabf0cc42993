/** Schedules on the command line: added, shown, changed, operated and removed; and what they print. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ScheduleView } from '../../src/board/index.ts'
import { plainPaint, type Screen } from '../../src/cli/output/render/paint.ts'
import { scheduleLines, schedulesTable } from '../../src/cli/output/render/schedules.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { type CliFolder, createCliFolder, FLOWS, jsonLines, killRemaining, type Outcome } from './workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
  await place.write('flows.js', FLOWS)
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

const schedule = (...args: string[]): Promise<Outcome> => place.jobboard(['schedule', ...args])

test('preview needs no board, and says what a change of the clock does', async () => {
  const rule = ['30 2 * * *', '--zone', 'Europe/Berlin', '--from', '2027-03-27']
  const { exitCode, stdout } = await place.bare(['schedule', 'preview', ...rule, '--count', '2'])
  expect({ exitCode, lines: stdout.split('\n') }).toEqual({
    exitCode: 0,
    lines: [
      'At 02:30, in Europe/Berlin',
      '  2027-03-27T02:30:00+01:00',
      '  2027-03-28T03:00:00+02:00  moved: the clock leaves out its time',
      '',
    ],
  })
  const json = await place.bare(['schedule', 'preview', ...rule, '--count', '1', '--json'])
  expect(jsonLines(json.stdout)).toEqual([{ at: '2027-03-27T01:30:00.000Z', local: '2027-03-27T02:30:00+01:00' }])
})

test.each<[string, string[], RegExp]>([
  ['too few fields', ['5 * * *'], /write five fields/],
  ['an unknown zone', ['5 * * * *', '--zone', 'Berlin'], /zone must be the name of a time zone such as/],
  ['an impossible date', ['0 0 30 2 *'], /has no occurrence within ten years/],
  ['an offset of a cron', ['5 * * * *', '--offset', '1m'], /apply only to an interval such as 5m/],
  ['a time that is none', ['5m', '--from', 'tomorrow'], /--from: "tomorrow" is not a time/],
  ['too many', ['5m', '--count', '1001'], /from 1 to 1000/],
])('preview refuses %s in one line, with exit code 2', async (_, args, message) => {
  const { exitCode, stdout, stderr } = await place.bare(['schedule', 'preview', ...args])
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(stderr).toMatch(message)
  expect(stderr.split('\n')).toHaveLength(2)
})

describe.skipIf(!zookeeperHosts)('on ZooKeeper', () => {
  test('a schedule is added, shown, changed, and removed', async () => {
    const store = ['--store', '{"name":"Ada"}', '--flows', 'flows.js']
    const added = await schedule('add', 'greet', '30 2 * * 1-5', 'hello', '--zone', 'Europe/Berlin', ...store)
    expect(added).toMatchObject({ exitCode: 0, stderr: '' })
    expect(added.stdout).toContain('At 02:30, Monday through Friday, in Europe/Berlin')
    const again = await schedule('add', 'greet', '5m', 'hello', ...store)
    expect(again).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('schedule greet exists: edit it') })
    const edited = await schedule('edit', 'greet', '--rule', '0 3 * * *', '--overlap', 'queueOne', '--json')
    expect(jsonLines(edited.stdout)).toMatchObject([
      {
        ...{ id: 'greet', state: 'active', flow: 'hello', version: '2.1', inputs: ['name'], overlap: 'queueOne' },
        spec: { cron: '0 3 * * *', zone: 'Europe/Berlin' },
      },
    ])
    const listed = await schedule('list')
    expect(listed.stdout).toMatch(/ID +STATE +RULE +FLOW +NEXT/)
    expect(listed.stdout).toContain("cron '0 3 * * *' in Europe/Berlin")
    // Values of a store may be secrets.
    for (const { stdout } of [added, edited, listed, await schedule('show', 'greet')])
      expect(stdout).not.toContain('Ada')
    expect(await schedule('remove', 'greet')).toMatchObject({ exitCode: 0, stdout: 'schedule greet removed\n' })
    expect(await schedule('show', 'greet')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('there is no schedule greet'),
    })
    expect((await schedule('list')).stdout).toMatch(/^no schedules on zookeeper:/)
  })

  test('a schedule is paused, triggered, backfilled and resumed, and a conductor runs its jobs', async () => {
    await schedule('add', 'greet', '1h', 'hello', '--store', '{"name":"Ada"}', '--overlap', 'queueAll')
    await schedule('pause', 'greet', '--reason', 'tests')
    expect((await schedule('show', 'greet')).stdout).toMatch(/paused .*: tests/)
    const triggered = (await schedule('trigger', 'greet', '--store', '{"name":"Eve"}')).stdout.trim()
    const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000
    const times = { from: new Date(hour - 9_000_000).toISOString(), to: new Date(hour - 1_800_000).toISOString() }
    const backfilled = await schedule('backfill', 'greet', '--from', times.from, '--to', times.to)
    const filled = backfilled.stdout.trim().split('\n')
    expect(filled).toHaveLength(2)
    await place.jobboard(['conductor', '--flows', 'flows.js', '--burst'])
    for (const uuid of [triggered, ...filled])
      expect(await place.jobboard(['wait', uuid])).toMatchObject({ stdout: 'COMPLETE\n' })
    expect((await schedule('resume', 'greet')).stdout).toBe('schedule greet resumed\n')
    const [shown] = jsonLines((await schedule('show', 'greet', '--json')).stdout)
    expect(shown).toMatchObject({ state: 'active', counts: { fired: 0, manual: 1, backfilled: 2, skipped: {} } })
  })
})

test('what is printed of a schedule is aligned, and hostile texts are escaped', () => {
  const now = new Date('2026-06-01T12:00:00Z')
  const screen: Screen = { paint: plainPaint, width: undefined, now }
  const view: ScheduleView = {
    ...{ id: 'nightly', state: 'paused', rule: "cron '30 2 * * *' in UTC", flow: 'report', version: '1.0' },
    ...{ store: { region: 'eu' }, overlap: 'skip', catchUp: 'latest', failuresInRow: 0 },
    paused: { since: new Date('2026-06-01T11:00:00Z'), by: 'ada', reason: 'disk \u001b[2J full' },
    counts: { fired: 7, late: 1, manual: 0, backfilled: 0, skipped: { overlap: 2, missed: 1 } },
    policies: { jitterMs: 600_000, times: 3, pauseAfterFailures: 2 },
    post: {
      name: 'report',
      priority: 'HIGH',
      maxAttempts: 3,
      expiresAfter: 600_000,
      deadline: 7_200_000,
    },
    spec: { cron: '30 2 * * *', end: '2026-12-24', exclude: ['2026-12-06'] },
    recent: [
      { nominal: new Date('2026-06-01T02:30:00Z'), at: now, why: 'time', skipped: 'missed', count: 3 },
      { nominal: new Date('2026-05-31T02:30:00Z'), at: now, why: 'manual', uuid: 'a-job' },
    ],
  }
  const lines = scheduleLines(view, { words: 'At 02:30, in UTC', times: [] }, screen)
  expect(lines).toEqual([
    ...[
      '  schedule  nightly',
      '  state     paused',
      "  rule      cron '30 2 * * *' in UTC",
      '  in words  At 02:30, in UTC',
    ],
    ...['  flow      report 1.0', '  inputs    region', '  overlap   skip', '  catch-up  latest'],
    ...['  jitter    up to 10m', '  end       2026-12-24', '  excluded  2026-12-06'],
    ...['  times     it ends after 3 jobs', '  pauses    after 2 failures in a row'],
    ...['  priority  HIGH', '  expires   after 10m, if nobody has started it', '  deadline  2h'],
    '  paused    1h ago by ada: disk \\x1b[2J full',
    '  fired     7, of these late 1; by hand 0, backfilled 0',
    '  skipped   2 overlap, 1 missed',
    ...['recent', '  2026-06-01T02:30:00.000Z  3 skipped: missed', '  2026-05-31T02:30:00.000Z  manual a-job'],
  ])
  const [, row] = schedulesTable([{ ...view, id: 'a\u001b[31mb' }], screen)
  expect(row).toContain('a\\x1b[31mb')
  expect(row).toContain('paused by ada')
})
