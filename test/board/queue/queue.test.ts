import { describe, expect, test } from 'vitest'
import type { JobEntry } from '../../../src/board/model/entry.ts'
import type { Posting } from '../../../src/board/model/posting/posting.ts'
import { SuspectPlace } from '../../../src/board/queue/suspect-place.ts'
import { systemAlarmClock } from '../../../src/core/time.ts'
import { BYTES, change, claimable, createEntry, createQueue, entryNames, everything, unreadEntry } from './entries.ts'

describe('the queue', () => {
  test('takes in claim order, and nothing twice before it is released', () => {
    const queue = createQueue(
      createEntry({ name: 'a' }),
      createEntry({ name: 'b' }),
      createEntry({ name: 'urgent', priority: 'HIGH' }),
    )
    const first = queue.reserveNext({ ...everything, max: 2 })
    expect(entryNames(first)).toEqual(['urgent', 'a'])
    expect(first.map(({ entry }) => entry.isReserved)).toEqual([true, true])
    expect(entryNames(queue.reserveNext(everything))).toEqual(['b'])
    expect(queue.reserveNext(everything)).toEqual([])
    expect(queue.hasClaimable({ ...everything, accept: () => true })).toBe(false)
    queue.unreserve(first)
    expect(first.map(({ entry }) => entry.isReserved)).toEqual([false, false])
    expect(claimable(queue)).toEqual(['urgent', 'a'])
  })

  test('gives a reserved job only to the caller that asks for it, when its turn has come', () => {
    const holder = createEntry({ name: 'holder', resources: { exclusive: ['disk'] } })
    const entry = createEntry({ name: 'mine', resources: { exclusive: ['disk'] } })
    const queue = createQueue(holder, entry)
    change(queue, holder, { claimed: true })
    const reserved = queue.reserve(entry)
    expect([queue.reserveFree(entry), claimable(queue)]).toEqual([undefined, []])
    change(queue, holder, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual([])
    const place = queue.reserveFree(entry)
    expect([place?.entry, queue.reserveFree(entry)]).toEqual([entry, undefined])
    if (place) queue.unreserve([place])
    expect(queue.reserveFree(entry)).toBe(place)
    if (place) queue.unreserve([place])
    reserved[Symbol.dispose]()
    expect(claimable(queue)).toEqual(['mine'])
  })

  test('gives what is on the board, unclaimed, and known as it is now', () => {
    const entry = createEntry({ name: 'job' })
    const queue = createQueue(entry)
    const changes: [Partial<JobEntry>, Partial<JobEntry>][] = [
      [{ claimed: true }, { claimed: false }],
      [{ content: 'stale' }, { content: 'fresh' }],
      [{ content: 'unreadable' }, { content: 'fresh' }],
      [{ ended: 'COMPLETE' }, { ended: undefined }],
    ]
    for (const [away, back] of changes) {
      change(queue, entry, away)
      expect(claimable(queue), JSON.stringify(away)).toEqual([])
      expect(queue.hasClaimable({ ...everything, accept: () => true })).toBe(false)
      change(queue, entry, back)
      queue.update(entry)
      expect(claimable(queue)).toEqual(['job'])
    }
  })

  test('counts what waits here, whether it can be taken or not', () => {
    const resources = { exclusive: ['printer'] }
    const entries = [createEntry({ resources }), createEntry({ resources }), createEntry({ dueAt: 1 }), createEntry()]
    const [first, second, later, free] = entries as [JobEntry, JobEntry, JobEntry, JobEntry]
    const queue = createQueue(...entries, unreadEntry())
    expect(queue.size).toBe(4)
    change(queue, first, { claimed: true })
    change(queue, free, { content: 'stale' })
    expect(queue.size).toBe(3)
    for (const entry of [first, second, later, free]) change(queue, entry, { ended: 'COMPLETE' })
    expect(queue.size).toBe(0)
  })

  test('gives the content that is there now', () => {
    const entry = createEntry()
    const queue = createQueue(entry)
    const { stored } = entry
    if (!stored) throw new Error('it has content')
    entry.stored = { ...stored, revision: 7 }
    queue.update(entry)
    expect(queue.reserveNext(everything)[0]?.stored.revision).toBe(7)
    expect(queue.size).toBe(1)
  })

  test('what is tried while its content changes is not taken again, and is free when it is released', () => {
    const entry = createEntry({ name: 'job' })
    const queue = createQueue(entry)
    const taken = queue.reserveNext(everything)
    const { stored } = entry
    if (!stored) throw new Error('it has content')
    change(queue, entry, { content: 'stale' })
    change(queue, entry, { content: 'fresh', stored: { ...stored, revision: 1 } })
    expect(queue.reserveNext(everything)).toEqual([])
    queue.unreserve(taken)
    expect(queue.reserveNext(everything)[0]?.stored.revision).toBe(1)
  })

  test('passes over what is not accepted', () => {
    const queue = createQueue(createEntry({ name: 'a' }), createEntry({ name: 'b' }))
    const accept = ({ name }: Posting) => name !== 'a'
    expect(queue.hasClaimable({ ...everything, accept })).toBe(true)
    expect(entryNames(queue.reserveNext({ ...everything, accept }))).toEqual(['b'])
    expect(queue.hasClaimable({ ...everything, accept })).toBe(false)
    expect(entryNames(queue.reserveNext(everything))).toEqual(['a'])
  })

  test('gives one suspect at a time, and others past it', () => {
    const queue = createQueue(
      createEntry({ name: 'a', deaths: 2 }),
      createEntry({ name: 'b', deaths: 3 }),
      createEntry({ name: 'c', deaths: 1 }),
    )
    const taken = createEntry({ name: 'held', deaths: 2 })
    const suspects = new SuspectPlace()
    suspects.take(taken, { uuid: 'held', board: 'memory:', clock: systemAlarmClock })
    expect(entryNames(queue.reserveNext({ ...everything, suspects }))).toEqual(['c'])
    expect(suspects.othersWait).toBe(true)
    expect(queue.hasClaimable({ ...everything, suspects })).toBe(false)
    expect(entryNames(queue.reserveNext(everything))).toEqual(['a'])
    expect(entryNames(queue.reserveNext(everything))).toEqual(['b'])
    suspects.free(taken)
    expect(suspects).toMatchObject({ isFree: true, othersWait: false })
  })

  test('no suspect waits for the place any more when it has left, is claimed elsewhere or is to be cancelled', () => {
    const over: readonly Partial<JobEntry>[] = [{ ended: 'TRASHED' }, { claimed: true }, { cancelRequested: true }]
    for (const changes of over) {
      const entry = createEntry({ name: 'a', deaths: 2 })
      const queue = createQueue(entry)
      const suspects = new SuspectPlace()
      suspects.take(createEntry({ deaths: 2 }), { uuid: 'held', board: 'memory:', clock: systemAlarmClock })
      expect(queue.hasClaimable({ ...everything, suspects })).toBe(false)
      expect(suspects.othersWait).toBe(true)
      change(queue, entry, changes)
      expect(suspects.othersWait).toBe(false)
    }
  })

  test('gives a suspect that is to be cancelled beside another one', () => {
    const cancelled = createEntry({ name: 'a', deaths: 2 })
    cancelled.cancelRequested = true
    const queue = createQueue(cancelled, createEntry({ name: 'b', deaths: 2 }))
    expect(entryNames(queue.reserveNext(everything))).toEqual(['a', 'b'])
  })

  test('a suspect that is not accepted keeps no other suspect away', () => {
    const queue = createQueue(createEntry({ name: 'a', deaths: 2 }), createEntry({ name: 'b', deaths: 2 }))
    expect(entryNames(queue.reserveNext({ ...everything, accept: ({ name }) => name !== 'a' }))).toEqual(['b'])
  })

  test('chooses nothing when accept throws', () => {
    const queue = createQueue(createEntry({ name: 'a' }), createEntry({ name: 'b' }))
    const accept = ({ name }: Posting) => {
      if (name === 'b') throw new Error('what is b?')
      return true
    }
    expect(() => queue.reserveNext({ ...everything, accept })).toThrow('what is b?')
    expect(claimable(queue)).toEqual(['a', 'b'])
  })

  test('picks this very job, also when it is blocked or not due, and nothing twice', () => {
    const resources = { exclusive: ['printer'] }
    const [free, blocked, later] = [createEntry({ resources }), createEntry({ resources }), createEntry({ dueAt: 1 })]
    const queue = createQueue(free, blocked, later)
    for (const entry of [free, blocked, later]) {
      const place = queue.reserveEntry(entry)
      expect(place?.entry).toBe(entry)
      expect(queue.reserveEntry(entry)).toBeUndefined()
      expect(queue.reserveNext(everything)).not.toContain(place)
      queue.unreserve(place ? [place] : [])
      expect(entry.isReserved).toBe(false)
    }
  })

  test.each<Partial<JobEntry>>([
    { claimed: true },
    { content: 'stale' },
    { content: 'unreadable' },
    { ended: 'TRASHED' },
  ])('picks nothing that is %o', (state) => {
    const entry = createEntry()
    const queue = createQueue(entry)
    change(queue, entry, state)
    expect(queue.reserveEntry(entry)).toBeUndefined()
    expect(entry.isReserved).toBe(false)
  })

  test('counts the bytes of unclaimed postings', () => {
    const [one, other] = [createEntry(), createEntry({ dueAt: 1 })]
    const queue = createQueue(one, other, unreadEntry())
    expect(queue.bytes).toBe(2 * BYTES)
    change(queue, one, { claimed: true })
    expect(queue.bytes).toBe(BYTES)
    change(queue, one, { claimed: false, content: 'stale' })
    expect(queue.bytes).toBe(2 * BYTES)
    for (const entry of [one, other]) change(queue, entry, { ended: 'TRASHED' })
    expect(queue.bytes).toBe(0)
  })
})
