/**
 * Watches over the lease of whatever session there is: proves it while somebody relies on it, and tells when it is over.
 *
 * Reliance is the client's, not a session's: who relies on it goes on doing so when another session follows, whose lease
 * its opening has proven. Six times in a timeout a proof is asked for, none waiting for another, unless what the holder
 * itself writes proves the lease as well; and at once when the session is attached to again, or somebody waits for it.
 */

import { createDeferred, createSharedController, type Deferred, rejectOnAbort } from '../../core/async/abort.ts'
import type { Clock, Instant } from '../../core/clock.ts'
import { InvalidState, NotConnected } from '../../core/errors.ts'
import { MAX_TIMER_MS } from '../../core/time.ts'
import { type AttachInfo, Lease } from './lease.ts'

const PROOFS_PER_TIMEOUT = 6
/** Of the time between two proofs: where one came within this, and another would gain less, it is not asked for. */
const MIN_GAIN_FRACTION = 1 / 2
/** For who begins to rely on a lease and writes at once: that may be proof enough. */
const FIRST_PROOF_DELAY_MS = 20
/** A tick of a server that was left at its default. */
const DEFAULT_TICK_MS = 2_000
/** A server grants no session shorter than this, unless its administrator insists. */
const MIN_TICKS_PER_SESSION = 2

export interface LeaseKeeperActions {
  /** The session cannot be relied on any more; why, for people. */
  onOver(verdict: string): void
  /** Asks for an echo and then for a proof (see `lease.ts`), if there is a connection. */
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
   * already, else after two round trips.
   *
   * @throws InvalidState when the hold was released
   * @throws NotConnected when the client is closed, or has lost its session for good
   */
  proven(options?: { readonly signal?: AbortSignal }): Promise<ProvenLease>
  /** Idempotent. */
  release(): void
}

interface CurrentLease {
  readonly session: bigint
  readonly timeout: number
  readonly lease: Lease
}

