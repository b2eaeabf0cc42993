/** Callers of one board wait for jobs at the same time: what becomes due wakes each of them, whoever has noticed it first. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type JobBoard, openBoard, type PostOptions } from '../../../src/board/index.ts'
import { Timeout } from '../../../src/core/errors.ts'
import { rejectionOf } from '../events.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const TIME_MS = 100

/** Lets the time pass, and then has a caller look for jobs of which it accepts none, before the timer fires. */
async function lookFirst(board: JobBoard): Promise<void> {
  await vi.advanceTimersByTimeAsync(1)
  vi.setSystemTime(Date.now() + TIME_MS)
  expect(await rejectionOf(board.claimNext({ accept: () => false, timeout: 0 }))).toBeInstanceOf(Timeout)
  await vi.advanceTimersByTimeAsync(1)
}

test.each<readonly [string, PostOptions]>([
  ['the end of its delay', { delay: TIME_MS }],
  ['a token', { limits: ['api'] }],
])('a job that waits for %s is claimed by the caller that accepts it', async (_, options) => {
  await using board = await openBoard('memory:')
  await board.limits.set('api', { rate: { limit: 1, per: TIME_MS } })
  await board.limits.take('api')
  await board.post('work', {}, options)
  let claimed = 0
  const waiting = board.claimNext().then((claims) => {
    claimed = claims.length
  })
  await lookFirst(board)
  expect(claimed).toBe(1)
  await waiting
})

test('a job that its poster claims starts when its limit permits it', async () => {
  await using board = await openBoard('memory:')
  await board.limits.set('api', { rate: { limit: 1, per: TIME_MS } })
  await board.limits.take('api')
  let run = 0
  const own = board.postAndClaim('work', {}, { limits: ['api'] }).then((claim) => {
    run = claim.run
  })
  await vi.advanceTimersByTimeAsync(TIME_MS - 1)
  expect(run).toBe(0)
  await vi.advanceTimersByTimeAsync(2)
  expect(run).toBe(1)
  await own
})
