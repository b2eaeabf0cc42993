/** The settings of flows that replace options of a job, as `jobboard show` and the page of the job have them. */
import { expect, test } from 'vitest'
import { openBoard } from '../../src/board/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { AccessDenied } from '../../src/core/errors.ts'
import { describeJobSettings, readJobSettings, replacedOptions } from '../../src/views/index.ts'

test('a job has the settings that its post does not decide, each with the flow or pattern for which it is set', async () => {
  await using board = await openBoard('memory:')
  const job = await board.post('report', {}, { deadline: '2h' })
  const read = () => readJobSettings(job, boardInternals(board))
  expect(await read()).toBeUndefined()
  await board.flowSettings.set('report', { maxAttempts: 7, deadline: '1h' })
  await board.flowSettings.set('rep*', { maxAttempts: 3, backOff: { first: '10s', factor: 3 }, priority: 'HIGH' })
  await board.flowSettings.set('*', { onOwnerLost: 'fail', resultTtl: '2h' })
  const settings = await read()
  expect(settings).toEqual({
    maxAttempts: { value: 7, from: 'report' },
    backOff: { value: { first: 10_000, factor: 3 }, from: 'rep*' },
    onOwnerLost: { value: 'fail', from: '*' },
    resultTtl: { value: 7_200_000, from: '*' },
  })
  expect(replacedOptions(settings, job)).toEqual({
    ...{ maxAttempts: 7, backOff: { first: 10_000, factor: 3 }, onOwnerLost: 'fail', resultTtl: 7_200_000 },
  })
  expect(describeJobSettings(settings ?? {})).toBe(
    'maxAttempts=7 (report), backOff.first=10s backOff.factor=3 (rep*), onOwnerLost=fail (*), resultTtl=2h (*)',
  )
  await board.flowSettings.set('report', { deadline: '1h', force: true })
  expect(await read()).toMatchObject({ deadline: { value: 3_600_000, from: 'report' } })
})

test('a time to expire counts from the post, and no longer once the job has begun', async () => {
  await using board = await openBoard('memory:')
  const job = await board.post('report', {}, { backOff: { first: 0 } })
  await board.flowSettings.set('report', { expiresAfter: '1d' })
  const settings = await readJobSettings(job, boardInternals(board))
  expect(replacedOptions(settings, job)).toEqual({ expiresAt: new Date(Number(job.postedAt) + 86_400_000) })
  await (await board.claim(job)).abandon()
  expect(await readJobSettings(job, boardInternals(board))).toBeUndefined()
})

test('a user who may not read settings sees the job without them; other errors are thrown', async () => {
  await using board = await openBoard('memory:')
  const job = await board.post('report', {})
  const { postingOf } = boardInternals(board)
  const failing = (error: Error) => ({ postingOf, readFlowRules: () => Promise.reject(error) })
  expect(await readJobSettings(job, failing(new AccessDenied('not yours')))).toBeUndefined()
  await expect(readJobSettings(job, failing(new Error('away')))).rejects.toThrow('away')
})
