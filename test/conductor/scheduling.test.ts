/** Conductors and schedules: what they declare, fire, run and report. */
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { boardInternals, memoryTestBackend } from '../../src/board/internal.ts'
import { SCHEDULES } from '../../src/board/schedules/record.ts'
import {
  type ConductorEvents,
  type ConductorOptions,
  type DeclaredSchedule,
  Duplicate,
  InvalidArgument,
  InvalidPosting,
  input,
  type JobBoard,
  linear,
  MissingDependencies,
  NonRetryable,
  type ScheduledRun,
  schedule,
  startConductor,
  task,
} from '../../src/index.ts'
import { ManualClock } from '../../src/testing/index.ts'
import { nextEvent, rejectionOf } from '../board/events.ts'

const HOUR_MS = 3_600_000
const runs: { region: string; schedule: ScheduledRun | undefined }[] = []

const report = linear(
  'report',
  input<{ region: string }>(),
  task('write', {
    requires: ['region'],
    execute: ({ region }: { region: string }, ctx) => {
      runs.push({ region, schedule: ctx.schedule })
      if (region === 'none') throw new NonRetryable('there is no such region')
    },
  }),
)

function setup() {
  // A time of its own: hours that begin between two steps of a test would change what is due.
  const clock = new ManualClock({ now: new Date('2026-01-01T00:20:00Z') })
  const place = memoryTestBackend({ clock })
  const open = async (who: string): Promise<JobBoard> => {
    const board = await place.open({ who })
    onTestFinished(() => board.close())
    return board
  }
  const start = async (board: JobBoard, schedules: ConductorOptions['schedules']) => {
    const options = { board, persistence: 'memory:', flows: [report], ...(schedules ? { schedules } : {}) }
    const conductor = await startConductor(options)
    onTestFinished(() => conductor.stop())
    return conductor
  }
  runs.length = 0
  return { clock, open, start }
}

/** Resolves when the event has come so often, with the last one. */
function next<E extends keyof ConductorEvents>(
  conductor: Awaited<ReturnType<typeof startConductor>>,
  event: E,
  { times = 1 } = {},
): Promise<ConductorEvents[E]> {
  let left = times
  return new Promise((resolve) => {
    const off = conductor.on(event, (value) => {
      left -= 1
      if (left > 0) return
      off()
      resolve(value)
    })
  })
}

const every = (id: string, options: Parameters<typeof schedule>[4] = {}, region = 'eu') =>
  schedule(id, { every: '1h' }, report, { region }, options)

test('a declared schedule is fired, run, and reported', async () => {
  const { clock, open, start } = setup()
  const board = await open('a')
  const conductor = await start(board, [every('s')])
  await clock.awaited('schedule')
  const [fired, settled] = [next(conductor, 'fired'), next(conductor, 'settled')]
  clock.advance('1h')
  const { schedule: id, uuid, nominal, lateMs } = await fired
  expect(id).toBe('s')
  expect(nominal.getTime() % HOUR_MS).toBe(0)
  expect((await settled).job.uuid).toBe(uuid)
  expect(runs).toEqual([
    { region: 'eu', schedule: { id: 's', nominal, lateMs, missed: 0, manual: false, backfill: false } },
  ])
})

test('what passed without a conductor is made up when one starts, and reported as late and skipped', async () => {
  const { clock, open, start } = setup()
  const board = await open('a')
  await board.schedules.put(every('s'))
  clock.advance('5h')
  const consumed = nextEvent(board, 'consumed')
  await start(board, undefined)
  const { job } = await consumed
  expect(job.details).toMatchObject({ schedule: { missed: 4 } })
  expect((await board.schedules.show('s')).counts).toMatchObject({ fired: 1, late: 1, skipped: { missed: 4 } })
})

test('a scheduler has started when what was due by then is fired, though other times become due without end', async () => {
  const { clock, open } = setup()
  const board = await open('ada')
  for (const id of ['one', 'two']) await board.schedules.put(every(id, { overlap: 'allow', catchUp: 'all' }))
  clock.advance(3 * HOUR_MS)
  let fired = 0
  const onFired = () => {
    fired += 1
    // The next times are due before this firing has ended.
    clock.advance(HOUR_MS)
  }
  await using scheduler = boardInternals(board).scheduler({
    name: 'ada',
    onFired,
    onError: (error) => expect.fail(String(error)),
  })
  await scheduler.start()
  expect(fired).toBeGreaterThanOrEqual(2)
})

