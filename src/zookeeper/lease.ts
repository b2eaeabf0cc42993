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
import type { Clock, Instant } from '../core/clock.ts'
import { Trail } from './trail.ts'

export interface LeaseTerms {
  /** What the server granted, in milliseconds. */
  readonly timeout: number
  /** The server's tick, in milliseconds. */
  readonly tick: number
}

export interface Attached {
  /** When the session was asked for. */
  readonly at: Instant
  /** Who granted it; a server without a leader proves nothing. */
  readonly through: 'leader' | 'server'
}

/** Of the relay: answers closer together than this may count as one. */
const GRAIN = 1 / 8
/** Of the lease: what must be left of it when somebody begins to rely on it. */
const ENOUGH_TO_BEGIN = 1 / 2
/** What must be left when a proof has come; the next one is there in a sixth of the timeout. */
const ENOUGH_TO_GO_ON = 1 / 4

export class Lease {
  readonly #clock: Clock
  readonly #length: number
  readonly #relay: number
  /** That the server heard of. */
  readonly #touches: Trail
  /** That the server has told the leader of: for each echo the newest touch, and when the echo was heard. */
  readonly #told: Trail
  #newest: Instant
  /** When the newest touch was sent that the leader certainly knows of. */
  #known: Instant | undefined
  /** When the session was attached to again, by way of who says that it is the leader. */
  #vouched: Instant | undefined
  #provenAt = Number.NEGATIVE_INFINITY
  #relied = false
  #proven = false

  constructor({ timeout, tick }: LeaseTerms, attached: Attached, clock: Clock) {
    this.#clock = clock
    this.#length = timeout - Math.min(tick, timeout / 5)
    this.#relay = tick / 2
    const trails = { grain: this.#relay * GRAIN, lifetime: this.#length }
    this.#touches = new Trail(trails)
    this.#told = new Trail(trails)
    this.#newest = attached.at
    this.#touches.add({ sentAt: attached.at, heardAt: clock().monotonic })
    if (attached.through === 'leader') this.#known = attached.at
  }

  /** The session was attached to again, on another connection. */
  attachedAgain({ at, through }: Attached): void {
    // What the server before was told says nothing about this one.
    this.#touches.clear()
    this.#told.clear()
    this.answered(at)
    this.#vouched = through === 'leader' ? at : undefined
  }

  /** An answer came to what was sent then, from whomever. Called in the order of sending. */
  answered(sentAt: Instant): void {
    if (sentAt.monotonic <= this.#newest.monotonic) return
    this.#newest = sentAt
    this.#touches.add({ sentAt, heardAt: this.#clock().monotonic })
  }

  /** It came from the leader. */
  echoed(sentAt: Instant): void {
    this.answered(sentAt)
    const told = this.#touches.takeUntil(sentAt.monotonic - this.#relay)
    if (told) this.#told.add({ sentAt: told, heardAt: this.#clock().monotonic })
  }

  /** Most servers agreed to it. */
  proven(sentAt: Instant): void {
    for (const touch of [this.#told.takeUntil(sentAt.monotonic), this.#vouched]) {
      if (touch && touch.monotonic > (this.#known?.monotonic ?? Number.NEGATIVE_INFINITY)) this.#known = touch
    }
    this.#vouched = undefined
    this.#provenAt = sentAt.monotonic
    this.echoed(sentAt)
    this.#judge(ENOUGH_TO_GO_ON)
  }

  /** From now on its end ends the session, as soon as it is proven. */
  rely(): void {
    this.#relied = true
    this.#judge(ENOUGH_TO_BEGIN)
  }

  release(): void {
    this.#relied = false
    this.#proven = false
  }

  /** Whether it is relied on and was proven since. */
  get isProven(): boolean {
    return this.#proven
  }

  /** Milliseconds that the session certainly has left; 0 or less when that is none. By the clock that is further ahead. */
  get remaining(): number {
    const known = this.#known
    if (!known) return Number.NEGATIVE_INFINITY
    const now = this.#clock()
    return this.#length - Math.max(now.monotonic - known.monotonic, now.wall - known.wall)
  }

  /** Milliseconds by which a proof that is asked for now could move its end, if there were touches all the time. */
  get gain(): number {
    return this.#length - this.#relay - this.remaining
  }

  /** When the newest proof that came was asked for, on the monotonic clock. */
  get provenAt(): number {
    return this.#provenAt
  }

  /** Milliseconds until the session is over by the table above, if nothing more is heard; 0 or less when it is over. */
  get left(): number {
    return this.#proven ? this.remaining : this.#length - (this.#clock().monotonic - this.#newest.monotonic)
  }

  /** Why nothing is left, for people. */
  get verdict(): string {
    const age = Math.round(this.#length - this.left)
    const newest = this.#proven ? 'that is proven to have reached the leader' : 'that was answered'
    return `the newest request ${newest} was sent ${age} ms ago, and ${Math.round(this.#length)} ms are the limit`
  }

  #judge(enough: number): void {
    if (this.#relied && !this.#proven) this.#proven = this.remaining >= this.#length * enough
  }
}
