import { describe, expect, test } from 'vitest'
import { sortLazily } from '../../../src/core/collections/lazy-sort.ts'
import { randomly } from '../../support/random.ts'

const compare = (a: number, b: number) => a - b

/** Returns numbers in no order, of which some are equal. */
function shuffled(count: number, seed = 1): number[] {
  const random = randomly(seed)
  return Array.from({ length: count }, () => random.between(0, count))
}

describe('a lazy sort', () => {
  test.each([0, 1, 2, 3, 99, 100, 101, 1_000, 20_003])('yields all of %i items in order', (count) => {
    const items = shuffled(count)
    const expected = [...items].sort(compare)
    expect([...sortLazily(items, { compare, batch: 100 })].flat()).toEqual(expected)
  })

  test('yields any small list in order', () => {
    for (let seed = 1; seed <= 500; seed += 1) {
      const items = shuffled(seed % 12, seed)
      const expected = [...items].sort(compare)
      expect([...sortLazily(items, { compare, batch: 1 + (seed % 4) })].flat()).toEqual(expected)
    }
  })

  test('yields sorted and reversed items in order', () => {
    const sorted = Array.from({ length: 12_000 }, (_, index) => index)
    expect([...sortLazily([...sorted], { compare, batch: 100 })].flat()).toEqual(sorted)
    expect([...sortLazily([...sorted].reverse(), { compare, batch: 100 })].flat()).toEqual(sorted)
  })

  test('yields batches of the given size', () => {
    const sizes = [...sortLazily(shuffled(250), { compare, batch: 100 })].map(({ length }) => length)
    expect(sizes.filter((size) => size > 0)).toEqual([100, 100, 50])
  })

  test.each([
    ['in no order', shuffled(100_000)],
    ['in order', Array.from({ length: 100_000 }, (_, index) => index)],
    ['in order but for the last one', [...Array.from({ length: 99_999 }, (_, index) => index), -1]],
  ])(
    'of which only the start is read compares each item %s about twice, and never many of them at once',
    (_, items) => {
      let [comparisons, atOnce, last] = [0, 0, 0]
      const counted = (a: number, b: number) => {
        comparisons += 1
        return a - b
      }
      for (const batch of sortLazily(items, { compare: counted, batch: 100 })) {
        atOnce = Math.max(atOnce, comparisons - last)
        last = comparisons
        if (batch.length > 0) break
      }
      expect(comparisons).toBeLessThan(3.2 * items.length)
      expect(atOnce).toBeLessThan(items.length / 4)
    },
  )
})
