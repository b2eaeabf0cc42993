import { expect, test } from 'vitest'
import { keepNewest } from '../../../src/core/collections/keep-newest.ts'

const filled = (count: number) => new Set(Array.from({ length: count }, (_, n) => n))

test.each([1, 2, 7, 8, 100])(
  'of more than %d keys the oldest are deleted and returned, and at most an eighth more',
  (max) => {
    const keys = filled(max + 1)
    const deleted = keepNewest(keys, max)
    expect([...deleted, ...keys]).toEqual([...filled(max + 1)])
    expect(keys.size).toBeLessThanOrEqual(max)
    expect(keys.size).toBeGreaterThanOrEqual((max * 7) / 8)
  },
)

test('up to the maximum nothing is deleted', () => {
  const keys = filled(8)
  expect(keepNewest(keys, 8)).toEqual([])
  expect(keys.size).toBe(8)
})

test('the newest key of a map stays while keys are added', () => {
  const seen = new Map<number, string>()
  for (let key = 0; key < 1_000; key += 1) {
    seen.set(key, String(key))
    keepNewest(seen, 1)
    expect([...seen.keys()]).toEqual([key])
  }
})
