import { describe, expect, test } from 'vitest'
import type { JobEntry, QueuePlace, QueueState } from '../../../src/board/model/entry.ts'
import { ResourceLines } from '../../../src/board/queue/resource-lines.ts'
import {
  change,
  claimable,
  createEntry,
  createQueue,
  type EntryOptions,
  entryNames,
  everything,
  readNow,
  unreadEntry,
} from './entries.ts'

const DISK = { exclusive: ['disk'] }

function writer(name: string, options: EntryOptions = {}): JobEntry {
  return createEntry({ name, resources: DISK, ...options })
}

function reader(name: string, options: EntryOptions = {}): JobEntry {
  return createEntry({ name, resources: { shared: ['disk'] }, ...options })
}

describe('one resource', () => {
  test('is for one writer at a time, in claim order', () => {
    const [a, b, c] = [writer('a'), writer('b'), writer('c', { priority: 'HIGH' })]
    const queue = createQueue(a, b, c)
    for (const [name, entry] of Object.entries({ c, a, b })) {
      expect(claimable(queue)).toEqual([name])
      change(queue, entry, { claimed: true })
      expect(claimable(queue)).toEqual([])
      change(queue, entry, { ended: 'COMPLETE' })
    }
  })

  test('is shared by readers, and a waiting writer holds later ones back', () => {
    const [a, b, w, c] = [reader('a'), reader('b'), writer('w'), reader('c')]
    const queue = createQueue(a, b, w, c)
    expect(claimable(queue)).toEqual(['a', 'b'])
    change(queue, a, { claimed: true })
    expect(claimable(queue)).toEqual(['b'])
    change(queue, b, { claimed: true })
    expect(claimable(queue)).toEqual([])
    change(queue, a, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual([])
    change(queue, b, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['w'])
    change(queue, w, { claimed: true })
    expect(claimable(queue)).toEqual([])
    change(queue, w, { ended: 'TRASHED' })
    expect(claimable(queue)).toEqual(['c'])
  })

  test('goes to the higher priority first, also when that comes later', () => {
    const queue = createQueue(reader('a'), writer('w'))
    queue.update(reader('late', { priority: 'HIGH' }))
    expect(claimable(queue)).toEqual(['late', 'a'])
    queue.update(writer('urgent', { priority: 'VERY_HIGH' }))
    expect(claimable(queue)).toEqual(['urgent'])
  })

  test('does not concern those who want another one, or none', () => {
    const [held, waiting] = [writer('held'), writer('waiting')]
    const other = createEntry({ name: 'other', resources: { exclusive: ['tape'] } })
    const queue = createQueue(held, waiting, other, createEntry({ name: 'free' }))
    change(queue, held, { claimed: true })
    expect(claimable(queue)).toEqual(['other', 'free'])
  })

  test('is held by who has claimed it, also when what it wrote was not read, or cannot be', () => {
    const [held, waiting] = [writer('held'), writer('waiting')]
    const queue = createQueue(held, waiting)
    change(queue, held, { claimed: true })
    for (const content of ['stale', 'unreadable', 'fresh'] as const) {
      change(queue, held, { content })
      expect(claimable(queue)).toEqual([])
    }
    change(queue, held, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['waiting'])
  })

  test('is given back with the claim', () => {
    const [first, second] = [writer('first'), writer('second')]
    const queue = createQueue(first, second)
    change(queue, first, { claimed: true })
    change(queue, first, { claimed: false })
    expect(claimable(queue)).toEqual(['first'])
  })

  test('may seem to be held by two for a moment, while changes come in any order', () => {
    const [a, b, c] = [writer('a'), writer('b'), writer('c')]
    const queue = createQueue(a, b, c)
    change(queue, a, { claimed: true })
    change(queue, b, { claimed: true })
    change(queue, a, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual([])
    change(queue, b, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['c'])
  })

  test('is wanted alone by who names it in both ways, and once by who names it twice', () => {
    const both = { exclusive: ['disk', 'disk'], shared: ['disk'] }
    const queue = createQueue(reader('a'), createEntry({ name: 'both', resources: both }), reader('b'))
    expect(claimable(queue)).toEqual(['a'])
  })
})

describe('a place in line is kept', () => {
  test('by a job that no conductor here accepts', () => {
    const queue = createQueue(writer('unknown'), writer('known'))
    expect(claimable(queue, { accept: ({ name }) => name === 'known' })).toEqual([])
  })

  test('by a job that is being tried', () => {
    const queue = createQueue(writer('first'), writer('second'))
    const taken = queue.reserveNext(everything)
    expect(entryNames(taken)).toEqual(['first'])
    expect(queue.reserveNext(everything)).toEqual([])
    queue.unreserve(taken)
    expect(claimable(queue)).toEqual(['first'])
  })

  test('by a job whose content is read anew', () => {
    const first = writer('first')
    const queue = createQueue(first, writer('second'))
    change(queue, first, { content: 'stale' })
    expect(claimable(queue)).toEqual([])
    change(queue, first, { claimed: true })
    change(queue, first, { claimed: false })
    expect(claimable(queue)).toEqual([])
    change(queue, first, { content: 'fresh' })
    expect(claimable(queue)).toEqual(['first'])
  })

  test('not by what cannot be read', () => {
    const first = writer('first')
    const queue = createQueue(first, writer('second'))
    change(queue, first, { content: 'unreadable' })
    expect(claimable(queue)).toEqual(['second'])
  })

  test('not by what is not due', () => {
    const queue = createQueue(writer('first', { dueAt: 10 }), writer('second'))
    expect(claimable(queue)).toEqual(['second'])
    queue.advance(10)
    expect(claimable(queue)).toEqual(['first'])
  })
})

describe('several resources', () => {
  test('are had together or not at all', () => {
    const disk = writer('disk')
    const tape = createEntry({ name: 'tape', resources: { shared: ['tape'] } })
    const both = createEntry({ name: 'both', resources: { exclusive: ['tape'], shared: ['disk'] } })
    const queue = createQueue(disk, tape, both)
    change(queue, disk, { claimed: true })
    change(queue, tape, { claimed: true })
    change(queue, disk, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual([])
    change(queue, tape, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['both'])
  })

  test('hold one place in each line, so that a job that waits for one is not overtaken in the other', () => {
    const disk = writer('disk')
    const both = createEntry({ name: 'both', resources: { exclusive: ['disk', 'tape'] } })
    const tape = createEntry({ name: 'tape', resources: { exclusive: ['tape'] } })
    const queue = createQueue(disk, both, tape)
    expect(claimable(queue)).toEqual(['disk'])
    change(queue, both, { ended: 'TRASHED' })
    expect(claimable(queue)).toEqual(['disk', 'tape'])
  })
})

describe('a posting that was not read yet', () => {
  test('holds back the jobs behind it that want a resource, and no other jobs', () => {
    const before = writer('before')
    const unread = unreadEntry()
    const behind = createEntry({ name: 'behind', priority: 'HIGH', resources: { shared: ['tape'] } })
    const queue = createQueue(before, unread, behind, createEntry({ name: 'free' }))
    expect(claimable(queue)).toEqual(['before', 'free'])
    readNow(unread, { name: 'read' })
    queue.update(unread)
    expect(claimable(queue)).toEqual(['behind', 'before', 'read', 'free'])
  })

  test.each<[string, Partial<JobEntry>]>([
    ['unreadable', { content: 'unreadable' }],
    ['gone', { ended: 'COMPLETE' }],
  ])('blocks no job once it is %s', (_, state) => {
    const unread = unreadEntry()
    const queue = createQueue(unread, writer('behind'))
    expect(claimable(queue)).toEqual([])
    change(queue, unread, state)
    expect(claimable(queue)).toEqual(['behind'])
  })

  test('holds back also while it is claimed, and when it came to be known after those behind it', () => {
    const unread = unreadEntry()
    const queue = createQueue(writer('behind'))
    expect(claimable(queue)).toEqual(['behind'])
    change(queue, unread, { claimed: true })
    expect(claimable(queue)).toEqual([])
    readNow(unread, { resources: DISK })
    queue.update(unread)
    expect(claimable(queue)).toEqual([])
    change(queue, unread, { ended: 'COMPLETE' })
    expect(claimable(queue)).toEqual(['behind'])
  })

  test('is the first of several that counts', () => {
    const [one, two, three] = [unreadEntry(), unreadEntry(), writer('three')]
    const [four, five] = [unreadEntry(), writer('five')]
    const queue = createQueue(one, two, three, four, five)
    for (const [read, expected] of [
      [two, []],
      [one, ['three']],
      [four, ['three']],
    ] as const) {
      readNow(read, { resources: { shared: ['nothing'] }, dueAt: 1 })
      queue.update(read)
      expect(claimable(queue)).toEqual(expected)
    }
  })

  test('counts by its number, also when there are more digits', () => {
    const unread = { ...unreadEntry(), id: 'job9999999999' }
    const late = writer('late')
    if (!late.stored) throw new Error('it has content')
    const behind = { ...late, id: 'job10000000000', stored: { ...late.stored, id: 'job10000000000', order: 1n } }
    const queue = createQueue(writer('before', { priority: 'LOW', resources: { shared: ['tape'] } }), behind, unread)
    expect(claimable(queue)).toEqual(['before'])
  })
})

describe('what a job waits for', () => {
  test('is who holds the resource, before who stands in line', () => {
    const [held, first, last] = [reader('held'), writer('first'), writer('last')]
    const queue = createQueue(held, first, last)
    change(queue, held, { claimed: true })
    expect(queue.blockedBy(first)).toEqual({ resource: 'disk', entry: held })
    expect(queue.blockedBy(last)).toEqual({ resource: 'disk', entry: held })
    change(queue, held, { ended: 'COMPLETE' })
    expect(queue.blockedBy(first)).toBeUndefined()
    expect(queue.blockedBy(last)).toEqual({ resource: 'disk', entry: first })
  })

  test('is the first in line that wants it in another way', () => {
    const [a, w, b, v] = [reader('a'), writer('w'), reader('b'), writer('v')]
    const queue = createQueue(a, w, b, v)
    expect(queue.blockedBy(a)).toBeUndefined()
    expect(queue.blockedBy(w)?.entry).toBe(a)
    expect(queue.blockedBy(b)?.entry).toBe(w)
    expect(queue.blockedBy(v)?.entry).toBe(a)
    change(queue, w, { claimed: true })
    expect(queue.blockedBy(b)?.entry).toBe(w)
  })

  test('names the resource that cannot be had', () => {
    const tape = createEntry({ resources: { exclusive: ['tape'] } })
    const both = createEntry({ resources: { exclusive: ['disk'], shared: ['tape'] } })
    const queue = createQueue(tape, both)
    expect(queue.blockedBy(both)).toEqual({ resource: 'tape', entry: tape })
  })

  test('is a posting that was not read, where nothing else is in its way', () => {
    const unread = unreadEntry()
    const behind = reader('behind')
    const queue = createQueue(unread, behind)
    expect(queue.blockedBy(behind)).toEqual({ resource: 'disk', entry: unread })
  })

  test('is nothing for who is claimed, not due, unread, gone, or free', () => {
    const [held, later, gone] = [writer('held'), writer('later', { dueAt: 1 }), writer('gone')]
    const unread = unreadEntry()
    const queue = createQueue(held, later, gone, unread)
    change(queue, held, { claimed: true })
    change(queue, gone, { ended: 'COMPLETE' })
    for (const entry of [held, later, gone, unread, createEntry()]) expect(queue.blockedBy(entry)).toBeUndefined()
  })
})

test('no job starves inside a priority: readers that keep coming do not hold a writer up', () => {
  const running: JobEntry[] = []
  const queue = createQueue()
  const claimNext = (): string[] => {
    const places = queue.reserveNext(everything)
    for (const { entry } of places) change(queue, entry, { claimed: true })
    queue.unreserve(places)
    running.push(...places.map(({ entry }) => entry))
    return entryNames(places)
  }
  queue.update(reader('reader 0'))
  claimNext()
  queue.update(writer('writer'))
  const started: string[] = []
  for (let round = 1; round <= 5; round += 1) {
    queue.update(reader(`reader ${round}`))
    const done = running.shift()
    if (done) change(queue, done, { ended: 'COMPLETE' })
    started.push(...claimNext())
  }
  expect(started).toEqual(['writer', 'reader 1', 'reader 2', 'reader 3', 'reader 4', 'reader 5'])
})

describe('the lines of all resources', () => {
  const wants = { exclusive: ['a', 'b'], shared: ['c'] }

  function placeOf(stance: QueueState): QueuePlace {
    const entry = createEntry()
    const { stored, id = '' } = entry
    if (!stored) throw new Error('it has content')
    const { order } = stored
    return {
      id,
      priority: 'NORMAL',
      order,
      entry,
      stored,
      state: stance,
      resources: wants,
      dueAt: 0,
      blockerCount: 0,
      isReady: false,
    }
  }

  test('forget resources that no job wants any more', () => {
    const lines = new ResourceLines(() => undefined)
    const places = [placeOf('waiting'), placeOf('claimed'), placeOf('waiting')]
    for (const one of places) lines.enter(one)
    lines.settle(wants)
    for (const one of places) {
      expect(lines.size).toBe(3)
      lines.leave(one)
      lines.settle(wants)
    }
    expect(lines.size).toBe(0)
  })

  test('notify the jobs that stand in them, and no job that has left', () => {
    const told: [QueuePlace, boolean][] = []
    const lines = new ResourceLines((place, passes) => told.push([place, passes]))
    const [first, second] = [placeOf('waiting'), placeOf('waiting')]
    for (const one of [first, second]) lines.enter(one)
    expect([first.blockerCount, second.blockerCount]).toEqual([3, 3])
    lines.settle(wants)
    expect(told.splice(0)).toEqual([
      [first, true],
      [first, true],
      [first, true],
      [second, true],
    ])
    lines.leave(first)
    lines.settle(wants)
    expect(told).toEqual([
      [second, true],
      [second, true],
    ])
  })
})
