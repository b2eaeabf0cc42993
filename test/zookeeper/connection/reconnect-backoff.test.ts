import { describe, expect, test } from 'vitest'
import { ReconnectBackoff } from '../../../src/zookeeper/connection/connector.ts'

const latest = () => 1

describe('pacing', () => {
  test('the first attempt after a good connection comes at once, the next ones later and later', () => {
    const pacing = new ReconnectBackoff(12_000, latest)
    expect(pacing.pauseAfter(60_000)).toBe(0)
    const waits = Array.from({ length: 8 }, () => pacing.pauseAfter(undefined))
    expect(waits).toEqual([0, 50, 100, 200, 400, 800, 1_600, 2_000])
  })

  test('several attempts fit into a short session', () => {
    const pacing = new ReconnectBackoff(1_200, latest)
    for (let attempt = 0; attempt < 20; attempt++) pacing.pauseAfter(undefined)
    expect(pacing.pauseAfter(undefined)).toBe(200)
  })

  test('a connection after many failures that breaks soon is tried again at once, but not for ever', () => {
    const pacing = new ReconnectBackoff(12_000, latest)
    for (let attempt = 0; attempt < 20; attempt++) pacing.pauseAfter(undefined)
    expect(pacing.pauseAfter(10)).toBe(0)
    expect(pacing.pauseAfter(10)).toBe(50)
    expect(pacing.pauseAfter(10)).toBe(100)
    expect(pacing.pauseAfter(60_000)).toBe(0)
  })
})
