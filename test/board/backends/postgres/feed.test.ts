/** The change feed of a Postgres board, with a connection that answers when the test says so. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type FeedSource, PostgresChangeFeed } from '../../../../src/board/backends/postgres/connection/feed.ts'
import { createDeferred, type Deferred } from '../../../../src/core/async/abort.ts'
import type { PostgresConnection } from '../../../../src/postgres/index.ts'

type Answer = Awaited<ReturnType<PostgresConnection['query']>>

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function openFeed(): PostgresChangeFeed {
  return new PostgresChangeFeed({
    ...{ schema: 'jobboard', board: 1, period: 10_000 },
    sink: {
      changes: () => undefined,
      paused: () => undefined,
      gap: () => undefined,
      jobCount: () => undefined,
      health: () => undefined,
    },
    onServerTime: () => undefined,
    misnumbered: () => undefined,
  })
}

function waitingSource(): { readonly source: FeedSource; readonly answer: Deferred<Answer> } {
  const answer = createDeferred<Answer>()
  const connection = { query: () => answer.promise } as unknown as PostgresConnection
  return { source: { connection, session: 1, onError: () => undefined }, answer }
}

const SNAPSHOT = { rows: [{ snapshot: '1:1:', at: 0, jobs: 0, paused: false }] } as unknown as Answer

test('a feed polls once per period after it was attached', async () => {
  const { source, answer } = waitingSource()
  const feed = openFeed()
  const attaching = feed.attach(source)
  answer.resolve(SNAPSHOT)
  await attaching
  expect(vi.getTimerCount()).toBe(1)
  feed.detach()
  expect(vi.getTimerCount()).toBe(0)
})

test('a feed that is detached before the server has answered leaves no timer, which would keep the process alive', async () => {
  const { source, answer } = waitingSource()
  const feed = openFeed()
  const attaching = feed.attach(source)
  feed.detach()
  answer.resolve(SNAPSHOT)
  await attaching
  expect(vi.getTimerCount()).toBe(0)
  await feed.caughtUp()
})

test('a feed that is attached again meanwhile follows the newer connection', async () => {
  const [first, second] = [waitingSource(), waitingSource()]
  const feed = openFeed()
  const attaching = feed.attach(first.source)
  feed.detach()
  const again = feed.attach(second.source)
  second.answer.resolve(SNAPSHOT)
  await again
  first.answer.resolve(SNAPSHOT)
  await attaching
  expect(vi.getTimerCount()).toBe(1)
  feed.detach()
  expect(vi.getTimerCount()).toBe(0)
})
