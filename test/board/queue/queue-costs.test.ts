/** What a change costs: counted in comparisons of jobs, which is all that the queue ever does with those it meets. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { JobEntry } from '../../../src/board/model/entry.ts'
import { change, claimable, createEntry, createQueue, type EntryOptions, everything, unreadEntry } from './entries.ts'

const counted = vi.hoisted(() => ({ comparisons: 0 }))

vi.mock('../../../src/board/model/claim-order.ts', async (original) => {
  const real = await original<typeof import('../../../src/board/model/claim-order.ts')>()
  const counting =
    <K>(compare: (a: K, b: K) => number) =>
    (a: K, b: K) => {
      counted.comparisons += 1
      return compare(a, b)
    }
  return { ...real, compareClaimOrder: counting(real.compareClaimOrder), compareIds: counting(real.compareIds) }
})

const MANY = 20_000
/** More than any search in a sorted list of that many takes, several lists and several searches in each. */
const A_FEW = 200

const writers = { exclusive: ['disk'] }
const readers = { shared: ['disk'] }

function entriesOf(count: number, options: EntryOptions): JobEntry[] {
  return Array.from({ length: count }, () => createEntry(options))
}

function costOf(work: () => void): number {
  counted.comparisons = 0
  work()
  return counted.comparisons
}

/** Claims it and releases what was tried, as one who claims does. */
function claim(queue: ReturnType<typeof createQueue>, entry: JobEntry): void {
  const place = queue.reserveEntry(entry)
  change(queue, entry, { claimed: true })
  if (place) queue.unreserve([place])
}

describe('with 20,000 jobs blocked on one resource', () => {
  let holder: JobEntry
  let free: JobEntry
  let queue: ReturnType<typeof createQueue>

  beforeEach(() => {
    holder = createEntry({ resources: writers })
    free = createEntry({ name: 'free', priority: 'LOW' })
    queue = createQueue(holder, ...entriesOf(MANY, { resources: writers, priority: 'HIGH' }))
    change(queue, holder, { claimed: true })
    queue.update(free)
  })

  test('an unrelated one is found without looking at them', () => {
    let looked = 0
    const accept = () => {
      looked += 1
      return true
    }
    expect(costOf(() => expect(claimable(queue, { accept })).toEqual(['free']))).toBeLessThan(A_FEW)
    expect(looked).toBe(1)
    expect(queue.hasClaimable({ ...everything, accept })).toBe(true)
    expect(looked).toBe(2)
  })

  test('an unrelated one comes, is claimed, released and done without looking at them', () => {
    const other = createEntry({ resources: { shared: ['tape'] } })
    const cost = costOf(() => {
      queue.update(other)
      claim(queue, other)
      change(queue, other, { claimed: false })
      change(queue, other, { content: 'stale' })
      change(queue, other, { content: 'fresh' })
      change(queue, other, { ended: 'COMPLETE' })
    })
    expect(cost).toBeLessThan(3 * A_FEW)
  })

  test('each is distinguished from the rest when it comes, and when what it waits for is asked', () => {
    const late = createEntry({ resources: writers })
    expect(costOf(() => queue.update(late))).toBeLessThan(A_FEW)
    expect(costOf(() => expect(queue.blockedBy(late)?.entry).toBe(holder))).toBeLessThan(A_FEW)
  })
})

describe('a chain of claims on one resource', () => {
  /** Per job, from the first to the last. */
  function chainCost(count: number): number {
    const entries = entriesOf(count, { resources: writers })
    const queue = createQueue(...entries)
    const cost = costOf(() => {
      for (let left = count; left > 0; left -= 1) {
        const [place, ...others] = queue.reserveNext(everything)
        if (!place || others.length > 0) throw new Error('one at a time')
        change(queue, place.entry, { claimed: true })
        queue.unreserve([place])
        change(queue, place.entry, { ended: 'COMPLETE' })
      }
    })
    expect(queue.size).toBe(0)
    return cost / count
  }

  test('costs each of 20,000 jobs hardly more than each of 200', () => {
    const [few, many] = [chainCost(200), chainCost(MANY)]
    // A hundred times as many: seven halvings more in each search.
    expect(many).toBeLessThan(few * 3)
  })
})

