/** Who numbers postings, and that numbers made here are in order. */
import { afterEach, expect, test, vi } from 'vitest'
import { SequenceNumbers } from '../../../../../src/board/backends/zookeeper/commit/sequence-numbers.ts'
import { compareIds } from '../../../../../src/board/model/claim-order.ts'

const LARGEST = 2 ** 31 - 1

function numbersAt(count: number | undefined, from?: number): SequenceNumbers {
  return new SequenceNumbers({ newPosting: '/b/job', count: () => count, ...(from === undefined ? {} : { from }) })
}

afterEach(() => {
  vi.restoreAllMocks()
})

test('ZooKeeper numbers up to 80 % of what it can count, and where its counter is not known', () => {
  for (const count of [undefined, 0, 1, Math.floor(LARGEST * 0.8)]) expect(numbersAt(count).next()).toBeUndefined()
  for (const count of [Math.ceil(LARGEST * 0.8) + 1, LARGEST, -LARGEST, -1]) {
    expect(numbersAt(count).next()).toMatch(/^\/b\/job\d{20}$/)
  }
  expect(numbersAt(4, 5).next()).toBeUndefined()
  expect(numbersAt(5, 5).next()).toMatch(/^\/b\/job\d{20}$/)
})

test('a board that is not viewed knows the count from its opening, its own postings, and its last view', () => {
  let count: number | undefined
  const numbers = new SequenceNumbers({ newPosting: '/b/job', count: () => count, created: 4, from: 100 })
  expect(numbers.next()).toBeUndefined()
  numbers.note('/b/job0000000099')
  expect(numbers.next()).toBeUndefined()
  numbers.note('/b/job0000000100')
  expect(numbers.next()).toMatch(/^\/b\/job\d{20}$/)
  numbers.note(`/b/job${'1'.repeat(20)}`)
  expect(numbers.next()).toMatch(/^\/b\/job\d{20}$/)
  const later = new SequenceNumbers({ newPosting: '/b/job', count: () => count, created: 4, from: 100 })
  count = 500
  expect(later.next()).toMatch(/^\/b\/job\d{20}$/)
  count = undefined
  expect(later.next()).toMatch(/^\/b\/job\d{20}$/)
})

test('numbers made here only grow, however many in a millisecond, and also where the clock is set back', () => {
  let now = 1_800_000_000_000
  vi.spyOn(Date, 'now').mockImplementation(() => now)
  const numbers = numbersAt(LARGEST)
  const ids: string[] = []
  const make = (count: number) => {
    for (let made = 0; made < count; made++) ids.push(numbers.next()?.slice('/b/'.length) ?? '')
  }
  make(30_000)
  now -= 60_000
  make(100)
  now += 120_000
  make(100)
  expect(new Set(ids).size).toBe(ids.length)
  for (const [index, id] of ids.entries()) {
    expect(id).toMatch(/^job\d{20}$/)
    if (index > 0 && compareIds({ id: ids[index - 1] }, { id }) >= 0) throw new Error(`${ids[index - 1]} before ${id}`)
  }
  expect(compareIds({ id: 'job2147483647' }, { id: ids[0] })).toBeLessThan(0)
})
