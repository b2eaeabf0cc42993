/**
 * Computes how long this session is certain to be alive.
 *
 * The leader expires a session from which it received nothing for the session's timeout, and only what reaches the leader
 * counts. A follower answers pings and reads by itself, even while it is cut off. The leader asks its followers every
 * half tick of the server (the relay), and then a follower reports which sessions were active. Between two servers, and
 * between a server and its client, everything arrives in order; but it may be late, in one direction only, and the
 * newest messages may never arrive. So the proof in an answer depends on who can give it:
 *
 *     a touch   any answer. When the answer was received here, the server had received a request of the session; when the
 *               request was *sent*, it had not: a stalled network delivers late, and everything at once
 *     an echo   the leader's answer (to a sync or a write) to a request sent at e: the server has received all that the
 *               leader had sent to it by e, so also a question that was asked at e - relay or later, and has reported to the
 *               leader every touch received here by e - relay. Whether that arrived is not known yet
 *     a proof   the answer to a write that was sent after an echo was received: all that the server had sent before has
 *               arrived at the leader, which knows those touches; and as a quorum agreed, it was the leader. A sync is no
 *               proof: a deposed leader that does not know it yet answers it, while another one expires the session
 *
 * The lease ends one timeout after the sending of the newest touch that is proven in this way, less a margin in
 * which an owner stops its work when it learns of the end. Opening a session is a proof by itself. Attaching to it again
 * through the leader informs the leader at once; the next write proves that it still was the leader.
 *
 * Only a session with a hold pays for proofs. The session is over for this client:
 *
 *     held   proven since   over when
 *     no     -              nothing was answered for the timeout less the margin
 *     yes    not yet        the same: nothing was promised to a caller so far
 *     yes    yes            the lease ends
 *
 * Proven means that enough of the lease was left to get the next proof in time. Without a promise only the monotonic
 * clock counts: a wall clock that is set forward then harms no session, and the server reports it if the machine was
 * suspended for too long.
 */
import type { Clock, Instant } from '../../core/time.ts'

export interface LeaseTerms {
  /** Granted timeout, in milliseconds. */
  readonly timeout: number
  /** Tick of the server, in milliseconds. */
  readonly tick: number
}

export interface AttachInfo {
  /** Time at which the session was requested. */
  readonly at: Instant
  /** Kind of server that granted it; a server without a leader proves nothing. */
  readonly through: 'leader' | 'server'
}

/** Fraction of the relay: answers that are received within it may count as one. */
const GRAIN_FRACTION = 1 / 8
/** Fraction of the lease that must be left when the first hold begins. */
const MIN_FRACTION_TO_START = 1 / 2
/** Fraction of the lease that must be left at a proof; the next one follows in a sixth of the timeout. */
const MIN_FRACTION_TO_CONTINUE = 1 / 4

export class Lease {
  readonly #clock: Clock
  readonly #lengthMs: number
  readonly #relayMs: number
  /** Touches that the server has received. */
  readonly #serverTouches: AnswerHistory
  /**
   * Touches that the server has reported to the leader: for each echo the newest touch, and when the echo was received.
   */
  readonly #relayedTouches: AnswerHistory
  #newest: Instant
  /** Time at which the newest touch was sent that the leader certainly knows. */
  #leaderKnowsUntil: Instant | undefined
  /** Time at which the session was attached to again, through a server that claims to be the leader. */
  #vouchedAt: Instant | undefined
  #provenAt = Number.NEGATIVE_INFINITY
  #isHeld = false
  #proven = false

