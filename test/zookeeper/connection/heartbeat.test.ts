import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Heartbeat } from '../../../src/zookeeper/connection/heartbeat.ts'

describe('a heartbeat', () => {
  let told: string[] = []
  let heartbeat: Heartbeat

  beforeEach(() => {
    vi.useFakeTimers()
    told = []
    heartbeat = new Heartbeat(3_000, {
      ping: () => {
        told.push('ping')
        heartbeat.sent()
      },
      onSilence: (ms) => told.push(`silent ${ms}`),
    })
    heartbeat.start()
  })

  afterEach(() => {
    heartbeat.stop()
    vi.useRealTimers()
  })

  test('pings when nothing else was sent for a third of the session', () => {
    vi.advanceTimersByTime(600)
    heartbeat.sent()
    heartbeat.received()
    vi.advanceTimersByTime(999)
    expect(told).toEqual([])
    vi.advanceTimersByTime(1)
    expect(told).toEqual(['ping'])
  })

  test('reports when nothing was received for two thirds', () => {
    vi.advanceTimersByTime(1_999)
    expect(told).toEqual(['ping'])
    vi.advanceTimersByTime(2)
    expect(told[1]).toMatch(/^silent 200\d$/)
    expect(told).toHaveLength(2)
  })

  test('looks once more before it reports, because it may be this process that was late', () => {
    vi.advanceTimersByTime(1_999)
    // The timer is due. What lies in the socket is read between it and the second look.
    vi.advanceTimersToNextTimer()
    heartbeat.received()
    vi.advanceTimersToNextTimer()
    expect(told).toEqual(['ping'])
  })

  test('is silent once it is stopped', () => {
    heartbeat.stop()
    vi.advanceTimersByTime(10_000)
    expect(told).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
  })
})
