import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/zookeeper/clock.ts'
import { LeaseKeeper } from '../../../src/zookeeper/lease-keeper.ts'

const SESSION = { id: 7n, timeout: 12_000 }

describe('a lease keeper', () => {
  let keeper: LeaseKeeper
  let told: string[] = []

  beforeEach(() => {
    vi.useFakeTimers()
    told = []
    keeper = new LeaseKeeper(
      { clock: systemClock, tick: 2_000 },
      {
        over: () => {
          told.push('over')
          keeper.ended()
        },
        prove: () => told.push('proof'),
      },
    )
    keeper.attached(SESSION, { at: systemClock(), through: 'leader' })
  })

  afterEach(() => {
    keeper.close()
    expect(vi.getTimerCount()).toBe(0)
    vi.useRealTimers()
  })

  /** Everything is answered for so long, by a server that may have no leader. */
  function answered(ms: number): void {
    for (let passed = 0; passed < ms; passed += 500) {
      vi.advanceTimersByTime(500)
      keeper.answered(systemClock())
    }
  }

  test('asks for nothing while nobody relies on it, and the session goes on', () => {
    answered(60_000)
    expect(told).toEqual([])
    expect(keeper.until).toBeLessThan(systemClock().monotonic)
  })

  test('asks six times in a timeout while somebody does, whether there are answers or not', () => {
    const hold = keeper.hold()
    expect(told).toEqual(['proof'])
    vi.advanceTimersByTime(6_000)
    expect(told).toEqual(['proof', 'proof', 'proof', 'proof'])
    hold.release()
    hold.release()
    answered(60_000)
    expect(told).toHaveLength(4)
  })

  test('ends a session that is relied on when its proofs do not come, whatever else is answered', () => {
    using _ = keeper.hold()
    answered(9_500)
    expect(told).not.toContain('over')
    answered(500)
    expect(told).toContain('over')
  })

  test('ends one that nobody relies on when nothing is answered', () => {
    vi.advanceTimersByTime(9_999)
    expect(told).toEqual([])
    vi.advanceTimersByTime(1)
    expect(told).toEqual(['over'])
  })

  test('says when it is proven: at once, or after the next proof, or in the next session', async () => {
    using first = keeper.hold()
    const { session, until } = await first.proven()
    expect([session, until - systemClock().monotonic]).toEqual([7n, 10_000])
    first.release()

    answered(60_000)
    const hold = keeper.hold()
    const proven = hold.proven()
    keeper.answered(systemClock())
    keeper.proven(systemClock())
    expect((await proven).until).toBeGreaterThan(systemClock().monotonic + 8_000)

    keeper.ended()
    const next = hold.proven()
    keeper.attached({ id: 8n, timeout: 12_000 }, { at: systemClock(), through: 'leader' })
    expect((await next).session).toBe(8n)
    hold.release()
  })

  test('goes on with the lease there was when the session is attached to again, until that is proven', () => {
    using _ = keeper.hold()
    answered(5_000)
    const { until } = keeper
    keeper.attached(SESSION, { at: systemClock(), through: 'leader' })
    expect(keeper.until).toBe(until)
    keeper.connected()
    expect(told.at(-1)).toBe('proof')
    vi.advanceTimersByTime(100)
    keeper.proven(systemClock())
    expect(keeper.until).toBe(until + 5_000)
  })

  test('can be waited for no longer than wanted, and not once there will be none', async () => {
    answered(60_000)
    using hold = keeper.hold()
    const reason = new Error('enough')
    await expect(hold.proven({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const waiting = hold.proven()
    keeper.close()
    await expect(waiting).rejects.toMatchObject({ name: 'NotConnected' })
    await expect(hold.proven()).rejects.toMatchObject({ name: 'NotConnected' })
  })

  test('takes a short session for one of a server with short ticks, unless it is told', () => {
    const short = new LeaseKeeper({ clock: systemClock }, { over: () => undefined, prove: () => undefined })
    short.attached({ id: 1n, timeout: 1_000 }, { at: systemClock(), through: 'leader' })
    vi.advanceTimersByTime(300)
    short.answered(systemClock())
    vi.advanceTimersByTime(250)
    short.proven(systemClock())
    expect(short.until - systemClock().monotonic).toBe(800 - 250)
    short.close()
  })
})
