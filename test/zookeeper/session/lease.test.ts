import { describe, expect, test } from 'vitest'
import type { Instant } from '../../../src/core/time.ts'
import { Lease, type LeaseTerms } from '../../../src/zookeeper/session/lease.ts'

const TERMS: LeaseTerms = { timeout: 10_000, tick: 2_000 }
const LENGTH = 8_000
const RELAY = 1_000

/** A lease on a clock that stands still until it is told. */
function lab(options: { terms?: LeaseTerms; through?: 'leader' | 'server' } = {}) {
  const now = { monotonic: 0, wall: 1_000_000 }
  const instant = (): Instant => ({ ...now })
  const lease = new Lease(options.terms ?? TERMS, { at: instant(), through: options.through ?? 'leader' }, instant)
  return {
    lease,
    now,
    instant,
    pass: (ms: number) => {
      now.monotonic += ms
      now.wall += ms
    },
  }
}

/** What is answered at once. */
function answer(from: ReturnType<typeof lab>, what: 'touch' | 'echo' | 'proof'): void {
  if (what === 'touch') from.lease.replyReceived(from.instant())
  if (what === 'echo') from.lease.echoReceived(from.instant())
  if (what === 'proof') from.lease.proofReceived(from.instant())
}

/** As whoever relies on a lease asks for it. */
function prove(from: ReturnType<typeof lab>): void {
  answer(from, 'echo')
  answer(from, 'proof')
}

