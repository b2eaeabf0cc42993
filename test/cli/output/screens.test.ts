/**
 * Every screen as it is on terminals of 80 and 200 columns, in a pipe, and with NO_COLOR: kept in `screens/`, to be looked at
 * by people when one changes.
 */
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import type { EndedJob, FlowSettingsView } from '../../../src/board/index.ts'
import { streamOutput } from '../../../src/cli/context.ts'
import type { DemoEvent } from '../../../src/cli/dev/demo/play.ts'
import { type Finding, findingLines, verdictLine } from '../../../src/cli/doctor/finding.ts'
import { displayWidth, renderBar } from '../../../src/cli/output/render/columns.ts'
import { demoSummaryLines, eventLine } from '../../../src/cli/output/render/demo.ts'
import { appliedSettingsTable, flowSettingsTable } from '../../../src/cli/output/render/flow-settings.ts'
import { infoLines } from '../../../src/cli/output/render/info.ts'
import {
  conductorsTable,
  configTable,
  historyTable,
  jobsTable,
  logbooksTable,
  trashTable,
} from '../../../src/cli/output/render/lists.ts'
import { logbookReport } from '../../../src/cli/output/render/logbook.ts'
import { type Screen, toScreen } from '../../../src/cli/output/render/paint.ts'
import { reportLines, resultLines } from '../../../src/cli/output/render/report.ts'
import { trackedLines } from '../../../src/cli/output/render/tracked.ts'
import type {
  AtomView,
  BookReport,
  BookView,
  ConductorView,
  InfoView,
  JobReport,
  JobView,
  LogbookView,
  TrackedView,
  TrashView,
} from '../../../src/views/index.ts'

const uuid = (last: number) => `0199c0de-0000-7000-8000-00000000000${last}`
const at = (minutes: number) => new Date(Date.UTC(2026, 0, 1, 21, minutes))
const NOW = at(90)

