/** Changes come in answers and by publishing, out of order, twice, or never; the sink hears each once, in order. */
import { describe, expect, test } from 'vitest'
import { NotificationCanary } from '../../../../src/board/backends/notification-canary.ts'
import { RedisChangeFeed } from '../../../../src/board/backends/redis/store/feed.ts'
import type { BackendSink } from '../../../../src/board/contract/index.ts'

const BEGUN = ['gap', 'resumed']

function listening(): { feed: RedisChangeFeed; reported: string[] } {
  const reported: string[] = []
  const sink: BackendSink = {
    followed: () => undefined,
    records: () => undefined,
    batchChanged: () => undefined,
    changes: (batch) => reported.push(...batch.map(({ kind, id }) => `${kind} ${id}`)),
    gap: () => reported.push('gap'),
    paused: (paused) => reported.push(paused ? 'paused' : 'resumed'),
    session: () => undefined,
    jobCount: () => undefined,
    doomed: () => undefined,
    mayExist: () => true,
    health: () => undefined,
    error: (error) => {
      throw error
    },
  }
  return { feed: new RedisChangeFeed(sink, new NotificationCanary({ sink, period: 10_000 })), reported }
}

describe('the feed of changes', () => {
  test('reports what every letter means', () => {
    const { feed, reported } = listening()
    feed.begin({ version: 0, paused: false })
    feed.applyReply(['Pa', 'Ca', 'Xa', 'G1', 'Aa', 'G0', 'La', 'Ta', 'Pb', 'Db', '?c'], { version: 11, paused: false })
    expect(reported).toEqual([
      ...BEGUN,
      ...['posted a', 'updated a', 'claimed a', 'cancelled a', 'paused', 'updated a', 'released a', 'resumed'],
      ...['released a', 'trashed a', 'gone a', 'posted b', 'gone b'],
    ])
    expect(feed.seen).toBe(11)
  })

  test('reports changes that come twice once, and the rest of an overlapping message', () => {
    const { feed, reported } = listening()
    feed.begin({ version: 5, paused: false })
    feed.applyMessage({ version: 7, entries: ['Pa', 'Pb'] })
    feed.applyReply(['Pa', 'Pb', 'Pc'], { version: 8, paused: false })
    feed.applyMessage({ version: 8, entries: ['Pc'] })
    feed.applyReply([], { version: 8, paused: false })
    expect(reported).toEqual([...BEGUN, 'posted a', 'posted b', 'posted c'])
  })

  test('keeps what is ahead until what comes before it is there', () => {
    const { feed, reported } = listening()
    feed.begin({ version: 0, paused: false })
    feed.applyMessage({ version: 4, entries: ['Pd'] })
    feed.applyMessage({ version: 3, entries: ['Pc'] })
    expect(feed.hasHole).toBe(true)
    expect(reported).toEqual(BEGUN)
    feed.applyReply(['Pa', 'Pb'], { version: 2, paused: false })
    expect(reported).toEqual([...BEGUN, 'posted a', 'posted b', 'posted c', 'posted d'])
    expect(feed.hasHole).toBe(false)
  })

  test('begins anew where the log does not go back so far, and reports nothing after its end', () => {
    const { feed, reported } = listening()
    feed.applyMessage({ version: 1, entries: ['Pa'] })
    feed.begin({ version: 1, paused: false })
    feed.applyReply(false, { version: 30_000, paused: true })
    expect(feed.seen).toBe(30_000)
    feed.applyMessage({ version: 30_001, entries: ['Pb'] })
    feed.end()
    feed.applyReply(['Pc'], { version: 30_002, paused: false })
    feed.applyMessage({ version: 30_003, entries: ['Pd'] })
    expect(reported).toEqual([...BEGUN, 'gap', 'paused', 'posted b'])
  })
})
