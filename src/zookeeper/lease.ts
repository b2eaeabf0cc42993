/**
 * How long this session is certain to be alive.
 *
 * The leader forgets a session of which it heard nothing for the session's timeout, and only what it heard counts. A
 * follower answers pings and reads by itself, also while it is cut off, and passes on that it heard of a session only
 * every half tick of the server (the relay). So pongs and reads prove nothing. Nor does a sync: a leader that was deposed
 * and does not know yet answers it, while another one lets the session end. The answer to a write, also to one that was
 * refused, is given when most servers have agreed to it: to one sent at t it proves that the leader knows of everything
 * sent at or before t - relay. Opening a session is such a write. Attaching to it again is not, but the leader, if it
 * still is the leader, knows of that at once. The lease ends one timeout after the newest of these that was answered was
 * sent, less a margin for what an owner still has to do when it learns of the end.
 *
 * Only a session that somebody relies on pays for such proofs. When the session is over for this client:
 *
 *     relied on   proven since   over when
 *     no          -              nothing was answered for the timeout less the margin
 *     yes         not yet        the same: nothing was promised to anybody so far
 *     yes         yes            the lease ends
 *
 * Proven means that some of the lease was left when the proof came, or when somebody began to rely on it.
 */
import type { Clock, Instant } from './clock.ts'

export interface LeaseTerms {
  /** What the server granted, in milliseconds. */
  readonly timeout: number
  /** The server's tick, in milliseconds. */
  readonly tick: number
}

/** Answers closer together than this part of the relay may count as one: thousands come in every second. */
const GRAIN = 1 / 8

export class Lease {
  readonly #clock: Clock
  readonly #length: number
  readonly #relay: number
  /** When requests were sent that were answered and that a proof to come may reach; oldest first. */
  readonly #answered: Instant[]
  #newest: Instant
  /** The leader certainly knows of something that was sent then. */
  #known: Instant | undefined
  /** The same, if the one who said so still is the leader. */
  #vouched: Instant | undefined
  #relied = false
  #proven = false

  /**
   * @param attached.at when the session was asked for
   * @param attached.through who granted it; a server without a leader proves nothing
   */
  constructor(
    terms: LeaseTerms,
    attached: { readonly at: Instant; readonly through: 'leader' | 'server' },
    clock: Clock,
  ) {
    const { timeout, tick } = terms
    this.#clock = clock
    this.#length = timeout - Math.min(tick, timeout / 5)
    this.#relay = tick / 2
    this.#newest = attached.at
    this.#answered = [attached.at]
    if (attached.through === 'leader') this.#known = attached.at
  }

  /** The session was attached to again, on another connection. */
  attachedAgain(attached: { readonly at: Instant; readonly through: 'leader' | 'server' }): void {
    this.answered(attached.at)
    this.#vouched = attached.through === 'leader' ? attached.at : undefined
  }

  /** An answer came to a request that was sent then, from whomever. Called in the order of sending. */
  answered(sentAt: Instant): void {
    if (sentAt.monotonic <= this.#newest.monotonic) return
    this.#newest = sentAt
    const { length } = this.#answered
    const before = this.#answered[length - 2]
    const crowded = before !== undefined && sentAt.monotonic - before.monotonic < this.#relay * GRAIN
    this.#answered[crowded ? length - 1 : length] = sentAt
    // What is this old gives no lease that is not over.
    this.#dropUntil(sentAt.monotonic - this.#length)
  }

  /** An answer came that went through the leader, to a request that was sent then. */
  proven(sentAt: Instant): void {
    this.answered(sentAt)
    for (const reached of [this.#dropUntil(sentAt.monotonic - this.#relay), this.#vouched]) {
      if (reached && reached.monotonic > (this.#known?.monotonic ?? Number.NEGATIVE_INFINITY)) this.#known = reached
    }
    this.#vouched = undefined
    this.#judge()
  }

  /** From now on its end ends the session, as soon as it is proven. */
  rely(): void {
    this.#relied = true
    this.#judge()
  }

  release(): void {
    this.#relied = false
    this.#proven = false
  }

  /** Whether it is relied on and was proven since. */
  get isProven(): boolean {
    return this.#proven
  }

  /** Milliseconds that the session certainly has left; 0 or less when that is none. */
  get remaining(): number {
    return this.#length - this.#since(this.#known)
  }

  /** Milliseconds until the session is over by the table above, if nothing more is heard; 0 or less when it is over. */
  get left(): number {
    return this.#proven ? this.remaining : this.#length - this.#since(this.#newest)
  }

  #judge(): void {
    if (this.#relied && !this.#proven) this.#proven = this.remaining > 0
  }

  /** By the clock that is further ahead. */
  #since(then: Instant | undefined): number {
    if (!then) return Number.POSITIVE_INFINITY
    const now = this.#clock()
    return Math.max(now.monotonic - then.monotonic, now.wall - then.wall)
  }

  #dropUntil(monotonic: number): Instant | undefined {
    let dropped = 0
    while ((this.#answered[dropped]?.monotonic ?? Number.POSITIVE_INFINITY) <= monotonic) dropped++
    return this.#answered.splice(0, dropped).at(-1)
  }
}