const JOBS: readonly JobView[] = [
  {
    uuid: uuid(1),
    name: 'archive of a folder with a long name',
    state: 'CLAIMED',
    owner: 'worker-17.example.org:4711',
    priority: 'HIGH',
    queue: 'large',
    runs: 2,
    maxAttempts: 3,
    postedAt: at(0),
    flow: 'archive',
    version: '2.1',
  },
  {
    uuid: uuid(2),
    name: '世界地図',
    state: 'UNCLAIMED',
    priority: 'NORMAL',
    runs: 0,
    maxAttempts: 3,
    postedAt: at(89),
  },
]
const FAILURE = {
  name: 'NonRetryable',
  message: 'the paper\nis out',
  causes: [{ name: 'Error', message: 'no tray', causes: [{ name: 'TypeError', message: 'tray is undefined' }] }],
}
const TRASHED: TrashView = {
  uuid: uuid(3),
  name: 'print',
  state: 'TRASHED',
  flow: 'print',
  by: 'worker-17.example.org:4711',
  at: at(30),
  reason: 'NonRetryable: the paper is out, because of Error: no tray',
  failure: FAILURE,
}
const ATOMS: readonly AtomView[] = [
  { name: 'read', kind: 'task', state: 'REVERTED', updatedAt: at(20), startedAt: at(10), milliseconds: 90_500 },
  {
    name: 'print on the large printer',
    kind: 'task',
    state: 'REVERTED',
    updatedAt: at(20),
    startedAt: at(12),
    milliseconds: 12,
    failure: FAILURE,
  },
]
const LOGBOOK: LogbookView = {
  uuid: uuid(3),
  name: 'print',
  flow: 'print',
  version: '1.0',
  state: 'REVERTED',
  run: 1,
  createdAt: at(10),
  updatedAt: at(20),
  startedAt: at(10),
  milliseconds: 600_000,
  atoms: ATOMS,
}
const RESTING: LogbookView = {
  ...LOGBOOK,
  state: 'SUSPENDED',
  atoms: [{ name: 'read', kind: 'task', state: 'RUNNING', updatedAt: at(20), startedAt: at(10) }],
}
const ATTEMPTS = [
  { who: 'worker-17.example.org:4711', at: at(10) },
  { who: 'worker-18.example.org:42', at: at(20), ended: 'failed', reason: 'no tray' },
  { who: 'worker-17.example.org:4711', at: at(30) },
] as const
const REPORTS: Readonly<Record<string, JobReport>> = {
  'show-claimed': {
    job: {
      ...(JOBS[0] as JobView),
      ...{ ref: `${uuid(1)}.job0000000001`, postedBy: 'web-3:812' },
      ...{ storeKeys: ['folder', 'password'], attempts: ATTEMPTS, failedAttempts: 1 },
    },
    logbook: null,
  },
  'show-trashed': { job: { ...TRASHED, storeKeys: [], attempts: ATTEMPTS, failedAttempts: 1 }, logbook: LOGBOOK },
  'show-resting': {
    job: { ...(JOBS[1] as JobView), ref: uuid(2), storeKeys: [], attempts: [], failedAttempts: 0 },
    logbook: RESTING,
  },
  'show-done': { logbook: LOGBOOK },
}
const CONDUCTORS: readonly ConductorView[] = [
  {
    name: 'worker-17.example.org:4711',
    host: 'worker-17.example.org',
    pid: 4711,
    version: '0.1.0',
    state: 'busy',
    running: 3,
    concurrency: 8,
    flows: ['archive', 'print', 'tidy'],
    startedAt: at(0),
  },
  { name: 'by another release' },
]
const none = { unclaimed: 0, claimed: 0 }
const INFO: InfoView = {
  board: 'zookeeper://127.0.0.1:2181/demo',
  state: 'connected',
  paused: false,
  queues: [{ queue: 'default', unclaimed: 1, conductors: 2_250, claimed: 12 }],
  jobs: {
    unclaimed: 1_250,
    claimed: 12,
    byPriority: {
      VERY_HIGH: none,
      HIGH: { unclaimed: 250, claimed: 4 },
      NORMAL: { unclaimed: 999, claimed: 8 },
      LOW: { unclaimed: 1, claimed: 0 },
      VERY_LOW: none,
    },
  },
  trashed: 40,
  conductors: CONDUCTORS,
  slots: { busy: 3, all: 8 },
  running: [
    { uuid: uuid(1), name: 'archive of a folder with a long name', owner: 'worker-17.example.org:4711', since: at(1) },
  ],
}
const IDLE: InfoView = {
  ...INFO,
  paused: true,
  jobs: { ...none, byPriority: { VERY_HIGH: none, HIGH: none, NORMAL: none, LOW: none, VERY_LOW: none } },
  trashed: 0,
  conductors: [],
  running: [],
}
const FINDINGS: readonly Finding[] = [
  { severity: 'ok', about: 'server', text: '127.0.0.1:2181 is ZooKeeper 3.8.0, standalone' },
  {
    severity: 'warning',
    about: 'claim',
    text: `job ${uuid(1)} (archive of a folder with a long name): claimed by worker-17.example.org:4711 for 3h 7m`,
    advice: `jobboard show ${uuid(1)} shows its progress, jobboard cancel ${uuid(1)} requests its cancellation; a deadline limits runs`,
  },
  { severity: 'error', about: 'posting', text: '/demo/job0000000042 is no posting', advice: 'remove or repair it' },
]
const BOOKS: readonly BookView[] = [
  {
    uuid: uuid(3),
    name: 'print',
    createdAt: at(10),
    updatedAt: at(20),
    flows: [{ uuid: uuid(3), name: 'print', version: '1.0', state: 'REVERTED', run: 1, updatedAt: at(20) }],
  },
  { uuid: uuid(4), name: 'a book without flows and with a long name', createdAt: at(10), updatedAt: at(20), flows: [] },
]
const BOOK: BookReport = {
  ...(BOOKS[0] as BookView),
  flows: [
    { ...LOGBOOK, uuid: uuid(3), name: 'print' },
    { ...RESTING, uuid: uuid(5), name: 'copy' },
  ],
}
const DONE: TrackedView = {
  uuid: uuid(1),
  status: 'done',
  tasks: { read: 'SUCCESS', write: 'SUCCESS' },
  at: at(20),
  results: { read: { lines: 42, first: 'It was a dark and stormy night, and the printer was out of paper.' } },
}
const REPORTING: TrackedView = {
  uuid: uuid(1),
  status: 'running',
  tasks: { read: 'SUCCESS', 'import the rows of the file': 'RUNNING', write: 'RUNNING' },
  progress: { 'import the rows of the file': 0.4, write: 1 },
  messages: { 'import the rows of the file': `page 3 of 7 of the file with a long name${'!'.repeat(100)}` },
  checkpoints: { 'import the rows of the file': { value: { row: 1_200, rest: 'x'.repeat(200) }, at: at(30) } },
  owner: 'worker-17.example.org:4711',
  since: at(20),
  run: 2,
}
const WAITING: TrackedView = {
  uuid: uuid(2),
  status: 'waiting',
  tasks: {},
  runs: 1,
  since: at(0),
  lastRun: { who: 'ada@host', at: at(0), ended: 'returned', reason: 'it answers 429' },
  waitingFor: { kind: 'pause', text: 'the board is paused' },
}

