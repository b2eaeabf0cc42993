/** What `jobboard doctor` finds of schedules. */
import { expect, onTestFinished, test } from 'vitest'
import { boardInternals, memoryTestBackend } from '../../../src/board/internal.ts'
import { SCHEDULES } from '../../../src/board/schedules/record.ts'
import { examineSchedules } from '../../../src/cli/doctor/schedules.ts'
import { type JobBoard, schedule } from '../../../src/index.ts'
import { ManualClock } from '../../../src/testing/index.ts'

async function setup(): Promise<{ board: JobBoard; clock: ManualClock }> {
  const clock = new ManualClock()
  const board = await memoryTestBackend({ clock }).open({ who: 'ada' })
  onTestFinished(() => board.close())
  return { board, clock }
}

const register = (board: JobBoard, name: string, metadata: Record<string, unknown>) =>
  board.registerEntity({ kind: 'conductor', name, metadata })

const hourly = (id: string) => schedule(id, { every: '1h' }, 'report', {})

test('a board without schedules has no findings, and healthy schedules are counted', async () => {
  const { board } = await setup()
  expect(await examineSchedules(board)).toEqual([])
  await register(board, 'c', { flows: ['report'] })
  await board.schedules.put(hourly('a'))
  expect(await examineSchedules(board)).toEqual([{ severity: 'ok', about: 'schedules', text: '1 schedule' }])
})

test('schedules without any conductor are reported before their time has come', async () => {
  const { board } = await setup()
  await board.schedules.put(hourly('b'))
  await board.schedules.put(hourly('paused'))
  await board.schedules.pause('paused')
  const text = expect.stringMatching(/^no conductor is connected, and 1 schedule should fire; the next is b at /)
  expect(await examineSchedules(board)).toMatchObject([{ severity: 'warning', text }])
})

test('a schedule whose last jobs have failed is reported', async () => {
  const { board } = await setup()
  await register(board, 'c', { flows: ['report'] })
  await board.schedules.put(hourly('a'))
  await board.schedules.jobEnded('a', { uuid: 'one', failed: true })
  expect(await examineSchedules(board)).toMatchObject([{ severity: 'ok' }])
  await board.schedules.jobEnded('a', { uuid: 'two', failed: true })
  const text = 'schedule a: its last 2 jobs have failed, and are in the trash'
  expect(await examineSchedules(board)).toMatchObject([{ severity: 'warning', text }])
  await board.schedules.jobEnded('a', { uuid: 'three', failed: false })
  expect(await examineSchedules(board)).toMatchObject([{ severity: 'ok' }])
})

test('schedules that nobody fires are late', async () => {
  const { board, clock } = await setup()
  await register(board, 'c', { flows: ['report'] })
  await board.schedules.put(hourly('a'))
  clock.advance('2h')
  const [found] = await examineSchedules(board)
  expect(found).toMatchObject({ severity: 'warning', text: expect.stringMatching(/^not fired for up to .*: a$/) })
})

test('a schedule whose flow no conductor has is reported, unless it is paused', async () => {
  const { board } = await setup()
  await register(board, 'c', { flows: ['import'], versions: { import: ['1.0'] } })
  await board.schedules.put(hourly('a'))
  const [found] = await examineSchedules(board)
  expect(found).toMatchObject({
    severity: 'warning',
    text: expect.stringContaining('no living conductor has flow report'),
  })
  await board.schedules.pause('a')
  expect(await examineSchedules(board)).toMatchObject([{ severity: 'ok' }])
})

test('a schedule that its program no longer declares is an orphan, if the program runs', async () => {
  const { board } = await setup()
  const declare = ['kept', 'gone'].map(hourly)
  await boardInternals(board).declareSchedules({ declare, owner: 'billing', prune: false })
  await register(board, 'z', { flows: ['report'] })
  expect(await examineSchedules(board)).toMatchObject([{ severity: 'ok' }])
  await register(board, 'c', { flows: ['report'], declares: { owner: 'billing', ids: ['kept'] } })
  await register(board, 'd', { flows: ['report'], declares: { owner: 'other', ids: [] } })
  expect(await examineSchedules(board)).toMatchObject([{ text: expect.stringMatching(/declares gone,/) }])
})

test('different time-zone data and unreadable schedules are reported', async () => {
  const { board } = await setup()
  await board.schedules.put(hourly('a'))
  await register(board, 'c', { flows: ['report'], timeZones: '2025b' })
  await register(board, 'd', { flows: ['report'], timeZones: '2026a' })
  const found = await boardInternals(board).records.of(SCHEDULES).get('a')
  if (!found || 'error' in found) throw new Error('the schedule cannot be read')
  const newer = boardInternals(board).records.of({ ...SCHEDULES, format: 4, formatOf: () => 4 })
  await newer.write([{ id: 'b', revision: undefined, value: found.value }])
  expect(await examineSchedules(board)).toMatchObject([
    { about: 'time zones', text: 'conductors have different time-zone data: 2025b, 2026a' },
    { severity: 'error', text: expect.stringContaining('schedule b has format 4') },
  ])
})