describe('a lease', () => {
  test.each([
    // The guide says so: two thirds of the timeout, less the margin, and 2 s to find the server.
    [{ timeout: 21_000, tick: 2_000 }, 12_000],
    [{ timeout: 10_000, tick: 2_000 }, 4_666],
    [{ timeout: 30_000, tick: 2_000 }, 18_000],
  ])('of %j lasts an outage of %i ms, with and without a caller that relies on it', (terms, outage) => {
    const pinging = lab({ terms })
    pinging.pass(terms.timeout / 3)
    pinging.pass(outage - 1)
    expect(pinging.lease.timeLeftMs).toBeGreaterThan(0)
    pinging.pass(2)
    expect(pinging.lease.timeLeftMs).toBeLessThanOrEqual(0)

    const proving = lab({ terms })
    proving.lease.startRelying()
    const between = terms.timeout / 6
    for (let proofs = 0; proofs < 12; proofs++) {
      proving.pass(between)
      prove(proving)
    }
    proving.pass(between)
    expect(proving.lease.isProven).toBe(true)
    expect(proving.lease.timeLeftMs).toBeGreaterThanOrEqual(outage - 1)
  })

  test('says of its end what was proven, when, and what the limit is', () => {
    const idle = lab()
    idle.pass(1_500)
    answer(idle, 'touch')
    idle.pass(LENGTH)
    expect(idle.lease.expiryReason).toBe(
      'the newest request that was answered was sent 8000 ms ago, and 8000 ms are the limit',
    )
    const relied = lab()
    relied.lease.startRelying()
    relied.pass(9_500)
    expect(relied.lease.expiryReason).toBe(
      'the newest request that is proven to have reached the leader was sent 9500 ms ago, and 8000 ms are the limit',
    )
  })

  test('begins when the session was asked for, and ends a timeout less a margin later', () => {
    const it = lab()
    expect(it.lease.remainingMs).toBe(LENGTH)
    it.pass(LENGTH)
    expect(it.lease.remainingMs).toBe(0)
  })

  test.each([
    [{ timeout: 5_000, tick: 2_000 }, 4_000],
    [{ timeout: 60_000, tick: 2_000 }, 58_000],
    [{ timeout: 10_000, tick: 500 }, 9_500],
  ])('of %j keeps the smaller of a tick and a fifth as its margin', (terms, length) => {
    expect(lab({ terms }).lease.remainingMs).toBe(length)
  })

  test('is proven by nothing that a server without a leader grants', () => {
    const it = lab({ through: 'server' })
    it.lease.startRelying()
    expect(it.lease.remainingMs).toBe(Number.NEGATIVE_INFINITY)
    expect(it.lease.isProven).toBe(false)
    expect(it.lease.timeLeftMs).toBe(LENGTH)
  })

  test('is not moved by pongs and reads', () => {
    const it = lab()
    it.lease.startRelying()
    for (let pong = 0; pong < 7; pong++) {
      it.pass(1_000)
      answer(it, 'touch')
    }
    expect(it.lease.remainingMs).toBe(LENGTH - 7_000)
    expect(it.lease.timeLeftMs).toBe(LENGTH - 7_000)
  })

  test('is moved by a proof to what was answered half a tick before its echo was asked for', () => {
    const it = lab()
    it.pass(3_000)
    answer(it, 'touch')
    it.pass(RELAY - 1)
    prove(it)
    expect(it.lease.remainingMs, 'the follower may not have passed it on').toBe(LENGTH - 3_999)
    it.pass(1)
    prove(it)
    expect(it.lease.remainingMs).toBe(LENGTH - RELAY)
  })

  test('(what was sent arrived late) counts what had been answered by then, not what had been sent', () => {
    const it = lab()
    it.pass(1_000)
    const touch = it.instant()
    it.pass(2_000)
    const echo = it.instant()
    // The network between client and follower holds back both for some seconds, and gives way.
    it.pass(2_000)
    it.lease.replyReceived(touch)
    it.lease.echoReceived(echo)
    it.pass(10)
    answer(it, 'proof')
    expect(it.lease.remainingMs, 'the follower heard of it a moment ago, and was not asked since').toBe(LENGTH - 5_010)
    it.pass(RELAY)
    prove(it)
    expect(it.lease.remainingMs).toBe(LENGTH - RELAY)
  })

  test('(what the leader said arrived late) is not moved by a proof that was asked for before an echo was received', () => {
    const it = lab()
    it.pass(2_000)
    answer(it, 'touch')
    it.pass(1_500)
    const proofs = [it.instant()]
    it.pass(1_500)
    proofs.push(it.instant())
    // The leader had heard them long ago. Its answers come now, and its questions with them: too late for these two.
    it.pass(2_000)
    for (const sentAt of proofs) it.lease.proofReceived(sentAt)
    expect(it.lease.remainingMs).toBe(LENGTH - 7_000)
    answer(it, 'proof')
    expect(it.lease.remainingMs).toBe(LENGTH - 5_000)
  })

  test('(a follower cut off just before it would have passed a touch on) is not moved by that touch', () => {
    const it = lab()
    it.lease.startRelying()
    // The last that the leader heard was at 2,000; the proof that is asked for at 2,900 does not say more.
    it.pass(2_000)
    prove(it)
    it.pass(900)
    prove(it)
    for (let pong = 0; pong < 5; pong++) {
      it.pass(1_000)
      answer(it, 'touch')
    }
    expect(it.lease.timeLeftMs).toBeLessThanOrEqual(2_000 + LENGTH - 7_900)
    it.pass(100)
    expect(it.lease.timeLeftMs).toBeLessThanOrEqual(0)
  })

  test('is not moved by attaching to the session again before the next proof: the leader may have been deposed', () => {
    const it = lab()
    it.pass(5_000)
    it.lease.attachedAgain({ at: it.instant(), through: 'leader' })
    expect(it.lease.remainingMs).toBe(LENGTH - 5_000)
    it.pass(10)
    answer(it, 'proof')
    expect(it.lease.remainingMs).toBe(LENGTH - 10)
  })

  test('is not moved by what another server received', () => {
    const it = lab()
    it.pass(3_000)
    answer(it, 'touch')
    it.lease.attachedAgain({ at: it.instant(), through: 'server' })
    it.pass(RELAY - 1)
    prove(it)
    expect(it.lease.remainingMs).toBe(LENGTH - 3_999)
  })

  test('is never moved back', () => {
    const it = lab()
    const early = it.instant()
    it.pass(4_000)
    answer(it, 'touch')
    it.pass(1_000)
    prove(it)
    const { remainingMs } = it.lease
    it.lease.proofReceived(early)
    it.lease.replyReceived(early)
    expect(it.lease.remainingMs).toBe(remainingMs)
  })

  test('says how much another proof could gain', () => {
    const it = lab()
    it.pass(3_000)
    expect(it.lease.gainMs).toBe(3_000 - RELAY)
    answer(it, 'touch')
    it.pass(RELAY)
    prove(it)
    expect(it.lease.gainMs).toBe(0)
    expect(lab({ through: 'server' }).lease.gainMs).toBe(Number.POSITIVE_INFINITY)
  })

  test('that is relied on counts the time for which the machine was suspended', () => {
    const it = lab()
    it.lease.startRelying()
    it.now.wall += 3_600_000
    expect(it.lease.remainingMs).toBeLessThan(0)
    expect(it.lease.timeLeftMs).toBeLessThan(0)
  })

  test('is not lengthened by a wall clock set back', () => {
    const it = lab()
    it.now.wall -= 100_000
    it.now.monotonic += 9_000
    expect(it.lease.remainingMs).toBe(-1_000)
  })

  test('stays exact to an eighth of the relay however many answers come, and keeps few of them', () => {
    const it = lab()
    it.lease.startRelying()
    for (let ms = 0; ms < 20_000; ms++) {
      it.pass(1)
      answer(it, ms % 100 === 0 ? 'proof' : 'touch')
    }
    // The newest proof was asked for 99 ms ago, and what it can prove 100 ms before that.
    expect(it.lease.remainingMs).toBeGreaterThan(LENGTH - RELAY - 2 * (RELAY / 8) - 200)
    expect(it.lease.remainingMs).toBeLessThanOrEqual(LENGTH - RELAY)
  })
})

