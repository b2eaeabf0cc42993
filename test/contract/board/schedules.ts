/** Schedules: each nominal time is posted once, whichever boards fire it, and whatever happens to them. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { type JobBoard, type ScheduleOptions, type ScheduleView, schedule } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import type { Fired } from '../../../src/board/schedules/firing.ts'
import { SCHEDULES } from '../../../src/board/schedules/record.ts'
import { Condition } from '../../../src/core/async/abort.ts'
import {
  Duplicate,
  IncompatibleVersion,
  InvalidArgument,
  InvalidPosting,
  NotFound,
  UnsupportedCapability,
} from '../../../src/core/errors.ts'
import type { ScheduleSpec } from '../../../src/schedule/index.ts'
import { rejectionOf } from '../../board/events.ts'
import { all } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

const LIMIT_MS = 30_000

const declare = (id: string, spec: ScheduleSpec, options: ScheduleOptions = {}) =>
  schedule(id, spec, 'report', { region: 'eu' }, options)

/** What schedulers have reported, and a way to wait for more. */
class Reports {
  readonly fired: Fired[] = []
  readonly errors: Error[] = []
  readonly #changed = new Condition()

  add(fired: Fired): void {
    this.fired.push(fired)
    this.#changed.notify()
  }

  /** The nominal times that were posted, oldest first. */
  times(id: string): number[] {
    const posted = this.fired.filter((one) => one.id === id).flatMap((one) => one.posted)
    return posted.map(({ nominal }) => nominal).sort((a, b) => a - b)
  }

  async until(condition: () => boolean): Promise<void> {
    const signal = AbortSignal.timeout(LIMIT_MS)
    while (!condition()) await this.#changed.wait({ signal })
  }
}

async function fireOn(board: JobBoard, name: string, reports: Reports): Promise<void> {
  const scheduler = boardInternals(board).scheduler({
    name,
    onFired: (fired) => reports.add(fired),
    onError: (error) => reports.errors.push(error),
  })
  onTestFinished(() => scheduler[Symbol.asyncDispose]())
  await scheduler.start()
}

async function uuidsOn(board: JobBoard): Promise<string[]> {
  const uuids: string[] = []
  for await (const job of board.jobs({ ensureFresh: true })) uuids.push(job.uuid)
  return uuids
}

