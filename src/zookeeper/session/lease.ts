/**
 * How long this session is certain to be alive.
 *
 * The leader forgets a session of which it heard nothing for the session's timeout, and only what it heard counts. A
 * follower answers pings and reads by itself, also while it is cut off. It tells the leader which sessions it heard of when
 * the leader asks, which it does every half tick of the server (the relay). Between two servers, and between a server and
 * its client, everything arrives in order; but it may be late, in one direction only, and what was last may never arrive.
 * So an answer proves what depends on who can give it:
 *
 *     a touch   anybody's answer: when it was heard here, the server had heard of the session. When it was *sent* the
 *               server had not: what a stalled network holds back reaches it in one go, long after it was sent
 *     an echo   the leader's answer (to a sync or a write) to what was sent at e: the server has heard whatever the leader
 *               had said to it by e, so among the rest a question that was asked at e - relay or later, and has told the
 *               leader of every touch that was heard here by e - relay. Whether that arrived is not known yet
 *     a proof   the answer to a write that was sent after an echo was heard: whatever the server had said before has
 *               arrived at the leader, which knows of those touches; and as most servers agreed it was the leader. A sync
 *               is no proof: one that was deposed and does not know yet answers it, while another lets the session end
 *
 * The lease ends one timeout after the sending of the newest touch that is proven so, less a margin for what an owner
 * still has to do when it learns of the end. Opening a session is a proof by itself. Attaching to it again tells the
 * leader, if it still is the leader, at once, and is proven by the next write.
 *
 * Only a session that somebody relies on pays for proofs. When the session is over for this client:
 *
 *     relied on   proven since   over when
 *     no          -              nothing was answered for the timeout less the margin
 *     yes         not yet        the same: nothing was promised to anybody so far
 *     yes         yes            the lease ends
 *
 * Proven means that enough of the lease was left to get the next proof in time. What nobody was promised is counted on the
 * monotonic clock alone: a wall clock that is set forward harms no session then, and the server says so if the machine
 * was suspended for too long.
 */
import type { Clock, Instant } from '../../core/clock.ts'
import { AnswerHistory } from './answer-history.ts'

export interface LeaseTerms {
  /** What the server granted, in milliseconds. */
  readonly timeout: number
  /** The server's tick, in milliseconds. */
  readonly tick: number
}

export interface AttachInfo {
  /** When the session was asked for. */
  readonly at: Instant
  /** Who granted it; a server without a leader proves nothing. */
  readonly through: 'leader' | 'server'
}

/** Of the relay: answers closer together than this may count as one. */
const GRAIN_FRACTION = 1 / 8
/** Of the lease: what must be left of it when somebody begins to rely on it. */
const MIN_FRACTION_TO_START = 1 / 2
/** What must be left when a proof has come; the next one is there in a sixth of the timeout. */
const MIN_FRACTION_TO_CONTINUE = 1 / 4

export class Lease {
  readonly #clock: Clock
  readonly #lengthMs: number
  readonly #relayMs: number
  /** That the server heard of. */
  readonly #serverTouches: AnswerHistory
  /** That the server has told the leader of: for each echo the newest touch, and when the echo was heard. */
  readonly #relayedTouches: AnswerHistory
  #newest: Instant
  /** When the newest touch was sent that the leader certainly knows of. */
  #leaderKnowsUntil: Instant | undefined
  /** When the session was attached to again, by way of who says that it is the leader. */
  #vouchedAt: Instant | undefined
  #provenAt = Number.NEGATIVE_INFINITY
  #isRelied = false
  #proven = false

  constructor({ timeout, tick }: LeaseTerms, attached: AttachInfo, clock: Clock) {
    this.#clock = clock
    this.#lengthMs = timeout - Math.min(tick, timeout / 5)
    this.#relayMs = tick / 2
    const trails = { grain: this.#relayMs * GRAIN_FRACTION, lifetime: this.#lengthMs }
    this.#serverTouches = new AnswerHistory(trails)
    this.#relayedTouches = new AnswerHistory(trails)
    this.#newest = attached.at
    this.#serverTouches.add({ sentAt: attached.at, receivedAt: clock().monotonic })
    if (attached.through === 'leader') this.#leaderKnowsUntil = attached.at
  }

  /** The session was attached to again, on another connection. */
  attachedAgain({ at, through }: AttachInfo): void {
    // What the server before was told says nothing about this one.
    this.#serverTouches.clear()
    this.#relayedTouches.clear()
    this.replyReceived(at)
    this.#vouchedAt = through === 'leader' ? at : undefined
  }

  /** An answer came to what was sent then, from whomever. Called in the order of sending. */
  replyReceived(sentAt: Instant): void {
    if (sentAt.monotonic <= this.#newest.monotonic) return
    this.#newest = sentAt
    this.#serverTouches.add({ sentAt, receivedAt: this.#clock().monotonic })
  }

  /** It came from the leader. */
  echoReceived(sentAt: Instant): void {
    this.replyReceived(sentAt)
    const relayed = this.#serverTouches.takeUntil(sentAt.monotonic - this.#relayMs)
    if (relayed) this.#relayedTouches.add({ sentAt: relayed, receivedAt: this.#clock().monotonic })
  }

  /** Most servers agreed to it. */
  proofReceived(sentAt: Instant): void {
    for (const touch of [this.#relayedTouches.takeUntil(sentAt.monotonic), this.#vouchedAt]) {
      if (touch && touch.monotonic > (this.#leaderKnowsUntil?.monotonic ?? Number.NEGATIVE_INFINITY))
        this.#leaderKnowsUntil = touch
    }
    this.#vouchedAt = undefined
    this.#provenAt = sentAt.monotonic
    this.echoReceived(sentAt)
    this.#isEnough(MIN_FRACTION_TO_CONTINUE)
  }

  /** From now on its end ends the session, as soon as it is proven. */
  startRelying(): void {
    this.#isRelied = true
    this.#isEnough(MIN_FRACTION_TO_START)
  }

  stopRelying(): void {
    this.#isRelied = false
    this.#proven = false
  }

  /** Whether it is relied on and was proven since. */
  get isProven(): boolean {
    return this.#proven
  }

  /** Milliseconds that the session certainly has left; 0 or less when that is none. By the clock that is further ahead. */
  get remainingMs(): number {
    const known = this.#leaderKnowsUntil
    if (!known) return Number.NEGATIVE_INFINITY
    const now = this.#clock()
    return this.#lengthMs - Math.max(now.monotonic - known.monotonic, now.wall - known.wall)
  }

  /** Milliseconds by which a proof that is asked for now could move its end, if there were touches all the time. */
  get gainMs(): number {
    return this.#lengthMs - this.#relayMs - this.remainingMs
  }

  /** When the newest proof that came was asked for, on the monotonic clock. */
  get provenAt(): number {
    return this.#provenAt
  }

  /** Milliseconds until the session is over by the table above, if nothing more is heard; 0 or less when it is over. */
  get timeLeftMs(): number {
    return this.#proven ? this.remainingMs : this.#lengthMs - (this.#clock().monotonic - this.#newest.monotonic)
  }

  /** Why nothing is left, for people. */
  get expiryReason(): string {
    const age = Math.round(this.#lengthMs - this.timeLeftMs)
    const newest = this.#proven ? 'that is proven to have reached the leader' : 'that was answered'
    return `the newest request ${newest} was sent ${age} ms ago, and ${Math.round(this.#lengthMs)} ms are the limit`
  }

  #isEnough(enough: number): void {
    if (this.#isRelied && !this.#proven) this.#proven = this.remainingMs >= this.#lengthMs * enough
  }
}