export class LeaseKeeper {
  readonly #clock: Clock
  readonly #tick: number | undefined
  readonly #actions: LeaseKeeperActions
  readonly #holds = new Set<LeaseHold>()
  #current: CurrentLease | undefined
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
  attached(session: { readonly id: bigint; readonly timeout: number }, attached: AttachInfo): void {
    const { id, timeout } = session
    const again = this.#current?.session === id
    if (this.#current && again && this.#current.timeout === timeout) {
      // The lease that was told of before goes on: whoever relies on it does so until it ends, or is proven anew.
      this.#current.lease.attachedAgain(attached)
      this.#waitForEnd()
      return
    }
    const tick = this.#tick ?? Math.min(DEFAULT_TICK_MS, timeout / MIN_TICKS_PER_SESSION)
    const lease = new Lease({ timeout, tick }, again ? { ...attached, through: 'server' } : attached, this.#clock)
    this.#current = { session: id, timeout, lease }
    if (this.#holds.size > 0) this.#startRelying(lease)
    else this.#waitForEnd()
  }

  /** Requests may be sent. */
  connected(): void {
    // A session that was just opened is proven by that.
    if ((this.#current?.lease.gainMs ?? 0) > this.#betweenProofs * MIN_GAIN_FRACTION) this.#prove()
  }

  /** The session is over. */
  ended(): void {
    this.#current = undefined
    clearTimeout(this.#endTimer)
    clearTimeout(this.#proofTimer)
  }

  /** There will be no further session. */
  close(cause?: Error): void {
    this.ended()
    this.#closed = true
    this.#proof?.reject(noSessionError(cause))
    this.#proof = undefined
  }

  /** An answer came to a request that was sent then. */
  replyReceived(sentAt: Instant): void {
    this.#current?.lease.replyReceived(sentAt)
  }

  /** The same answer came from the leader, or was agreed on by most servers. */
  quorumAcknowledged(what: 'echo' | 'proof', sentAt: Instant): void {
    const lease = this.#current?.lease
    if (!lease) return
    if (what === 'echo') {
      lease.echoReceived(sentAt)
      return
    }
    const already = lease.isProven
    lease.proofReceived(sentAt)
    if (lease.isProven && !already) this.#resolveProof()
  }

  /** Whether the session can be used; tells that it is over if it cannot any more. True where there is none. */
  isAlive(): boolean {
    if (!this.#current || this.#current.lease.timeLeftMs > 0) return true
    this.#actions.onOver(this.#current.lease.expiryReason)
    return false
  }

  /** Until when the session is certain to be alive, on the monotonic clock; in the past where that is not known. */
  get aliveUntil(): number {
    return this.#clock().monotonic + (this.#current?.lease.remainingMs ?? Number.NEGATIVE_INFINITY)
  }

  /** Whether anybody relies on it. */
  get isHeld(): boolean {
    return this.#holds.size > 0
  }

  hold(): LeaseHold {
    const released = createSharedController()
    const release = () => {
      released.abort(new InvalidState('this hold on the lease was released'))
      this.#release(hold)
    }
    const hold: LeaseHold = {
      proven: async (options = {}) => {
        released.signal.throwIfAborted()
        return rejectOnAbort(rejectOnAbort(this.#waitForProof(), options.signal), released.signal)
      },
      release,
      [Symbol.dispose]: release,
    }
    this.#holds.add(hold)
    if (this.#holds.size === 1 && this.#current) this.#startRelying(this.#current.lease)
    return hold
  }

  #release(hold: LeaseHold): void {
    if (!this.#holds.delete(hold) || this.#holds.size > 0) return
    clearTimeout(this.#proofTimer)
    this.#proof = undefined
    this.#current?.lease.stopRelying()
    if (this.#current) this.#waitForEnd()
  }

  #startRelying(lease: Lease): void {
    lease.startRelying()
    if (lease.isProven) this.#resolveProof()
    this.#waitForEnd()
    this.#startTimer(FIRST_PROOF_DELAY_MS, () => (lease.isProven ? this.#scheduleProof() : this.#prove()))
  }

  /** Asks for a proof, unless others came of late that say as much, and goes on asking. */
  #prove(): void {
    const lease = this.#current?.lease
    this.#scheduleProof()
    if (!lease || this.#holds.size === 0) return
    const least = this.#betweenProofs * MIN_GAIN_FRACTION
    const late = this.#clock().monotonic - lease.provenAt > least
    if (!lease.isProven || late || lease.gainMs > least) this.#actions.prove()
  }

  #scheduleProof(): void {
    this.#startTimer(this.#betweenProofs, () => this.#prove())
  }

  #startTimer(ms: number, then: () => void): void {
    clearTimeout(this.#proofTimer)
    if (this.#current && this.#holds.size > 0) this.#proofTimer = setTimeout(then, ms)
  }

  get #betweenProofs(): number {
    return (this.#current?.timeout ?? 0) / PROOFS_PER_TIMEOUT
  }

  #waitForEnd(): void {
    clearTimeout(this.#endTimer)
    const left = this.#current?.lease.timeLeftMs ?? Number.POSITIVE_INFINITY
    this.#endTimer = setTimeout(
      () => {
        if (this.isAlive()) this.#waitForEnd()
      },
      Math.min(MAX_TIMER_MS, Math.max(1, left)),
    )
  }

  #waitForProof(): Promise<ProvenLease> {
    const kept = this.#current
    if (kept?.lease.isProven && kept.lease.remainingMs > 0) {
      return Promise.resolve({ session: kept.session, until: this.aliveUntil })
    }
    if (this.#closed) return Promise.reject(noSessionError())
    if (!this.#proof) {
      this.#proof = createDeferred()
      // Whoever waited may have given up before it comes.
      this.#proof.promise.catch(() => undefined)
      this.#prove()
    }
    return this.#proof.promise
  }

  #resolveProof(): void {
    if (!this.#current) return
    // The end of a proven lease may come earlier than what was waited for so far.
    this.#waitForEnd()
    this.#proof?.resolve({ session: this.#current.session, until: this.aliveUntil })
    this.#proof = undefined
  }
}

function noSessionError(cause?: Error): NotConnected {
  return new NotConnected('there is no session and there will be none', { cause, retryable: false })
}