test('20,000 jobs that are set aside on a resource cost the claims of others nothing, and are not looked at', () => {
  const young = entriesOf(3, { name: 'young', resources: writers })
  const asides = entriesOf(MANY, { flow: 'old', resources: readers, priority: 'HIGH' })
  const queue = createQueue(...young, ...asides)
  queue.setAside(new Set(['old']))
  const cost = costOf(() => {
    for (const entry of young) {
      claim(queue, entry)
      change(queue, entry, { ended: 'COMPLETE' })
    }
    queue.update(createEntry({ flow: 'old', resources: readers, priority: 'HIGH' }))
  })
  expect(cost).toBeLessThan(4 * A_FEW)
})

describe('20,000 readers behind a writer', () => {
  test('are let in by its end alone, not by its claim, its return, or what it writes meanwhile', () => {
    const writer = createEntry({ name: 'writer', resources: writers })
    const queue = createQueue(writer, ...entriesOf(MANY, { resources: readers }))
    const cost = costOf(() => {
      change(queue, writer, { content: 'stale' })
      claim(queue, writer)
      change(queue, writer, { claimed: false })
      change(queue, writer, { content: 'fresh' })
      claim(queue, writer)
    })
    expect(cost).toBeLessThan(3 * A_FEW)
    expect(costOf(() => change(queue, writer, { ended: 'COMPLETE' }))).toBeGreaterThan(MANY)
    expect(queue.reserveNext(everything)).toHaveLength(MANY)
  })

  test('are looked at up to the first writer among them, not further', () => {
    const first = createEntry({ resources: writers })
    const few = entriesOf(3, { resources: readers })
    const second = createEntry({ resources: writers })
    const queue = createQueue(first, ...few, second, ...entriesOf(MANY, { resources: readers }))
    expect(costOf(() => change(queue, first, { ended: 'COMPLETE' }))).toBeLessThan(A_FEW)
    expect(claimable(queue)).toHaveLength(few.length)
  })
})

describe('20,000 jobs that are not due', () => {
  test('cost those that become so', () => {
    const queue = createQueue(...entriesOf(MANY, { dueAt: 2 }), createEntry({ dueAt: 1 }))
    expect(costOf(() => expect(queue.advance(0)).toBe(false))).toBe(0)
    expect(costOf(() => expect(queue.advance(1)).toBe(true))).toBeLessThan(A_FEW)
    expect(costOf(() => expect(claimable(queue)).toHaveLength(1))).toBeLessThan(A_FEW)
  })
})

describe('20,000 jobs behind one that was not read', () => {
  test('are not looked at when others come behind it, or are read there', () => {
    const unread = unreadEntry()
    const queue = createQueue(unread, ...entriesOf(MANY, { resources: readers }))
    const late = unreadEntry()
    expect(costOf(() => queue.update(late))).toBeLessThan(A_FEW)
    expect(costOf(() => change(queue, late, { content: 'unreadable' }))).toBeLessThan(A_FEW)
    expect(costOf(() => queue.update(createEntry({ resources: readers })))).toBeLessThan(A_FEW)
    expect(claimable(queue)).toEqual([])
  })
})

test('a job that wants nothing costs one search where it comes and one where it goes', () => {
  const queue = createQueue(...entriesOf(MANY, {}))
  const entry = createEntry()
  expect(costOf(() => queue.update(entry))).toBeLessThan(20)
  expect(costOf(() => queue.update(entry))).toBe(0)
  expect(costOf(() => change(queue, entry, { claimed: true }))).toBeLessThan(20)
  expect(costOf(() => change(queue, entry, { ended: 'COMPLETE' }))).toBe(0)
})
