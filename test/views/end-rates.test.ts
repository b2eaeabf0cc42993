/** How many jobs of each queue end in a minute. */
import { expect, test } from 'vitest'
import { openBoard } from '../../src/index.ts'
import { type EndRates, endRatesOf } from '../../src/views/end-rates.ts'
import { InfoReader } from '../../src/views/internal.ts'

const NOW = Date.UTC(2026, 0, 1)

/** Returns jobs of a queue that ended so many seconds ago. */
function ended(queue: string, ...ages: readonly number[]) {
  return ages.map((age) => ({
    queue,
    runs: 0,
    postedAt: new Date(0),
    startedAt: undefined,
    endedAt: new Date(NOW - age * 1_000),
  }))
}

const perMinute = (rates: EndRates = new Map()) =>
  Object.fromEntries([...rates].map(([queue, { endedPerMinute }]) => [queue, endedPerMinute]))

test('the wait of a queue is the median of its jobs that ran once', () => {
  const job = (waited: number, runs = 1) => {
    const [startedAt, endedAt] = [new Date(NOW - 2_000), new Date(NOW - 1_000)]
    return { queue: 'bulk', runs, postedAt: new Date(startedAt.getTime() - waited), startedAt, endedAt }
  }
  const jobs = [job(5), job(90_000, 2), job(1_000), job(30)]
  expect(endRatesOf(jobs, { now: NOW, limit: 100 })?.get('bulk')).toEqual({ endedPerMinute: 4, waitedMs: 30 })
})

test('the jobs of the last minute are counted', () => {
  const jobs = [...ended('bulk', 0, 10, 59, 61), ...ended('urgent', 30), ...ended('mail', 600)]
  const rates = endRatesOf(jobs, { now: NOW, limit: 1_000 })
  expect(perMinute(rates)).toEqual({ bulk: 3, urgent: 1 })
  expect(endRatesOf([], { now: NOW, limit: 1_000 })).toBeUndefined()
})

test('where more jobs have ended in the minute than are read, the rate is that of the time which they cover', () => {
  const jobs = [...ended('bulk', 1, 2, 3), ...ended('urgent', 6)]
  expect(perMinute(endRatesOf(jobs, { now: NOW, limit: 4 }))).toEqual({ bulk: 30, urgent: 10 })
  // The newest four jobs reach back for more than a minute.
  const slow = [...ended('bulk', 1, 2, 3), ...ended('urgent', 90)]
  expect(perMinute(endRatesOf(slow, { now: NOW, limit: 4 }))).toEqual({ bulk: 3 })
})

test('the view of a board has them, also of a queue that has no jobs any more, and does not read them each time', async () => {
  await using board = await openBoard('memory:')
  using reader = new InfoReader(board)
  await board.post('flow', {}, { queue: 'urgent' })
  expect((await reader.read()).queues).toMatchObject([{ queue: 'urgent', unclaimed: 1 }])
  expect((await reader.read()).queues[0]).not.toHaveProperty('endedPerMinute')
  await (await board.claim(await board.post('flow', {}, { queue: 'bulk' }))).consume()
  using other = new InfoReader(board)
  const expected = [
    { queue: 'bulk', unclaimed: 0, claimed: 0, endedPerMinute: 1 },
    { queue: 'urgent', unclaimed: 1, claimed: 0, endedPerMinute: 0 },
  ]
  expect((await other.read()).queues).toMatchObject(expected)
  await (await board.claim(await board.post('flow', {}, { queue: 'bulk' }))).consume()
  expect((await other.read()).queues).toMatchObject(expected)
})

test('a board on which more than a hundred jobs end in a minute has the rate of all of them', async () => {
  await using board = await openBoard('memory:')
  using reader = new InfoReader(board)
  await board.postMany(
    Array.from({ length: 120 }, (_, n) => ({ flow: 'flow', store: {}, queue: n < 90 ? 'bulk' : 'mail' })),
  )
  for (let left = 120; left > 0; ) {
    const claims = await board.claimNext({ max: 50 })
    await Promise.all(claims.map((claim) => claim.consume()))
    left -= claims.length
  }
  expect((await reader.read()).queues).toMatchObject([
    { queue: 'bulk', endedPerMinute: 90 },
    { queue: 'mail', endedPerMinute: 30 },
  ])
})

test('a board that keeps no history has none', async () => {
  await using board = await openBoard('memory:', { keepHistory: 0 })
  using reader = new InfoReader(board)
  await board.post('flow', {})
  expect((await reader.read()).queues[0]).not.toHaveProperty('endedPerMinute')
})