  constructor({ timeout, tick }: LeaseTerms, attached: AttachInfo, clock: Clock) {
    this.#clock = clock
    this.#lengthMs = timeout - Math.min(tick, timeout / 5)
    this.#relayMs = tick / 2
    const limits = { grain: this.#relayMs * GRAIN_FRACTION, lifetime: this.#lengthMs }
    this.#serverTouches = new AnswerHistory(limits)
    this.#relayedTouches = new AnswerHistory(limits)
    this.#newest = attached.at
    this.#serverTouches.add({ sentAt: attached.at, receivedAt: clock().monotonic })
    if (attached.through === 'leader') this.#leaderKnowsUntil = attached.at
  }

  /** Records that the session was attached to again, on another connection. */
  attachedAgain({ at, through }: AttachInfo): void {
    // Touches of the previous server say nothing about this one.
    this.#serverTouches.clear()
    this.#relayedTouches.clear()
    this.replyReceived(at)
    this.#vouchedAt = through === 'leader' ? at : undefined
  }

  /** Records an answer of any server, by the time at which its request was sent. Called in the order of sending. */
  replyReceived(sentAt: Instant): void {
    if (sentAt.monotonic <= this.#newest.monotonic) return
    this.#newest = sentAt
    this.#serverTouches.add({ sentAt, receivedAt: this.#clock().monotonic })
  }

  /** Records an answer of the leader. */
  echoReceived(sentAt: Instant): void {
    this.replyReceived(sentAt)
    const relayed = this.#serverTouches.takeUntil(sentAt.monotonic - this.#relayMs)
    if (relayed) this.#relayedTouches.add({ sentAt: relayed, receivedAt: this.#clock().monotonic })
  }

  /** Records an answer on which a quorum agreed. */
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

  /** Makes the end of the lease, once it is proven, the end of the session. */
  startRelying(): void {
    this.#isHeld = true
    this.#isEnough(MIN_FRACTION_TO_START)
  }

  stopRelying(): void {
    this.#isHeld = false
    this.#proven = false
  }

  /** Whether the lease is held and was proven since. */
  get isProven(): boolean {
    return this.#proven
  }

  /** Milliseconds that the session certainly has left; 0 or less if none. The clock that is further ahead counts. */
  get remainingMs(): number {
    const known = this.#leaderKnowsUntil
    if (!known) return Number.NEGATIVE_INFINITY
    const now = this.#clock()
    return this.#lengthMs - Math.max(now.monotonic - known.monotonic, now.wall - known.wall)
  }

  /** Milliseconds by which a proof that is requested now could extend the lease, if there were touches all the time. */
  get gainMs(): number {
    return this.#lengthMs - this.#relayMs - this.remainingMs
  }

  /** Time at which the newest received proof was requested, on the monotonic clock. */
  get provenAt(): number {
    return this.#provenAt
  }

  /**
   * Milliseconds until the session is over by the table above, if nothing more is received; 0 or less when it is over.
   */
  get timeLeftMs(): number {
    return this.#proven ? this.remainingMs : this.#lengthMs - (this.#clock().monotonic - this.#newest.monotonic)
  }

  /** Reason for the end of the lease, for people. */
  get expiryReason(): string {
    const age = Math.round(this.#lengthMs - this.timeLeftMs)
    const newest = this.#proven ? 'that is proven to have reached the leader' : 'that was answered'
    return `the newest request ${newest} was sent ${age} ms ago, and ${Math.round(this.#lengthMs)} ms are the limit`
  }

  #isEnough(enough: number): void {
    if (this.#isHeld && !this.#proven) this.#proven = this.remainingMs >= this.#lengthMs * enough
  }
}

export interface ReceivedAnswer {
  readonly sentAt: Instant
  /** Time on the monotonic clock, in milliseconds. */
  readonly receivedAt: number
}

export interface AnswerHistoryOptions {
  /** Interval in milliseconds within which answers count as one: thousands may arrive in a second. */
  readonly grain: number
  /** Age in milliseconds, relative to the newest request, from which entries are dropped. */
  readonly lifetime: number
}

/** Times of requests, in the order in which their answers were received. */
export class AnswerHistory {
  readonly #options: AnswerHistoryOptions
  readonly #answers: ReceivedAnswer[] = []

  constructor(options: AnswerHistoryOptions) {
    this.#options = options
  }

  /** Adds an answer. Called in the order of sending, which is the order of receiving. */
  add(next: ReceivedAnswer): void {
    const { grain, lifetime } = this.#options
    const answers = this.#answers
    const before = answers.at(-2)
    // The newer of two answers that count as one replaces both: a later time of receipt can only make it count later.
    if (before && next.receivedAt - before.receivedAt < grain) answers.pop()
    answers.push(next)
    const oldest = next.sentAt.monotonic - lifetime
    const useful = answers.findIndex(({ sentAt }) => sentAt.monotonic > oldest)
    if (useful > 0) answers.splice(0, useful)
  }

  /** Removes the answers that were received by this time; returns when the newest of their requests was sent. */
  takeUntil(receivedBy: number): Instant | undefined {
    const later = this.#answers.findIndex(({ receivedAt }) => receivedAt > receivedBy)
    if (later === 0) return undefined
    return this.#answers.splice(0, later < 0 ? this.#answers.length : later).at(-1)?.sentAt
  }

  clear(): void {
    this.#answers.length = 0
  }
}