export function schedulesContract({ open, expire }: Place): void {
  test('each time is posted once, whichever board fires it', async () => {
    const boards = await Promise.all([open(), open(), open()])
    const reports = new Reports()
    for (const [index, board] of boards.entries()) await fireOn(board, `c${index}`, reports)
    const ids = Array.from({ length: 8 }, (_, n) => `s${n}`)
    const [first] = boards
    for (const id of ids) await first.schedules.put(declare(id, { every: '1s' }, { overlap: 'allow' }))
    await reports.until(() => ids.every((id) => reports.times(id).length >= 2))
    for (const id of ids) await first.schedules.pause(id)
    const posted = reports.fired.flatMap((one) => one.posted.map(({ uuid }) => uuid))
    expect(new Set(posted).size).toBe(posted.length)
    expect((await uuidsOn(first)).sort()).toEqual(posted.sort())
    for (const id of ids) {
      const times = reports.times(id)
      expect(times.every((time) => time % 1_000 === 0)).toBe(true)
      const shown = await first.schedules.show(id)
      expect(shown.counts).toMatchObject({ fired: times.length })
      // No time between two others is lost: it was posted, or counted.
      const span = (Number(times.at(-1)) - Number(times[0])) / 1_000 + 1
      expect(times.length + (shown.counts?.skipped.missed ?? 0)).toBeGreaterThanOrEqual(span)
    }
    expect(reports.errors).toEqual([])
  })

  test('a job says for which time of which schedule it was posted', async () => {
    const board = await open()
    const reports = new Reports()
    await fireOn(board, 'c', reports)
    await board.schedules.put(
      declare('s', { every: '1s' }, { post: { priority: 'HIGH', name: 'nightly', expiresAfter: '1h' } }),
    )
    await reports.until(() => reports.times('s').length === 1)
    const [waiting] = await all(board.jobs({ ensureFresh: true }))
    const { expiresAt, postedAt } = waiting ?? {}
    expect((expiresAt?.getTime() ?? 0) - (postedAt?.getTime() ?? 0)).toBe(3_600_000)
    const [claim] = await board.claimNext()
    expect(claim.job).toMatchObject({ name: 'nightly', priority: 'HIGH' })
    expect(claim.job.details).toEqual({
      ...{ flow: 'report', store: { region: 'eu' } },
      schedule: {
        ...{ id: 's', lateMs: expect.any(Number) },
        nominal: new Date(reports.times('s')[0] ?? 0).toISOString(),
      },
    })
    await claim.consume()
  })

  describe('while a job of the schedule is on the board', () => {
    test.each<['skip' | 'queueOne', number]>([
      ['skip', 1],
      ['queueOne', 2],
    ])('with %s no more than so many are: %i', async (overlap, most) => {
      const board = await open()
      const reports = new Reports()
      await fireOn(board, 'c', reports)
      await board.schedules.put(declare('s', { every: '1s' }, { overlap }))
      const skips = () => reports.fired.flatMap(({ skipped }) => skipped).filter(({ reason }) => reason === 'overlap')
      await reports.until(() => skips().length > 0)
      await board.schedules.pause('s')
      expect(await uuidsOn(board)).toHaveLength(most)
      const { counts } = await board.schedules.show('s')
      expect(counts).toMatchObject({ fired: most, skipped: { overlap: skips().length } })
      expect(await rejectionOf(board.schedules.trigger('s'))).toBeInstanceOf(Duplicate)
    })

    test('with queueAll each waits for the one before', async () => {
      const board = await open()
      const reports = new Reports()
      await fireOn(board, 'c', reports)
      await board.schedules.put(declare('s', { every: '1s' }, { overlap: 'queueAll' }))
      await reports.until(() => reports.times('s').length >= 2)
      await board.schedules.pause('s')
      const [claim, ...others] = await board.claimNext({ max: 5 })
      expect(others).toEqual([])
      await claim.consume()
      const [next] = await board.claimNext({ max: 5, timeout: '5s' })
      expect(next.job.details).not.toEqual(claim.job.details)
      await next.consume()
    })

    test('with cancelPrevious the earlier one is cancelled', async () => {
      const board = await open()
      const reports = new Reports()
      await fireOn(board, 'c', reports)
      await board.schedules.put(declare('s', { every: '1s' }, { overlap: 'cancelPrevious' }))
      await reports.until(() => reports.times('s').length >= 2)
      await board.schedules.pause('s')
      const trash: string[] = []
      for await (const { uuid } of board.trashed()) trash.push(uuid)
      const posted = reports.fired.flatMap((one) => one.posted.map(({ uuid }) => uuid))
      expect(trash).toEqual(posted.slice(0, -1))
      expect(await uuidsOn(board)).toEqual(posted.slice(-1))
    })
  })

  test('the end of a job decides the next time, with from completion', async () => {
    const board = await open()
    const reports = new Reports()
    await fireOn(board, 'c', reports)
    await board.schedules.put(declare('s', { every: '1s', from: 'completion' }))
    await reports.until(() => reports.times('s').length === 1)
    expect(await board.schedules.show('s')).toMatchObject({ state: 'waiting' })
    const [claim] = await board.claimNext()
    await claim.consume()
    const before = boardInternals(board).clock.now()
    await board.schedules.jobEnded('s', { uuid: claim.job.uuid })
    await reports.until(() => reports.times('s').length === 2)
    expect(reports.times('s')[1]).toBeGreaterThan(before)
  })

  test('jobs that fail in a row pause the schedule', async () => {
    const board = await open()
    await board.schedules.put(declare('s', { every: '1h' }, { pauseAfterFailures: 2 }))
    for (const failed of [true, false, true]) await board.schedules.jobEnded('s', { uuid: 'x', failed })
    expect(await board.schedules.show('s')).toMatchObject({ state: 'active', failuresInRow: 1 })
    await board.schedules.jobEnded('s', { uuid: 'x', failed: true })
    const shown = await board.schedules.show('s')
    expect(shown).toMatchObject({ state: 'paused', paused: { reason: '2 jobs in a row have failed' } })
    expect(shown.next).toBeUndefined()
    await board.schedules.resume('s')
    expect(await board.schedules.show('s')).toMatchObject({ state: 'active', failuresInRow: 0 })
  })

  test('is put, listed, paused, resumed and removed by any board', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await here.schedules.put(declare('b', { every: '1h' }))
    await here.schedules.put(declare('a', { cron: '30 2 * * *', zone: 'Europe/Berlin' }, { tenants: { x: {}, y: {} } }))
    const ids = (views: readonly ScheduleView[]) => views.map(({ id, state }) => `${id} ${state}`)
    expect(ids(await there.schedules.list())).toEqual(['a/x active', 'a/y active', 'b active'])
    await there.schedules.pause('b', { reason: 'maintenance' })
    expect(await here.schedules.show('b')).toMatchObject({ paused: { by: there.who, reason: 'maintenance' } })
    expect(await here.schedules.resume('b')).toEqual({ passed: 0 })
    await here.schedules.remove('b')
    for (const gone of ['show', 'pause', 'resume', 'remove', 'trigger', 'next'] as const)
      expect(await rejectionOf(there.schedules[gone]('b'))).toBeInstanceOf(NotFound)
    expect(ids(await there.schedules.list())).toEqual(['a/x active', 'a/y active'])
  })

  test('edits at the same moment both take effect', async () => {
    const [one, other] = [await open(), await open()]
    await one.schedules.put(declare('s', { every: '1h' }))
    await Promise.all([
      one.schedules.edit('s', { overlap: 'queueOne' }),
      other.schedules.edit('s', { catchUp: 'none' }),
      one.schedules.edit('s', { store: { region: 'us' } }),
    ])
    expect(await one.schedules.show('s')).toMatchObject({
      overlap: 'queueOne',
      catchUp: 'none',
      store: { region: 'us' },
    })
  })

  test('a schedule and the tenant next of it do not wait for each other', async () => {
    const board = await open()
    await board.schedules.put(declare('n', { every: '1h' }, { overlap: 'queueOne' }))
    await board.schedules.put(declare('n', { every: '1h' }, { tenants: { next: {} } }))
    await board.schedules.trigger('n/next')
    await board.schedules.trigger('n')
    await board.schedules.trigger('n')
    expect(await rejectionOf(board.schedules.trigger('n'))).toBeInstanceOf(Duplicate)
    expect(await rejectionOf(board.schedules.trigger('n/next'))).toBeInstanceOf(Duplicate)
  })

  test('a resumed schedule that makes up its last time has ended', async () => {
    const board = await open()
    const reports = new Reports()
    await board.schedules.put(declare('s', { every: '1s' }, { times: 1 }))
    await board.schedules.pause('s')
    await fireOn(board, 'c', reports)
    await board.schedules.put(declare('clock', { every: '1s' }, { overlap: 'allow' }))
    await reports.until(() => reports.times('clock').length >= 2)
    const { posted } = await board.schedules.resume('s', { catchUp: 'latest' })
    expect(posted).toBeDefined()
    const shown = await board.schedules.show('s')
    expect(shown).toMatchObject({ state: 'ended', counts: { fired: 1 } })
    expect(shown).not.toHaveProperty('next')
  })

  test('what is triggered and backfilled is marked, and changes no time', async () => {
    const board = await open()
    await board.schedules.put(declare('s', { every: '1h' }, { overlap: 'allow' }))
    const before = await board.schedules.show('s')
    const now = boardInternals(board).clock.now()
    const manual = await board.schedules.trigger('s', { store: { region: 'us' } })
    expect((await board.find(manual)).details).toMatchObject({
      ...{ store: { region: 'us' } },
      schedule: { id: 's', manual: true },
    })
    const filled = await board.schedules.backfill('s', { from: new Date(now - 3 * 3_600_000) })
    expect(filled).toHaveLength(3)
    expect((await board.find(filled[0] ?? '')).details).toMatchObject({ schedule: { backfill: true } })
    expect(await uuidsOn(board)).toHaveLength(4)
    const after = await board.schedules.show('s')
    expect(after.next).toEqual(before.next)
    expect(after.counts).toMatchObject({ fired: 0, manual: 1, backfilled: 3 })
    const future = board.schedules.backfill('s', { from: new Date(now + 3_600_000) })
    expect(await rejectionOf(future)).toBeInstanceOf(InvalidArgument)
  })

  test('times with large stores are caught up and backfilled in as many writes as they need', async () => {
    const board = await open()
    const store = { text: 'x'.repeat(100_000) }
    const options = { overlap: 'allow', catchUp: 'all' } as const
    await board.schedules.put(schedule('s', { every: '1s' }, 'report', store, options))
    const filled = await board.schedules.backfill('s', { from: new Date(boardInternals(board).clock.now() - 8_000) })
    expect(filled.length).toBeGreaterThanOrEqual(7)
    // As if no conductor had been there for eight seconds.
    const schedules = boardInternals(board).records.of(SCHEDULES)
    const found = await schedules.get('s')
    if (!found || 'error' in found) throw new Error('the schedule cannot be read')
    const nominal = found.value.cursor - (found.value.cursor % 1_000) - 8_000
    const value = { ...found.value, cursor: nominal - 1, next: { nominal, at: nominal } }
    await schedules.write([{ id: 's', revision: found.revision, value }])
    const reports = new Reports()
    await fireOn(board, 'c', reports)
    await reports.until(() => reports.times('s').length >= 8)
    await board.schedules.pause('s')
    const { counts } = await board.schedules.show('s')
    expect(counts?.skipped).toEqual({})
    expect(await uuidsOn(board)).toHaveLength(filled.length + reports.times('s').length)
  })

  test('an expired session loses no time, and posts none twice', async () => {
    const boards = await Promise.all([open(), open()])
    const reports = new Reports()
    for (const [index, board] of boards.entries()) await fireOn(board, `c${index}`, reports)
    const [first, second] = boards
    for (const id of ['a', 'b', 'c']) await first.schedules.put(declare(id, { every: '1s' }, { overlap: 'allow' }))
    await reports.until(() => reports.fired.length > 0)
    await Promise.all([expire(first), expire(second)])
    const until = boardInternals(second).clock.now() + 1_000
    await reports.until(() => ['a', 'b', 'c'].every((id) => (reports.times(id).at(-1) ?? 0) > until))
    for (const id of ['a', 'b', 'c']) await second.schedules.pause(id)
    for (const id of ['a', 'b', 'c']) {
      const { counts, recent = [] } = await second.schedules.show(id)
      const times = recent.filter(({ uuid }) => uuid !== undefined).map(({ nominal }) => nominal.getTime())
      expect(new Set(times).size).toBe(times.length)
      expect(counts?.fired).toBeGreaterThanOrEqual(2)
    }
    const uuids = await uuidsOn(second)
    const total = (await second.schedules.list()).reduce((sum, { counts }) => sum + (counts?.fired ?? 0), 0)
    expect(uuids).toHaveLength(total)
  })

  test('a schedule of a newer release is left as it is, and hides no other', async () => {
    const board = await open()
    const newer = boardInternals(board).records.of({ ...SCHEDULES, format: 4, formatOf: () => 4 })
    await board.schedules.put(declare('old', { every: '1s' }, { overlap: 'allow' }))
    const found = await newer.get('old')
    if (!found || 'error' in found) throw new Error('the schedule cannot be read')
    await newer.write([{ id: 'new', revision: undefined, value: found.value }])
    const reports = new Reports()
    await fireOn(board, 'c', reports)
    await reports.until(() => reports.times('old').length > 0)
    expect(reports.errors).toEqual([expect.any(IncompatibleVersion)])
    expect(reports.times('new')).toEqual([])
    const views = await board.schedules.list()
    expect(views.map(({ id, state }) => `${id} ${state}`)).toEqual(['new unreadable', 'old active'])
    expect(await rejectionOf(board.schedules.put(declare('new', { every: '1h' })))).toBeInstanceOf(IncompatibleVersion)
    await board.schedules.remove('new')
    await board.schedules.pause('old')
  })

  test.each<[string, ScheduleSpec, RegExp]>([
    ['no occurrence', { cron: '0 0 30 2 *' }, /(has no|no) occurrence/],
    ['an unknown zone', { cron: '0 0 * * *', zone: 'Mars/Olympus' }, /zone must be the name of a time zone/],
    ['too many', { every: '500ms' }, /at least one second/],
  ])('a spec with %s is refused, and nothing is put', async (_, spec, message) => {
    const board = await open()
    const error = await rejectionOf(board.schedules.put(declare('s', spec)))
    expect(error).toBeInstanceOf(InvalidArgument)
    expect(String(error)).toMatch(message)
    expect(await board.schedules.list()).toEqual([])
  })

  test('a job that cannot be posted is refused when the schedule is put', async () => {
    const board = await open()
    const bad = schedule('s', { every: '1h' }, 'report', {}, { post: { maxAttempts: 1_000_001 } })
    expect(await rejectionOf(board.schedules.put(bad))).toBeInstanceOf(InvalidPosting)
  })
}

/** For boards without keys and resources. */
export function schedulesWithoutKeysContract({ open }: Place): void {
  test('a schedule whose jobs may overlap is fired, and others are refused by name', async () => {
    const board = await open()
    const reports = new Reports()
    await fireOn(board, 'c', reports)
    const error = await rejectionOf(board.schedules.put(declare('s', { every: '1s' })))
    expect(error).toBeInstanceOf(UnsupportedCapability)
    expect(String(error)).toContain("overlap 'allow'")
    await board.schedules.put(declare('s', { every: '1s' }, { overlap: 'allow' }))
    await reports.until(() => reports.times('s').length >= 2)
    await board.schedules.pause('s')
    expect(await uuidsOn(board)).toHaveLength(reports.times('s').length)
  })
}
