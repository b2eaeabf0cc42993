import { afterEach, describe, expect, test, vi } from 'vitest'
import { abortAfter } from '../../src/core/async/abort.ts'
import { AbortFlag } from '../../src/core/async/abort-flag.ts'
import { InvalidArgument } from '../../src/core/errors.ts'
import {
  backoffDelay,
  sleep,
  startInterval,
  startTimer,
  timeoutSignal,
  toMilliseconds,
  toTimerMs,
} from '../../src/core/time.ts'

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

describe('a time longer than a timer of Node can wait', () => {
  const DAY_MS = 86_400_000
  afterEach(() => void vi.useRealTimers())

  const passed = vi.fn<() => void>()
  test.each<[string, (ms: number) => unknown]>([
    ['a timer', (ms) => startTimer(passed, ms)],
    ['a signal', (ms) => timeoutSignal(ms).addEventListener('abort', passed)],
    ['a deadline', (ms) => abortAfter(new AbortFlag(), ms, passed)],
  ])('is waited for by %s', async (_, start) => {
    for (const ms of [2 ** 31, 30 * DAY_MS, 365 * DAY_MS]) {
      vi.useFakeTimers()
      passed.mockReset()
      start(ms)
      await vi.advanceTimersByTimeAsync(ms - 1)
      expect(passed).not.toHaveBeenCalled()
      // The parts of the time are rounded up to whole milliseconds.
      await vi.advanceTimersByTimeAsync(20)
      expect(passed).toHaveBeenCalledOnce()
      vi.useRealTimers()
    }
  })

  test('never passes where it has no end, and a timer can be cleared in each of its parts', async () => {
    vi.useFakeTimers()
    passed.mockReset()
    startTimer(passed, Number.POSITIVE_INFINITY)
    const cleared = startTimer(passed, 60 * DAY_MS)
    await vi.advanceTimersByTimeAsync(50 * DAY_MS)
    clearTimeout(cleared)
    await vi.advanceTimersByTimeAsync(50 * DAY_MS)
    expect(passed).not.toHaveBeenCalled()
  })

  test('is passed in parts by a real timer, which stays unreferenced, and by a wait', async () => {
    passed.mockReset()
    const timer = startTimer(passed, 2 ** 31).unref()
    const { signal } = new AbortController()
    void sleep(2 ** 31, { signal }).then(passed)
    // A timer that is too long for Node.js fires after 1 ms: before this one, which was started later.
    await sleep(1)
    expect([passed.mock.calls.length, timer.hasRef()]).toEqual([0, false])
    clearTimeout(timer)
  })

  test('fires an interval once in 24 days', async () => {
    vi.useFakeTimers()
    passed.mockReset()
    startInterval(passed, Number.POSITIVE_INFINITY)
    await vi.advanceTimersByTimeAsync(25 * DAY_MS)
    expect(passed).toHaveBeenCalledOnce()
  })

  test('is refused, with the maximum, where a driver or a server waits', () => {
    expect(toTimerMs(2 ** 31 - 1, 'ttl')).toBe(2 ** 31 - 1)
    expect(() => toTimerMs('25d', 'ttl')).toThrow('ttl must be at most 2147483647 ms (24 days), got 25d')
  })
})