test('the end of a job decides the next time, and failures in a row pause', async () => {
  const { clock, open, start } = setup()
  const board = await open('a')
  const spec = { every: '1h', from: 'completion' } as const
  const failing = schedule('failing', { every: '1h' }, report, { region: 'none' }, { pauseAfterFailures: 2 })
  const conductor = await start(board, [schedule('spaced', spec, report, { region: 'eu' }), failing])
  for (let hour = 1; hour <= 2; hour += 1) {
    await clock.awaited('schedule')
    const ended = next(conductor, 'settled', { times: 2 })
    clock.advance('1h')
    await ended
    await expect.poll(async () => (await board.schedules.show('spaced')).next).toEqual(new Date(clock.now() + HOUR_MS))
  }
  await expect.poll(async () => (await board.schedules.show('failing')).state).toBe('paused')
  expect(await board.schedules.show('failing')).toMatchObject({ paused: { reason: '2 jobs in a row have failed' } })
})

test('an older version changes nothing, an equal declaration leaves edits, a new one replaces them', async () => {
  const { open } = setup()
  const board = await open('a')
  const declare = (...declare: DeclaredSchedule[]) =>
    boardInternals(board).declareSchedules({ declare, owner: 'reports', prune: false })
  const region = async () => (await board.schedules.show('s')).store
  expect(await declare(every('s', { version: 2 }, 'new'))).toMatchObject({ put: ['s'] })
  expect(await declare(every('s', { version: 1 }, 'old'))).toMatchObject({ put: [], newer: ['s'] })
  expect(await region()).toEqual({ region: 'new' })
  await board.schedules.edit('s', { store: { region: 'edited' } })
  await board.schedules.pause('s')
  expect(await declare(every('s', { version: 2 }, 'new'))).toMatchObject({ put: [], newer: [] })
  expect(await region()).toEqual({ region: 'edited' })
  expect(await declare(every('s', { version: 3 }, 'newest'))).toMatchObject({ put: ['s'] })
  expect(await board.schedules.show('s')).toMatchObject({ state: 'paused', store: { region: 'newest' } })
})

test('with prune, what this owner no longer declares is removed, and nothing else', async () => {
  const { open } = setup()
  const board = await open('a')
  const declare = (owner: string, prune: boolean, ...declare: DeclaredSchedule[]) =>
    boardInternals(board).declareSchedules({ declare, owner, prune })
  await declare('one', false, every('kept'), every('gone'), every('newer', { version: 9 }))
  await declare('two', false, every('other'))
  await board.schedules.put(every('by-hand'))
  expect(await declare('one', true, every('kept'))).toMatchObject({ pruned: ['gone'], kept: ['newer'] })
  const ids = (await board.schedules.list()).map(({ id }) => id)
  expect(ids).toEqual(['by-hand', 'kept', 'newer', 'other'])
})

test('an older release prunes nothing of a newer one, and no owner takes the schedules of another', async () => {
  const { open } = setup()
  const board = await open('a')
  const declare = (owner: string, prune: boolean, ...declare: DeclaredSchedule[]) =>
    boardInternals(board).declareSchedules({ declare, owner, prune })
  await declare('one', true, every('a', { version: 8 }), every('b'))
  await board.schedules.pause('b')
  expect(await declare('one', true, every('a', { version: 7 }))).toMatchObject({ newer: ['a'], pruned: [] })
  expect(await board.schedules.show('b')).toMatchObject({ state: 'paused' })
  expect(await declare('two', true, every('b', {}, 'other'))).toMatchObject({ put: [], foreign: ['b'] })
  expect(await board.schedules.show('b')).toMatchObject({ store: { region: 'eu' }, declared: { owner: 'one' } })
})

test('only a job that is more than a minute late counts as late', async () => {
  const { clock, open, start } = setup()
  const board = await open('a')
  await board.schedules.put(every('s'))
  clock.advance('1h')
  clock.advance('10m')
  const first = nextEvent(board, 'consumed')
  const conductor = await start(board, undefined)
  await first
  expect((await board.schedules.show('s')).counts).toMatchObject({ fired: 1, late: 1 })
  await clock.awaited('schedule')
  const second = next(conductor, 'settled')
  clock.advance('50m')
  await second
  expect((await board.schedules.show('s')).counts).toMatchObject({ fired: 2, late: 1 })
})

test('the same rule in other words loses no time that has passed', async () => {
  const { clock, open } = setup()
  const board = await open('a')
  await board.schedules.put(schedule('s', { every: '1h', zone: 'UTC' }, report, { region: 'eu' }))
  const before = (await board.schedules.show('s')).next
  clock.advance('90m')
  await board.schedules.put(schedule('s', { zone: 'UTC', every: '60m' }, report, { region: 'us' }))
  expect((await board.schedules.show('s')).next).toEqual(before)
  await board.schedules.put(schedule('s', { every: '30m' }, report, { region: 'us' }))
  expect((await board.schedules.show('s')).next).not.toEqual(before)
})

