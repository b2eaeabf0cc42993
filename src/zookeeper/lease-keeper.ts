/**
 * Watches over the lease of whatever session there is: proves it while somebody relies on it, and tells when it is over.
 *
 * Reliance is the client's, not a session's: who relies on it goes on doing so when another session follows, whose lease
 * its opening has proven. Each proof is an empty transaction, six in a timeout and none waiting for another, and one at
 * once when the session is attached to again.
 */
import { type Deferred, deferred, unlessAborted } from '../core/abort.ts'
import { NotConnected } from '../core/errors.ts'
import type { Clock, Instant } from './clock.ts'
import { Lease } from './lease.ts'

const PROOFS_PER_TIMEOUT = 6
/** A tick of a server that was left at its default. */
const USUAL_TICK = 2_000
/** A server grants no session shorter than this, unless its administrator insists. */
const TICKS_PER_SESSION = 2
/** What a timer of Node can wait. */
const LONGEST_TIMER = 2 ** 31 - 1

export interface LeaseKeeperActions {
  /** The session cannot be relied on any more. */
  over(): void
  /** Asks the ensemble to agree to something, if there is a connection. */
  prove(): void
}

/** A session whose lease is proven. */
export interface ProvenLease {
  readonly session: bigint
  /** On the clock of `monotonic()`, in milliseconds; it moves on as long as it is relied on. */
  readonly until: number
}

/** Somebody relies on the lease, until it is released. */
export interface LeaseHold extends Disposable {
  /**
   * Resolves as soon as the session there is, or the next one, is certain to be alive. At once where that is known
   * already, else after one round trip.
   *
   * @throws NotConnected when the client is closed, or has lost its session for good
   */
  proven(options?: { readonly signal?: AbortSignal }): Promise<ProvenLease>
  /** Idempotent. */
  release(): void
}

interface Kept {
  readonly session: bigint
  readonly timeout: number
  readonly lease: Lease
}

export class LeaseKeeper {
  readonly #clock: Clock
  readonly #tick: number | undefined
  readonly #actions: LeaseKeeperActions
  readonly #holds = new Set<LeaseHold>()
  #kept: Kept | undefined
  #proof: Deferred<ProvenLease> | undefined
  #closed = false
  #endTimer: NodeJS.Timeout | undefined
  #proofTimer: NodeJS.Timeout | undefined

  /** @param tick the server's, in milliseconds; by default what servers ship with, or less where a session is short */
  constructor(options: { readonly clock: Clock; readonly tick?: number | undefined }, actions: LeaseKeeperActions) {
    this.#clock = options.clock
    this.#tick = options.tick
    this.#actions = actions
  }

  /** A session was opened, or attached to again. */
  attached(
    session: { readonly id: bigint; readonly timeout: number },
    attached: { readonly at: Instant; readonly through: 'leader' | 'server' },
  ): void {
    const { id, timeout } = session
    const again = this.#kept?.session === id
    if (this.#kept && again && this.#kept.timeout === timeout) {
      // The lease that was told of before goes on: whoever relies on it does so until it ends, or is proven anew.
      this.#kept.lease.attachedAgain(attached)
      this.#waitForEnd()
      return
    }
    const tick = this.#tick ?? Math.min(USUAL_TICK, timeout / TICKS_PER_SESSION)
    const lease = new Lease({ timeout, tick }, again ? { ...attached, through: 'server' } : attached, this.#clock)
    this.#kept = { session: id, timeout, lease }
    if (this.#holds.size > 0) this.#rely(lease)
    else this.#waitForEnd()
  }

  /** Requests may be sent. */
  connected(): void {
    clearTimeout(this.#proofTimer)
    this.#proveOn()
  }

  /** The session is over. */
  ended(): void {
    this.#kept = undefined
    clearTimeout(this.#endTimer)
    clearTimeout(this.#proofTimer)
  }

  /** There will be no further session. */
  close(cause?: Error): void {
    this.ended()
    this.#closed = true
    this.#proof?.reject(new NotConnected('there is no session and there will be none', { cause }))
    this.#proof = undefined
  }

  /** An answer came to a request that was sent then. */
  answered(sentAt: Instant): void {
    this.#kept?.lease.answered(sentAt)
  }

  /** The same, of an answer that went through the leader. */
  proven(sentAt: Instant): void {
    const lease = this.#kept?.lease
    if (!lease) return
    const already = lease.isProven
    lease.proven(sentAt)
    if (lease.isProven && !already) this.#tellProof()
  }

  /** Whether the session can be used; tells that it is over if it cannot any more. True where there is none. */
  alive(): boolean {
    if (!this.#kept || this.#kept.lease.left > 0) return true
    this.#actions.over()
    return false
  }

  /** Until when the session is certain to be alive, on the monotonic clock; in the past where that is not known. */
  get until(): number {
    return this.#clock().monotonic + (this.#kept?.lease.remaining ?? Number.NEGATIVE_INFINITY)
  }

  hold(): LeaseHold {
    const hold: LeaseHold = {
      proven: (options = {}) => unlessAborted(this.#whenProven(), options.signal),
      release: () => this.#release(hold),
      [Symbol.dispose]: () => this.#release(hold),
    }
    this.#holds.add(hold)
    if (this.#holds.size === 1 && this.#kept) this.#rely(this.#kept.lease)
    return hold
  }

  #release(hold: LeaseHold): void {
    if (!this.#holds.delete(hold) || this.#holds.size > 0) return
    clearTimeout(this.#proofTimer)
    this.#kept?.lease.release()
    if (this.#kept) this.#waitForEnd()
  }

  #rely(lease: Lease): void {
    lease.rely()
    if (lease.isProven) this.#tellProof()
    this.#waitForEnd()
    clearTimeout(this.#proofTimer)
    this.#proveOn()
  }

  #proveOn(): void {
    if (!this.#kept || this.#holds.size === 0) return
    this.#proofTimer = setTimeout(() => this.#proveOn(), this.#kept.timeout / PROOFS_PER_TIMEOUT)
    this.#actions.prove()
  }

  #waitForEnd(): void {
    clearTimeout(this.#endTimer)
    const left = this.#kept?.lease.left ?? Number.POSITIVE_INFINITY
    this.#endTimer = setTimeout(
      () => {
        if (this.alive()) this.#waitForEnd()
      },
      Math.min(LONGEST_TIMER, Math.max(1, left)),
    )
  }

  #whenProven(): Promise<ProvenLease> {
    const kept = this.#kept
    if (kept?.lease.isProven && kept.lease.remaining > 0) {
      return Promise.resolve({ session: kept.session, until: this.until })
    }
    if (this.#closed) return Promise.reject(new NotConnected('there is no session and there will be none'))
    this.#proof ??= deferred()
    // Whoever waited may have given up before it comes.
    this.#proof.promise.catch(() => undefined)
    return this.#proof.promise
  }

  #tellProof(): void {
    if (!this.#kept) return
    // The end of a proven lease may come earlier than what was waited for so far.
    this.#waitForEnd()
    this.#proof?.resolve({ session: this.#kept.session, until: this.until })
    this.#proof = undefined
  }
}
