import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../src/core/errors.ts'
import { backoffDelay, sleep, toMilliseconds } from '../../src/core/time.ts'

describe('milliseconds', () => {
  test.each([
    [250, 250],
    [0, 0],
    ['250ms', 250],
    ['10s', 10_000],
    ['1.5h', 5_400_000],
    ['2d', 172_800_000],
    [' 3m ', 180_000],
  ])('%j', (duration, value) => {
    expect(toMilliseconds(duration, 'timeout')).toBe(value)
  })

  test.each(['', '10', 's', '-1s', '1w', 'ten seconds', -1, Number.NaN, Number.POSITIVE_INFINITY])(
    '%j is refused',
    (duration) => {
      expect(() => toMilliseconds(duration, 'timeout')).toThrow(InvalidArgument)
    },
  )
})

test.each<[unknown, string]>([
  [Number.POSITIVE_INFINITY, 'timeout: Infinity is more than the maximum of 100 years; omit it for no limit'],
  [1e300, '1e+300 is more than the maximum of 100 years'],
  ['36526d', '"36526d" is more than the maximum of 100 years'],
  [new Date(0), 'an instant (a Date) is not a duration'],
  [{}, 'an object is not a duration'],
  [null, 'null is not a duration'],
])('what is wrong with %s is said', (duration, says) => {
  expect(() => toMilliseconds(duration as never, 'timeout')).toThrow(says)
})

test('100 years from now are a date', () => {
  expect(new Date(Date.now() + toMilliseconds('36525d', 'delay')).getTime()).toBeGreaterThan(Date.now())
})

test('backoff doubles up to its limit, and is spread over all of it', () => {
  const longest = [1, 2, 3, 4, 50].map((attempt) => backoffDelay(attempt, { first: 100, max: 500, random: () => 1 }))
  expect(longest).toEqual([100, 200, 400, 500, 500])
  expect(backoffDelay(3, { first: 100, max: 500, random: () => 0 })).toBe(0)
})

test('sleep ends with the reason of its signal', async () => {
  const reason = new Error('enough')
  const controller = new AbortController()
  const sleeping = sleep(60_000, { signal: controller.signal })
  controller.abort(reason)
  await expect(sleeping).rejects.toBe(reason)
  await expect(sleep(0, { signal: controller.signal })).rejects.toBe(reason)
})
