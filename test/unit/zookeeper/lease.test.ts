import { describe, expect, test } from 'vitest'
import { Lease } from '../../../src/zookeeper/lease.ts'

const at = (monotonic: number, wall = monotonic) => ({ monotonic, wall: 1_000_000 + wall })

describe('a lease', () => {
  test('ends one timeout after the last request that was answered was sent, less a fifth', () => {
    const lease = new Lease(5_000, at(0))
    expect(lease.remaining(at(0))).toBe(4_000)
    lease.answered(at(1_000))
    expect(lease.remaining(at(1_500))).toBe(3_500)
    expect(lease.remaining(at(5_000))).toBe(0)
  })

  test('keeps a margin of one tick at the most', () => {
    expect(new Lease(60_000, at(0)).remaining(at(0))).toBe(58_000)
  })

  test('is not moved back by an answer to an older request', () => {
    const lease = new Lease(5_000, at(1_000))
    lease.answered(at(500))
    expect(lease.remaining(at(1_000))).toBe(4_000)
  })

  test('counts the time for which the machine was suspended', () => {
    const lease = new Lease(5_000, at(0))
    expect(lease.remaining(at(100, 3_600_000))).toBeLessThan(0)
    lease.answered(at(200, 3_600_100))
    expect(lease.remaining(at(200, 3_600_100))).toBe(4_000)
  })

  test('is not lengthened by a wall clock that is set back', () => {
    expect(new Lease(5_000, at(0)).remaining(at(4_500, -100_000))).toBe(-500)
  })
})
