import { describe, expect, test } from 'vitest'
import { type Entry, newEntry } from '../../../src/board/entry.ts'
import { makePosting, type Posting } from '../../../src/board/posting.ts'
import type { Priority } from '../../../src/board/priority.ts'
import { ClaimQueue } from '../../../src/board/queue.ts'

let made = 0

function entryOf(options: { name?: string; priority?: Priority; deaths?: number } = {}): Entry {
  const { name = 'job', priority = 'NORMAL', deaths = 0 } = options
  const attempts = Array.from({ length: deaths }, () => ({ who: 'who', at: new Date(0) }))
  const posting = { ...makePosting({ name, details: {}, priority }), attempts, runs: deaths }
  made += 1
  const id = `job${String(made).padStart(10, '0')}`
  const entry = newEntry(id)
  entry.stored = { id, posting, revision: 0, order: BigInt(made), postedAt: new Date(0) }
  entry.content = 'fresh'
  return entry
}

function queueOf(...entries: Entry[]): ClaimQueue {
  const queue = new ClaimQueue()
  for (const entry of entries) queue.update(entry)
  return queue
}

const any = { max: Number.POSITIVE_INFINITY, accept: () => true, suspectHeld: false }
const namesOf = (places: { stored: { posting: Posting } }[]) => places.map(({ stored }) => stored.posting.name)

describe('the queue', () => {
  test('takes in claim order, and nothing twice before it is released', () => {
    const queue = queueOf(entryOf({ name: 'a' }), entryOf({ name: 'b' }), entryOf({ name: 'urgent', priority: 'HIGH' }))
    const first = queue.take({ ...any, max: 2 })
    expect(namesOf(first)).toEqual(['urgent', 'a'])
    expect(namesOf(queue.take(any))).toEqual(['b'])
    expect(queue.take(any)).toEqual([])
    expect(queue.has(() => true)).toBe(false)
    queue.release(first)
    expect(namesOf(queue.take(any))).toEqual(['urgent', 'a'])
  })

  test('holds what is on the board, unclaimed, and known as it is now', () => {
    const entry = entryOf()
    const queue = queueOf(entry)
    const changes: [Partial<Entry>, Partial<Entry>][] = [
      [{ claimed: true }, { claimed: false }],
      [{ content: 'stale' }, { content: 'fresh' }],
      [{ content: 'unreadable' }, { content: 'fresh' }],
      [{ ended: 'COMPLETE' }, { ended: undefined }],
    ]
    for (const [away, back] of changes) {
      queue.update(Object.assign(entry, away))
      expect(queue.size, JSON.stringify(away)).toBe(0)
      expect(queue.has(() => true)).toBe(false)
      queue.update(Object.assign(entry, back))
      queue.update(entry)
      expect(queue.size).toBe(1)
    }
  })

  test('gives the content that is there now', () => {
    const entry = entryOf()
    const queue = queueOf(entry)
    const { stored } = entry
    if (!stored) throw new Error('it has content')
    entry.stored = { ...stored, revision: 7 }
    queue.update(entry)
    expect(queue.take(any)[0]?.stored.revision).toBe(7)
    expect(queue.size).toBe(1)
  })

  test('passes over what is not accepted', () => {
    const queue = queueOf(entryOf({ name: 'a' }), entryOf({ name: 'b' }))
    const accept = ({ name }: Posting) => name !== 'a'
    expect(queue.has(accept)).toBe(true)
    expect(namesOf(queue.take({ ...any, accept }))).toEqual(['b'])
    expect(queue.has(accept)).toBe(false)
    expect(namesOf(queue.take(any))).toEqual(['a'])
  })

  test('gives one suspect at a time, and others past it', () => {
    const queue = queueOf(
      entryOf({ name: 'a', deaths: 2 }),
      entryOf({ name: 'b', deaths: 3 }),
      entryOf({ name: 'c', deaths: 1 }),
    )
    expect(namesOf(queue.take({ ...any, suspectHeld: true }))).toEqual(['c'])
    expect(namesOf(queue.take(any))).toEqual(['a'])
    expect(namesOf(queue.take(any))).toEqual(['b'])
  })

  test('chooses nothing when accept throws', () => {
    const queue = queueOf(entryOf({ name: 'a' }), entryOf({ name: 'b' }))
    const accept = ({ name }: Posting) => {
      if (name === 'b') throw new Error('what is b?')
      return true
    }
    expect(() => queue.take({ ...any, accept })).toThrow('what is b?')
    expect(namesOf(queue.take(any))).toEqual(['a', 'b'])
  })
})
