/** The tokens of a limit, as the data and the modification time of a znode say. */
import { expect, test } from 'vitest'
import { decodeTokens, encodeTokens, toTaken } from '../../../../../src/board/backends/zookeeper/store/token-data.ts'

const HOURLY = { intervalMs: 3_600_000, burst: 2 }
const QUICK = { intervalMs: 10, burst: 4 }
const at = (mtime: number) => ({ mtime })

test('tokens are taken at the modification time, or after those before', () => {
  const data = { beforeMs: 5_000, movedMs: 20, rate: QUICK }
  expect(toTaken(data, at(4_000))).toEqual({ arrivalMs: 5_020, rate: QUICK })
  expect(toTaken(data, at(6_000))).toEqual({ arrivalMs: 6_020, rate: QUICK })
})

test('a changed rate counts those that are missing anew, at the modification time, and takes more or none', () => {
  const data = { beforeMs: 1_000 + 3 * HOURLY.intervalMs, movedMs: 20, rate: QUICK, formerMs: HOURLY.intervalMs }
  expect(toTaken(data, at(1_000)).arrivalMs).toBe(1_000 + 3 * 10 + 20)
  expect(toTaken({ ...data, movedMs: 0 }, at(1_000)).arrivalMs).toBe(1_000 + 3 * 10)
  const lowered = { beforeMs: 1_000 + 4 * 10, movedMs: 0, rate: HOURLY, formerMs: 10 }
  expect(toTaken(lowered, at(1_000)).arrivalMs).toBe(1_000 + HOURLY.burst * HOURLY.intervalMs)
  expect(toTaken(lowered, at(1_100)).arrivalMs).toBe(1_040)
})

test('a burst alone may change', () => {
  const data = { beforeMs: 1_000 + 40, movedMs: 0, rate: { intervalMs: 10, burst: 1 }, formerMs: 10 }
  expect(toTaken(data, at(1_000)).arrivalMs).toBe(1_010)
})

test.each([
  { beforeMs: 0, movedMs: 0 },
  { beforeMs: 1.5e12 + 0.25, movedMs: 1e13 / 3 },
  { beforeMs: 1, movedMs: 2, rate: { intervalMs: 1e3 / 7, burst: 3 } },
  { beforeMs: 1, movedMs: 0, rate: QUICK, formerMs: HOURLY.intervalMs },
])('is read as it was written: %o', (data) => {
  expect(decodeTokens(encodeTokens(data))).toEqual(data)
})

test.each([null, '', 'x', '1 x', '1 2 x 3', 'NaN 1', '1 Infinity'])('%o counts as no tokens', (text) => {
  expect(decodeTokens(text === null ? null : Buffer.from(text))).toEqual({ beforeMs: 0, movedMs: 0 })
})

test.each(['1 2', '1 2 0 3', '1 2 -5 3', '1 2 5'])('a rate that no release writes counts as none: %s', (text) => {
  expect(decodeTokens(Buffer.from(text))).toEqual({ beforeMs: 1, movedMs: 2 })
})
