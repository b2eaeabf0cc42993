/** Failures out of the trash and logbooks: whatever others have written there can be shown, in linear time. */
import { expect, test } from 'vitest'
import { describeFailure, type Failure, failureOf, parseFailure } from '../../src/core/failure.ts'

test('what failureOf keeps is read as it is', () => {
  const cause = Object.assign(new Error('x'.repeat(9_000)), { code: 'ENOENT', retryAfter: 5 })
  const failure = failureOf(new AggregateError([cause, new TypeError('b')], 'several', { cause }))
  expect(parseFailure(failure)).toEqual(failure)
  expect(parseFailure(undefined)).toBeUndefined()
})

test.each<[string, unknown]>([
  ['a text', 'broken'],
  ['a number', 5],
  ['a list', ['a', 'b']],
  ['causes that are no list', { name: 'Error', message: 'broken', causes: 'abc' }],
  ['causes of any kind', { name: 'Error', message: 'broken', causes: [5, null, 'c', { causes: { length: 3 } }] }],
  ['fields of any kind', { name: 5, message: {}, code: 7, stack: [], nonRetryable: 'yes', retryAfter: Number.NaN }],
])('%s can be described', (_, value) => {
  const failure = parseFailure(value)
  expect(failure).toMatchObject({ name: expect.any(String), message: expect.any(String) })
  expect(describeFailure(failure as Failure)).toContain('Error')
})

test('depth, number and length are bounded', () => {
  let deep: unknown = 'innermost'
  for (let level = 0; level < 50; level += 1) deep = { name: 'Error', message: `level ${level}`, causes: [deep] }
  const wide = { name: 'Error', message: 'm', causes: Array.from({ length: 5_000 }, () => deep) }
  expect(JSON.stringify(parseFailure(wide)).match(/"message"/g)).toHaveLength(33)
  expect(parseFailure({ name: 'Error', message: ' '.repeat(400_000) })?.message.length).toBeLessThan(8_200)
})

test('a message of blanks is described in linear time', () => {
  const message = `${' '.repeat(300_000)}x`
  expect(describeFailure({ name: 'Error', message }).length).toBeLessThan(10_000)
  expect(describeFailure({ name: 'Error', message: 'a \n  b\n\nc' })).toBe('Error: a b c')
})