const CONFIG = [
  {
    key: 'board',
    value: 'postgres://***@db.example.org/jobs?board=orders',
    origin: 'jobboard.yaml:12 (deployment production)',
  },
  { key: 'conductor.queues', value: ['small', 'medium'], origin: 'jobboard.yaml:7' },
  { key: 'conductor.release', value: '2026-11\u001b[31m', origin: 'JOBBOARD_RELEASE' },
  { key: 'timeout', value: '10s', origin: 'default' },
]

const ENDED: readonly EndedJob[] = [
  {
    ...{ uuid: uuid(1), name: 'photo-1', flow: 'photo', queue: 'bulk', outcome: 'COMPLETE', reason: undefined },
    ...{ who: 'ada@host', runs: 2, version: '1', cancelled: false, earlierRuns: [] },
    ...{ postedAt: at(0), startedAt: at(0), endedAt: new Date(at(0).getTime() + 4_333) },
  },
  {
    ...{ uuid: uuid(2), name: 'photo-2', flow: undefined, queue: 'default', outcome: 'TRASHED', reason: 'expired' },
    ...{ who: 'ada@host', runs: 0, postedAt: at(0), startedAt: undefined, endedAt: at(0) },
    ...{ version: undefined, cancelled: false, earlierRuns: [] },
  },
]

const OF_TASK = { conductor: 'one', job: 'photo-1', task: 'resize', run: 1 } as const
const HAPPENED: readonly DemoEvent[] = [
  {
    at: 447,
    event: 'board',
    board: 'sqlite:/tmp/demo/jobs.db',
    persistence: 'sqlite:/tmp/demo/jobs.db',
    place: 'an SQLite file, without a server',
  },
  { at: 500, event: 'ready', conductor: 'one' },
  { at: 612, event: 'posted', jobs: [1, 2, 3, 4, 5, 6].map((last) => ({ uuid: uuid(last), job: `photo-${last}` })) },
  { at: 913, event: 'finished', ...OF_TASK, task: 'fetch' },
  { at: 914, event: 'begun', ...OF_TASK },
  { at: 1_065, event: 'killed', ...OF_TASK, pid: 4_711 },
  { at: 4_333, event: 'takenOver', ...OF_TASK, conductor: 'two', run: 2, from: 'one', after: 3_268 },
  { at: 10_250, event: 'complete', job: 'photo-1' },
  { at: 12_000, event: 'trashed', job: 'photo-2' },
]
const TAKEN_OVER = { uuid: uuid(1), job: 'photo-1', from: 'one', by: 'two', after: 3_268 }
const SHOWN = { jobs: 6, complete: 6, took: 12_345, takenOver: { ...TAKEN_OVER, kept: ['fetch'], again: ['resize'] } }
const KEPT = { board: 'redis://127.0.0.1:6379/0?prefix=demo', persistence: 'directory:/home/ada/logbooks' }

const FLOW_SETTINGS: readonly FlowSettingsView[] = [
  { flow: 'import', settings: { enabled: false }, by: 'ada (host:42)', since: at(-90), reason: 'the disk is full' },
  {
    flow: 'report*',
    settings: { maxAttempts: 7, backOff: { first: 10_000, jitter: 'none' }, deadline: 5_400_000, force: true },
    ...{ by: 'host:7', since: at(-3_000), declared: { owner: 'billing', version: 3 } },
  },
  { flow: 'x\u001b[31m*', error: new Error('flow-setting x* has format 9, this release reads formats up to 1') },
]
const APPLIED = [
  { key: 'maxAttempts', text: '7', from: 'report* (force)' },
  { key: 'enabled', text: 'false', from: 'report' },
]

