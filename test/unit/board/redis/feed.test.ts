/** Changes come in answers and by publishing, out of order, twice, or never; the sink hears each once, in order. */
import { describe, expect, test } from 'vitest'
import type { Sink } from '../../../../src/board/backend.ts'
import { Feed } from '../../../../src/board/redis/feed.ts'

const BEGUN = ['gap', 'resumed']

function listening(): { feed: Feed; told: string[] } {
  const told: string[] = []
  const sink: Sink = {
    changes: (batch) => told.push(...batch.map(({ kind, id }) => `${kind} ${id}`)),
    gap: () => told.push('gap'),
    paused: (paused) => told.push(paused ? 'paused' : 'resumed'),
    session: () => undefined,
    counted: () => undefined,
    holds: () => true,
    error: (error) => {
      throw error
    },
  }
  return { feed: new Feed(sink), told }
}

describe('the feed of changes', () => {
  test('tells what every letter means', () => {
    const { feed, told } = listening()
    feed.begin({ version: 0, paused: false })
    feed.answered(['Pa', 'Ca', 'Xa', 'G1', 'Aa', 'G0', 'La', 'Ta', 'Pb', 'Db', '?c'], { version: 11, paused: false })
    expect(told).toEqual([
      ...BEGUN,
      ...['posted a', 'updated a', 'claimed a', 'cancelled a', 'paused', 'updated a', 'released a', 'resumed'],
      ...['released a', 'trashed a', 'gone a', 'posted b', 'gone b'],
    ])
    expect(feed.seen).toBe(11)
  })

  test('tells once what comes twice, and of what overlaps the rest', () => {
    const { feed, told } = listening()
    feed.begin({ version: 5, paused: false })
    feed.heard({ version: 7, entries: ['Pa', 'Pb'] })
    feed.answered(['Pa', 'Pb', 'Pc'], { version: 8, paused: false })
    feed.heard({ version: 8, entries: ['Pc'] })
    feed.answered([], { version: 8, paused: false })
    expect(told).toEqual([...BEGUN, 'posted a', 'posted b', 'posted c'])
  })

  test('keeps what is ahead until what comes before it is there', () => {
    const { feed, told } = listening()
    feed.begin({ version: 0, paused: false })
    feed.heard({ version: 4, entries: ['Pd'] })
    feed.heard({ version: 3, entries: ['Pc'] })
    expect(feed.hasHole).toBe(true)
    expect(told).toEqual(BEGUN)
    feed.answered(['Pa', 'Pb'], { version: 2, paused: false })
    expect(told).toEqual([...BEGUN, 'posted a', 'posted b', 'posted c', 'posted d'])
    expect(feed.hasHole).toBe(false)
  })

  test('begins anew where the log does not go back so far, and tells nothing after its end', () => {
    const { feed, told } = listening()
    feed.heard({ version: 1, entries: ['Pa'] })
    feed.begin({ version: 1, paused: false })
    feed.answered(false, { version: 30_000, paused: true })
    expect(feed.seen).toBe(30_000)
    feed.heard({ version: 30_001, entries: ['Pb'] })
    feed.end()
    feed.answered(['Pc'], { version: 30_002, paused: false })
    feed.heard({ version: 30_003, entries: ['Pd'] })
    expect(told).toEqual([...BEGUN, 'gap', 'paused', 'posted b'])
  })
})
