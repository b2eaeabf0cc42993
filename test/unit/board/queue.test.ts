import { describe, expect, test } from 'vitest'
import type { Entry } from '../../../src/board/entry.ts'
import type { Posting } from '../../../src/board/posting.ts'
import { BYTES, change, claimable, entryOf, everything, namesOf, queueOf, unreadEntry } from '../../board/entries.ts'

describe('the queue', () => {
  test('takes in claim order, and nothing twice before it is released', () => {
    const queue = queueOf(entryOf({ name: 'a' }), entryOf({ name: 'b' }), entryOf({ name: 'urgent', priority: 'HIGH' }))
    const first = queue.take({ ...everything, max: 2 })
    expect(namesOf(first)).toEqual(['urgent', 'a'])
    expect(first.map(({ entry }) => entry.chosen)).toEqual([true, true])
    expect(namesOf(queue.take(everything))).toEqual(['b'])
    expect(queue.take(everything)).toEqual([])
    expect(queue.has(() => true)).toBe(false)
    queue.release(first)
    expect(first.map(({ entry }) => entry.chosen)).toEqual([false, false])
    expect(claimable(queue)).toEqual(['urgent', 'a'])
  })

  test('gives what is reserved to nobody but who asks for it, when its turn has come', () => {
    const holder = entryOf({ name: 'holder', resources: { exclusive: ['disk'] } })
    const entry = entryOf({ name: 'mine', resources: { exclusive: ['disk'] } })
    const queue = queueOf(holder, entry)
    change(queue, holder, { claimed: true })
    const reserved = queue.reserve(entry)
    expect([queue.pickFree(entry), claimable(queue)]).toEqual([undefined, []])
    change(queue, holder, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual([])
    const place = queue.pickFree(entry)
    expect([place?.entry, queue.pickFree(entry)]).toEqual([entry, undefined])
    if (place) queue.release([place])
    expect(queue.pickFree(entry)).toBe(place)
    if (place) queue.release([place])
    reserved[Symbol.dispose]()
    expect(claimable(queue)).toEqual(['mine'])
  })

  test('gives what is on the board, unclaimed, and known as it is now', () => {
    const entry = entryOf({ name: 'job' })
    const queue = queueOf(entry)
    const changes: [Partial<Entry>, Partial<Entry>][] = [
      [{ claimed: true }, { claimed: false }],
      [{ content: 'stale' }, { content: 'fresh' }],
      [{ content: 'unreadable' }, { content: 'fresh' }],
      [{ ended: 'COMPLETE' }, { ended: undefined }],
    ]
    for (const [away, back] of changes) {
      change(queue, entry, away)
      expect(claimable(queue), JSON.stringify(away)).toEqual([])
      expect(queue.has(() => true)).toBe(false)
      change(queue, entry, back)
      queue.update(entry)
      expect(claimable(queue)).toEqual(['job'])
    }
  })

  test('counts what waits here, whether it can be taken or not', () => {
    const resources = { exclusive: ['printer'] }
    const entries = [entryOf({ resources }), entryOf({ resources }), entryOf({ dueAt: 1 }), entryOf()]
    const [first, second, later, free] = entries as [Entry, Entry, Entry, Entry]
    const queue = queueOf(...entries, unreadEntry())
    expect(queue.size).toBe(4)
    change(queue, first, { claimed: true })
    change(queue, free, { content: 'stale' })
    expect(queue.size).toBe(3)
    for (const entry of [first, second, later, free]) change(queue, entry, { ended: 'COMPLETE' })
    expect(queue.size).toBe(0)
  })

  test('gives the content that is there now', () => {
    const entry = entryOf()
    const queue = queueOf(entry)
    const { stored } = entry
    if (!stored) throw new Error('it has content')
    entry.stored = { ...stored, revision: 7 }
    queue.update(entry)
    expect(queue.take(everything)[0]?.stored.revision).toBe(7)
    expect(queue.size).toBe(1)
  })

  test('what is tried while its content changes is not taken again, and is free when it is released', () => {
    const entry = entryOf({ name: 'job' })
    const queue = queueOf(entry)
    const taken = queue.take(everything)
    const { stored } = entry
    if (!stored) throw new Error('it has content')
    change(queue, entry, { content: 'stale' })
    change(queue, entry, { content: 'fresh', stored: { ...stored, revision: 1 } })
    expect(queue.take(everything)).toEqual([])
    queue.release(taken)
    expect(queue.take(everything)[0]?.stored.revision).toBe(1)
  })

  test('passes over what is not accepted', () => {
    const queue = queueOf(entryOf({ name: 'a' }), entryOf({ name: 'b' }))
    const accept = ({ name }: Posting) => name !== 'a'
    expect(queue.has(accept)).toBe(true)
    expect(namesOf(queue.take({ ...everything, accept }))).toEqual(['b'])
    expect(queue.has(accept)).toBe(false)
    expect(namesOf(queue.take(everything))).toEqual(['a'])
  })

  test('gives one suspect at a time, and others past it', () => {
    const queue = queueOf(
      entryOf({ name: 'a', deaths: 2 }),
      entryOf({ name: 'b', deaths: 3 }),
      entryOf({ name: 'c', deaths: 1 }),
    )
    expect(namesOf(queue.take({ ...everything, suspectHeld: true }))).toEqual(['c'])
    expect(namesOf(queue.take(everything))).toEqual(['a'])
    expect(namesOf(queue.take(everything))).toEqual(['b'])
  })

  test('a suspect that is not accepted keeps no other suspect away', () => {
    const queue = queueOf(entryOf({ name: 'a', deaths: 2 }), entryOf({ name: 'b', deaths: 2 }))
    expect(namesOf(queue.take({ ...everything, accept: ({ name }) => name !== 'a' }))).toEqual(['b'])
  })

  test('chooses nothing when accept throws', () => {
    const queue = queueOf(entryOf({ name: 'a' }), entryOf({ name: 'b' }))
    const accept = ({ name }: Posting) => {
      if (name === 'b') throw new Error('what is b?')
      return true
    }
    expect(() => queue.take({ ...everything, accept })).toThrow('what is b?')
    expect(claimable(queue)).toEqual(['a', 'b'])
  })

  test('picks this very job, also when it is blocked or not due, and nothing twice', () => {
    const resources = { exclusive: ['printer'] }
    const [free, blocked, later] = [entryOf({ resources }), entryOf({ resources }), entryOf({ dueAt: 1 })]
    const queue = queueOf(free, blocked, later)
    for (const entry of [free, blocked, later]) {
      const place = queue.pick(entry)
      expect(place?.entry).toBe(entry)
      expect(queue.pick(entry)).toBeUndefined()
      expect(queue.take(everything)).not.toContain(place)
      queue.release(place ? [place] : [])
      expect(entry.chosen).toBe(false)
    }
  })

  test.each<Partial<Entry>>([{ claimed: true }, { content: 'stale' }, { content: 'unreadable' }, { ended: 'TRASHED' }])(
    'picks nothing that is %o',
    (state) => {
      const entry = entryOf()
      const queue = queueOf(entry)
      change(queue, entry, state)
      expect(queue.pick(entry)).toBeUndefined()
      expect(entry.chosen).toBe(false)
    },
  )

  test('counts the bytes of unclaimed postings', () => {
    const [one, other] = [entryOf(), entryOf({ dueAt: 1 })]
    const queue = queueOf(one, other, unreadEntry())
    expect(queue.bytes).toBe(2 * BYTES)
    change(queue, one, { claimed: true })
    expect(queue.bytes).toBe(BYTES)
    change(queue, one, { claimed: false, content: 'stale' })
    expect(queue.bytes).toBe(2 * BYTES)
    for (const entry of [one, other]) change(queue, entry, { ended: 'TRASHED' })
    expect(queue.bytes).toBe(0)
  })
})
