import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../../src/core/time.ts'
import { LeaseKeeper } from '../../../src/zookeeper/session/lease-keeper.ts'

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
        onOver: () => {
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
      keeper.replyReceived(systemClock())
    }
  }

  /** What a server with a leader answers when it is asked to prove the lease, or to write twice. */
  function proves(): void {
    keeper.quorumAcknowledged('echo', systemClock())
    keeper.quorumAcknowledged('proof', systemClock())
  }

  test('asks for nothing while no caller relies on it, and the session goes on', () => {
    answered(60_000)
    expect(told).toEqual([])
    expect(keeper.aliveUntil).toBeLessThan(systemClock().monotonic)
  })

  test('asks six times in a timeout while a caller relies on it, whether there are answers or not', () => {
    const hold = keeper.hold()
    vi.advanceTimersByTime(2_020)
    expect(told).toEqual(['proof'])
    vi.advanceTimersByTime(6_000)
    expect(told).toEqual(['proof', 'proof', 'proof', 'proof'])
    hold.release()
    hold.release()
    answered(60_000)
    expect(told).toHaveLength(4)
  })

  test('asks for nothing while what the holder writes is proof enough', () => {
    answered(60_000)
    using _ = keeper.hold()
    const writing = (ms: number) => {
      for (let passed = 0; passed < ms; passed += 10) {
        keeper.quorumAcknowledged('proof', systemClock())
        vi.advanceTimersByTime(10)
      }
    }
    writing(60_000)
    expect(told).toEqual([])
    expect(keeper.aliveUntil - systemClock().monotonic).toBeGreaterThan(8_500)
    // One that could gain half a beat is asked for.
    vi.advanceTimersByTime(3_000)
    expect(told).toEqual(['proof'])
  })

  test('leaves a caller that begins to rely on it some time to write, unless a caller waits', async () => {
    answered(60_000)
    const hold = keeper.hold()
    vi.advanceTimersByTime(19)
    expect(told).toEqual([])
    vi.advanceTimersByTime(1)
    expect(told).toEqual(['proof'])
    hold.release()
    answered(60_000)

    using again = keeper.hold()
    const waiting = [again.proven(), again.proven()]
    await Promise.resolve()
    expect(told).toEqual(['proof', 'proof'])
    proves()
    await Promise.all(waiting)
    vi.advanceTimersByTime(1_999)
    expect(told).toHaveLength(2)
    vi.advanceTimersByTime(1)
    expect(told).toHaveLength(3)
  })

  test('ends a session that is relied on when its proofs do not come, whatever else is answered', () => {
    using _ = keeper.hold()
    answered(9_500)
    expect(told).not.toContain('over')
    answered(500)
    expect(told).toContain('over')
  })

  test('ends one that no caller relies on when nothing is answered', () => {
    vi.advanceTimersByTime(9_999)
    expect(told).toEqual([])
    vi.advanceTimersByTime(1)
    expect(told).toEqual(['over'])
  })

  test('says when it is proven: at once, or after the next proof, or in the next session', async () => {
    using first = keeper.hold()
    expect(first.isProven).toBe(true)
    const { session, until } = await first.proven()
    expect([session, until - systemClock().monotonic]).toEqual([7n, 10_000])
    first.release()
    expect(first.isProven).toBe(false)

    answered(60_000)
    const hold = keeper.hold()
    expect(hold.isProven).toBe(false)
    const proven = hold.proven()
    keeper.replyReceived(systemClock())
    expect(hold.isProven).toBe(false)
    proves()
    expect(hold.isProven).toBe(true)
    expect((await proven).until).toBeGreaterThan(systemClock().monotonic + 8_000)

    keeper.ended()
    expect(hold.isProven).toBe(false)
    const next = hold.proven()
    keeper.attached({ id: 8n, timeout: 12_000 }, { at: systemClock(), through: 'leader' })
    expect(hold.isProven).toBe(true)
    expect((await next).session).toBe(8n)
    hold.release()
  })

  test('goes on with the lease there was when the session is attached to again, until that is proven', () => {
    using _ = keeper.hold()
    answered(5_000)
    const { aliveUntil } = keeper
    keeper.attached(SESSION, { at: systemClock(), through: 'leader' })
    expect(keeper.aliveUntil).toBe(aliveUntil)
    const asked = told.length
    keeper.connected()
    expect(told).toHaveLength(asked + 1)
    vi.advanceTimersByTime(100)
    proves()
    expect(keeper.aliveUntil).toBe(aliveUntil + 5_000)
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

  test('reports its release to callers that still wait, and to callers that ask later', async () => {
    answered(60_000)
    const hold = keeper.hold()
    using other = keeper.hold()
    const waiting = [hold.proven(), other.proven()]
    hold.release()
    await expect(waiting[0]).rejects.toMatchObject({ name: 'InvalidState' })
    await expect(hold.proven()).rejects.toMatchObject({ name: 'InvalidState' })
    proves()
    expect(await waiting[1]).toMatchObject({ session: 7n })
  })

  test('throws no session away of which little was known when a caller began to rely on it', async () => {
    vi.advanceTimersByTime(9_990)
    keeper.replyReceived(systemClock())
    using hold = keeper.hold()
    const proven = hold.proven()
    // Longer than the lease there was; and then the answers are there.
    vi.advanceTimersByTime(40)
    proves()
    vi.advanceTimersByTime(1_000)
    proves()
    expect((await proven).until - systemClock().monotonic).toBeGreaterThan(5_000)
    expect(told).not.toContain('over')
  })

  test.each([
    ['at once and asks for nothing', { idle: 0, every: 0 }],
    ['at once and writes at times', { idle: 0, every: 170 }],
    ['at once and writes', { idle: 0, every: 40 }],
    ['after a while', { idle: 10_300, every: 0 }],
    ['after a while, just before a ping', { idle: 10_550, every: 0 }],
    ['after a while, at an awkward moment', { idle: 10_590, every: 0 }],
  ])('keeps the shortest of sessions going for who relies on it %s', (_, { idle, every }) => {
    let over = 0
    const short = new LeaseKeeper({ clock: systemClock }, { onOver: () => over++, prove: () => prove() })
    const answer = (what: 'touch' | 'echo' | 'proof', then?: () => void) => {
      const sentAt = systemClock()
      setTimeout(() => {
        if (what === 'touch') short.replyReceived(sentAt)
        else short.quorumAcknowledged(what, sentAt)
        then?.()
      }, 5)
    }
    const prove = () => answer('echo', () => answer('proof'))
    short.attached({ id: 1n, timeout: 1_000 }, { at: systemClock(), through: 'leader' })
    const pinging = setInterval(() => answer('touch'), 333)
    vi.advanceTimersByTime(idle)
    clearInterval(pinging)
    const writing = every === 0 ? undefined : setInterval(() => answer('proof'), every)
    short.hold()
    vi.advanceTimersByTime(20_000)
    expect(over).toBe(0)
    expect(short.aliveUntil - systemClock().monotonic).toBeGreaterThan(250)
    short.close()
    clearInterval(writing)
    vi.advanceTimersByTime(10)
  })

  test('takes a short session for one of a server with short ticks, unless the ticks are given', () => {
    const short = new LeaseKeeper({ clock: systemClock }, { onOver: () => undefined, prove: () => undefined })
    short.attached({ id: 1n, timeout: 1_000 }, { at: systemClock(), through: 'leader' })
    vi.advanceTimersByTime(300)
    short.replyReceived(systemClock())
    vi.advanceTimersByTime(250)
    short.quorumAcknowledged('echo', systemClock())
    short.quorumAcknowledged('proof', systemClock())
    expect(short.aliveUntil - systemClock().monotonic).toBe(800 - 250)
    short.close()
  })
})