test('a rule that cannot be computed any more pauses its schedule with the reason', async () => {
  const { clock, open, start } = setup()
  const board = await open('a')
  await board.schedules.put(every('s'))
  const found = await boardInternals(board).records.of(SCHEDULES).get('s')
  if (!found || 'error' in found) throw new Error('the schedule cannot be read')
  const spec = { rrule: 'FREQ=SECONDLY;COUNT=100000', start: '2026-01-01' }
  await boardInternals(board)
    .records.of(SCHEDULES)
    .write([{ id: 's', revision: found.revision, value: { ...found.value, spec } }])
  clock.advance('2h')
  const conductor = await start(board, undefined)
  const shown = await board.schedules.show('s')
  expect(shown).toMatchObject({ state: 'paused', paused: { reason: expect.stringContaining('COUNT must be') } })
  expect(shown.counts?.skipped).toEqual({ refused: 1 })
  expect(conductor.healthy).toBe(true)
})

test('each tenant has its own schedule and store', async () => {
  const { clock, open, start } = setup()
  const board = await open('a')
  const conductor = await start(board, [every('s', { tenants: { acme: { region: 'us' }, umbrella: {} } })])
  const both = next(conductor, 'settled', { times: 2 })
  await clock.awaited('schedule')
  clock.advance('1h')
  await both
  const seen = runs.map(({ region, schedule: run }) => `${run?.id} ${run?.tenant} ${region}`)
  expect(seen.sort()).toEqual(['s/acme acme us', 's/umbrella umbrella eu'])
})

test.each<[string, ConductorOptions['schedules'], new (...args: never[]) => Error, RegExp]>([
  ['an id twice', [every('s'), every('s')], Duplicate, /schedule s is declared twice/],
  ['prune without an owner', { declare: [], prune: true }, InvalidArgument, /prune needs an owner/],
  ['no schedule', [{ id: 's' } as DeclaredSchedule], InvalidArgument, /each must be made by schedule/],
  ['a misspelt option', { declared: [] } as never, InvalidArgument, /did you mean "?declare/],
])('%s is refused before anything is put', async (_, schedules, Meaning, message) => {
  const { open, start } = setup()
  const board = await open('a')
  const error = await rejectionOf(start(board, schedules))
  expect(error).toBeInstanceOf(Meaning)
  expect(String(error)).toMatch(message)
  expect(await board.schedules.list()).toEqual([])
  expect(await board.entities('conductor')).toEqual([])
})

test('a store that the flow cannot use is refused when the conductor starts', async () => {
  const { open, start } = setup()
  const board = await open('a')
  const lacking = schedule('s', { every: '1h' }, report, {} as { region: string })
  expect(await rejectionOf(start(board, [lacking]))).toBeInstanceOf(MissingDependencies)
  const shape = z.object({ region: z.enum(['eu', 'us']) })
  const strict = linear('strict', input(shape), task('nothing', { execute: () => undefined }))
  const refused = schedule('s', { every: '1h' }, strict, { region: 'mars' as 'eu' })
  expect(await rejectionOf(start(board, [refused]))).toBeInstanceOf(InvalidPosting)
  expect(await board.schedules.list()).toEqual([])
  expect(await board.entities('conductor')).toEqual([])
})

test.each<[string, () => unknown, RegExp]>([
  ['an empty id', () => every(''), /the id of a schedule must be/],
  ['an id with control characters', () => every('a\nb'), /the id of a schedule must be/],
  ['a misspelt option', () => every('s', { overlaps: 'skip' } as object), /did you mean "?overlap/],
  ['an unknown overlap', () => every('s', { overlap: 'wait' as 'skip' }), /overlap must be one of skip, queueOne/],
  ['all with skip', () => every('s', { catchUp: 'all' }), /it needs overlap 'queueAll' or 'allow'/],
  ['a key of its jobs', () => every('s', { post: { key: 'k' } as object }), /post has no option "key"/],
  ['a negative version', () => every('s', { version: -1 }), /version must be a whole number from 0/],
  ['no flow', () => schedule('s', { every: '1h' }, undefined as never, {}), /flow must be a flow or the name/],
])('schedule() refuses %s', (_, declare, message) => {
  expect(declare).toThrow(InvalidArgument)
  expect(declare).toThrow(message)
})
