/** What `jobboard doctor` finds of limits. */
import { expect, onTestFinished, test } from 'vitest'
import { boardInternals, memoryTestBackend } from '../../../src/board/internal.ts'
import { LIMITS } from '../../../src/board/limits/record.ts'
import { examineLimits } from '../../../src/cli/doctor/limits.ts'
import type { JobBoard } from '../../../src/index.ts'
import { ManualClock } from '../../../src/testing/index.ts'

async function setup(): Promise<JobBoard> {
  const board = await memoryTestBackend({ clock: new ManualClock() }).open({ who: 'ada' })
  onTestFinished(() => board.close())
  return board
}

test('a board without limits has no findings, and limits that permit something are counted', async () => {
  const board = await setup()
  expect(await examineLimits(board)).toEqual([])
  await board.limits.set('api', { concurrency: 1 })
  await board.limits.pushBack('api', { for: '1m' })
  expect(await examineLimits(board)).toEqual([{ severity: 'ok', about: 'limits', text: '1 limit' }])
})

test('keys that start nothing until somebody acts are reported', async () => {
  const board = await setup()
  await board.limits.stop('tenant/7', { reason: 'unpaid' })
  await board.limits.set('zero', { concurrency: 0 })
  expect(await examineLimits(board)).toMatchObject([
    {
      severity: 'warning',
      text: expect.stringMatching(/^limit tenant\/7 was stopped by ada at .* \(unpaid\): none of its jobs starts$/),
      advice: 'jobboard limits resume tenant/7',
    },
    {
      severity: 'warning',
      text: 'limit zero permits 0 jobs at once: none of its jobs starts',
      advice: 'jobboard limits set zero --concurrency 1',
    },
  ])
})

test('the command that opens a limit keeps its other settings, whatever characters the key has', async () => {
  const board = await setup()
  await board.limits.set('tenant/*', { concurrency: 0, fair: true, rate: { limit: 100, per: '90s', burst: 20 } })
  await board.limits.set("it's $HOME", { concurrency: 0, rate: { limit: 1.5, per: 1_001 } })
  expect((await examineLimits(board)).map(({ advice }) => advice)).toEqual([
    `jobboard limits set 'it'\\''s $HOME' --concurrency 1 --rate 1.5/1001ms`,
    "jobboard limits set 'tenant/*' --concurrency 1 --rate 100/90s --burst 20 --fair",
  ])
})

test('a limit below the number of running jobs, and one of a newer release, are reported', async () => {
  const board = await setup()
  await board.limits.set('api', { concurrency: 2 })
  for (let n = 0; n < 2; n += 1) await board.post('work', {}, { limits: ['api'] })
  await board.claimNext({ max: 2 })
  await board.limits.set('api', { concurrency: 1 })
  await boardInternals(board)
    .records.of({ ...LIMITS, format: 2, parse: (value) => value as object })
    .write([{ id: 'later', revision: undefined, value: {} }])
  expect(await examineLimits(board)).toMatchObject([
    { severity: 'warning', text: expect.stringMatching(/^limit api: 2 jobs run, and 1 may/) },
    { severity: 'error', text: expect.stringMatching(/later.*none of its jobs starts here$/) },
  ])
})