const SCREENS: Readonly<Record<string, (screen: Screen) => string[]>> = {
  jobs: (screen) => jobsTable(JOBS, screen),
  'trash-list': (screen) => trashTable([TRASHED], screen),
  'trash-queues': (screen) => trashTable([TRASHED, { ...TRASHED, uuid: uuid(4), queue: 'bulk' }], screen),
  config: (screen) => configTable(CONFIG, screen),
  'flows-list': (screen) => flowSettingsTable(FLOW_SETTINGS, screen),
  'flows-show': (screen) => appliedSettingsTable(APPLIED, screen),
  history: (screen) => historyTable(ENDED, screen),
  ...Object.fromEntries(
    Object.entries(REPORTS).map(([name, report]) => [name, (screen: Screen) => reportLines(uuid(1), report, screen)]),
  ),
  'track-done': (screen) => trackedLines(DONE, { screen, hasNoConductors: false }),
  'track-reporting': (screen) => trackedLines(REPORTING, { screen, hasNoConductors: false }),
  'track-waiting': (screen) => trackedLines(WAITING, { screen, hasNoConductors: false }),
  conductors: (screen) => conductorsTable(CONDUCTORS, screen),
  info: (screen) => infoLines(INFO, screen),
  'info-idle': (screen) => infoLines(IDLE, screen),
  doctor: (screen) => [
    ...FINDINGS.flatMap((finding) => findingLines(finding, screen)),
    '',
    verdictLine({ ok: 1, warning: 1, error: 1 }, screen),
  ],
  'logbook-list': (screen) => logbooksTable(BOOKS, screen),
  'logbook-show': (screen) => logbookReport(BOOK, screen),
  demo: (screen) => [
    ...HAPPENED.flatMap((event) => eventLine(event, screen) ?? []),
    ...demoSummaryLines(SHOWN, { kept: undefined, deleted: 'file' }, screen),
  ],
  'demo-kept': (screen) => demoSummaryLines(SHOWN, { kept: KEPT, deleted: undefined }, screen),
  'demo-failed': (screen) =>
    demoSummaryLines({ jobs: 6, complete: 5, took: 12_345 }, { kept: undefined, deleted: undefined }, screen),
  run: () => resultLines({ text: 'Hello, Ada', 'many words': [1, 2], nothing: undefined }),
}

/** What stands on either side of the screen. */
const MODES: readonly (readonly [name: string, columns: number | undefined, env: Readonly<Record<string, string>>])[] =
  [
    ['terminal of 80 columns', 80, {}],
    ['terminal of 200 columns', 200, {}],
    ['pipe', undefined, {}],
    ['terminal of 80 columns with NO_COLOR', 80, { NO_COLOR: '1' }],
  ]

function screen(columns: number | undefined, env: Readonly<Record<string, string>>): Screen {
  const stdout = streamOutput(Object.assign(new PassThrough(), columns === undefined ? {} : { columns }))
  return { ...toScreen({ stdout, env }), now: NOW }
}

/** Escapes are written out, so that a diff shows them. */
const visible = (line: string) => line.replaceAll('\x1b', '\\e')
const bare = (line: string) => line.replaceAll(/\\e\[\d+m/g, '')

test('a terminal that does not know how wide it is cuts nothing', () => {
  expect(jobsTable(JOBS, screen(0, { NO_COLOR: '1' }))).toEqual(jobsTable(JOBS, screen(undefined, {})))
})

describe.each(Object.entries(SCREENS))('%s', (name, lines) => {
  test('is as it is kept', async () => {
    const shown = MODES.map(
      ([mode, columns, env]) => `== ${mode}\n${lines(screen(columns, env)).map(visible).join('\n')}\n`,
    )
    await expect(shown.join('\n')).toMatchFileSnapshot(`screens/${name}.txt`)
  })

  test('is no wider than the terminal where it can be cut, and says the same with and without colours', () => {
    const [coloured, , piped, plain] = MODES.map(([, columns, env]) => lines(screen(columns, env)).map(visible))
    expect(coloured?.map(bare)).toEqual(plain)
    expect([...(piped ?? []), ...(plain ?? [])].join('')).not.toContain('\\e')
    const wide = (plain ?? []).filter(
      (line) => displayWidth(line) > 80 && !/^( {2}|no run is active|job |logbook )/.test(line),
    )
    expect(wide).toEqual([])
  })
})

describe('colours', () => {
  const painted = (columns: number | undefined, env: Readonly<Record<string, string>>) =>
    screen(columns, env).paint('x', 'bad') !== 'x'
  test.each([
    [80, {}, true],
    [undefined, {}, false],
    [80, { NO_COLOR: '1' }, false],
    [80, { NO_COLOR: '' }, true],
    [undefined, { FORCE_COLOR: '1' }, true],
    [80, { FORCE_COLOR: '0' }, false],
    [80, { FORCE_COLOR: '1', NO_COLOR: '1' }, true],
    [80, { TERM: 'dumb' }, false],
  ])('%s columns, %j: %s', (columns, env, yes) => {
    expect(painted(columns, env)).toBe(yes)
  })
})

test('bars: what is there is seen, and no more than fits', () => {
  const drawn = (value: number) => renderBar(value, { most: 100, width: 10 })
  expect([0, 1, 50, 55, 100, 200].map(drawn)).toEqual(['', '▏', '█████', '█████▌', '██████████', '██████████'])
  expect(renderBar(3, { most: 10, width: 10, rest: '░' })).toBe('███░░░░░░░')
})
