import { expect, test } from 'vitest'
import { median, spread } from './spread.ts'

test.each([
  [[3, 1, 2], 2],
  [[4, 1, 2, 3], 2.5],
  [[], Number.NaN],
])('the median of %j is %d', (figures, middle) => {
  expect(median(figures)).toBe(middle)
})

test('a spread is the median with the least and the most of what was measured', () => {
  expect(spread([3, 1, Number.NaN, 2], 1)).toBe('2.0 (1.0 to 3.0)')
  expect(spread([Number.NaN], 1)).toBe('-')
})