describe('a session', () => {
  /** An hour in which nobody relies on it. */
  function pinged(): ReturnType<typeof lab> {
    const it = lab()
    for (let ping = 0; ping < 1_200; ping++) {
      it.pass(3_000)
      answer(it, 'touch')
    }
    return it
  }

  test('on which no caller relies is over when nothing is answered, whatever the leader knows', () => {
    const it = pinged()
    expect(it.lease.remainingMs).toBeLessThan(0)
    expect(it.lease.timeLeftMs).toBe(LENGTH)
  })

  test('on which no caller relies, or that is not proven yet, minds no wall clock that is set forward', () => {
    const it = lab({ through: 'server' })
    it.now.wall += 3_600_000
    expect(it.lease.timeLeftMs).toBe(LENGTH)
    it.lease.startRelying()
    expect([it.lease.isProven, it.lease.timeLeftMs]).toEqual([false, LENGTH])
    it.pass(LENGTH)
    expect(it.lease.timeLeftMs).toBe(0)
  })

  test('on which a caller begins to rely after an hour of pings is proven by an echo and a proof', () => {
    const it = pinged()
    it.pass(2_000)
    it.lease.startRelying()
    expect([it.lease.isProven, it.lease.timeLeftMs]).toEqual([false, LENGTH - 2_000])
    answer(it, 'echo')
    expect(it.lease.isProven).toBe(false)
    answer(it, 'proof')
    expect(it.lease.isProven).toBe(true)
    // Counted from the ping before.
    expect([it.lease.remainingMs, it.lease.timeLeftMs]).toEqual([LENGTH - 2_000, LENGTH - 2_000])
  })

  test('is not over because a proof came too late to be one', () => {
    const it = pinged()
    it.lease.startRelying()
    answer(it, 'echo')
    const asked = it.instant()
    it.pass(5_000)
    answer(it, 'touch')
    it.pass(4_000)
    answer(it, 'touch')
    it.lease.proofReceived(asked)
    expect(it.lease.isProven).toBe(false)
    expect(it.lease.timeLeftMs).toBe(LENGTH)
  })

  test('of which too little is left to get the next proof in time is not relied on before that one came', () => {
    const begun = lab()
    begun.pass(LENGTH - 10)
    begun.lease.startRelying()
    expect([begun.lease.isProven, begun.lease.timeLeftMs]).toEqual([false, 10])
    answer(begun, 'touch')
    expect(begun.lease.timeLeftMs).toBe(LENGTH)

    const slow = pinged()
    slow.lease.startRelying()
    slow.pass(RELAY)
    answer(slow, 'echo')
    const asked = slow.instant()
    slow.pass(LENGTH - RELAY - 10)
    slow.lease.proofReceived(asked)
    expect([slow.lease.remainingMs, slow.lease.isProven]).toEqual([10, false])
  })

  test('that is proven already when a caller begins to rely on it is held to that', () => {
    const it = lab()
    it.pass(1_000)
    answer(it, 'touch')
    it.lease.startRelying()
    expect([it.lease.isProven, it.lease.timeLeftMs]).toEqual([true, LENGTH - 1_000])
    it.lease.stopRelying()
    expect([it.lease.isProven, it.lease.timeLeftMs]).toEqual([false, LENGTH])
  })
})
