/**
 * Supervises the lease of the current session: proves it while it is held, and reports its end.
 *
 * Holds belong to the client, not to a session: they continue when another session follows, whose lease is proven by
 * its opening. Six times per timeout a proof is requested, without waiting for the previous one, unless the holder's
 * own writes prove the lease; and at once when the session is attached to again, or a caller waits for a proof.
 */

import { createDeferred, createSharedController, type Deferred, rejectOnAbort } from '../../core/async/abort.ts'
import { InvalidState, NotConnected } from '../../core/errors.ts'
import { type Clock, type Instant, startTimer } from '../../core/time.ts'
import { type AttachInfo, Lease } from './lease.ts'

const PROOFS_PER_TIMEOUT = 6
/**
 * Fraction of the time between two proofs: a proof is skipped if one came within this time and another would gain less.
 */
const MIN_GAIN_FRACTION = 1 / 2
/** Delay for a holder that writes at once after taking a hold: its write may be proof enough. */
const FIRST_PROOF_DELAY_MS = 20
/** Tick of a server with default settings. */
const DEFAULT_TICK_MS = 2_000
/** Shortest session that servers grant by default, in ticks. */
const MIN_TICKS_PER_SESSION = 2

export interface LeaseKeeperActions {
  /** Reports that the session cannot be relied on any longer, with a reason for people. */
  onOver(verdict: string): void
  /** Requests an echo and then a proof (see `lease.ts`), if there is a connection. */
  prove(): void
}

/** A session whose lease is proven. */
export interface ProvenLease {
  readonly session: bigint
  /** End of the lease on the clock of `monotonic()`, in milliseconds; it advances while the lease is held. */
  readonly until: number
}

/** A hold on the lease, until it is released. */
export interface LeaseHold extends Disposable {
  /** Whether the current session is certain to be alive at this instant: {@link proven} would resolve at once. */
  readonly isProven: boolean
  /**
   * Resolves as soon as the current session, or the next one, is certain to be alive: at once where that is known
   * already, otherwise after two round trips.
   *
   * @throws InvalidState when the hold was released
   * @throws NotConnected when the client is closed, or can get no other session
   */
  proven(options?: { readonly signal?: AbortSignal }): Promise<ProvenLease>
  /** Releases the hold. Idempotent. */
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

  /** @param tick the servers' tick in milliseconds; by default the servers' own default, or less where a session is short */
  constructor(options: { readonly clock: Clock; readonly tick?: number | undefined }, actions: LeaseKeeperActions) {
    this.#clock = options.clock
    this.#tick = options.tick
    this.#actions = actions
  }

  /** Records that a session was opened, or attached to again. */
  attached(session: { readonly id: bigint; readonly timeout: number }, attached: AttachInfo): void {
    const { id, timeout } = session
    const again = this.#current?.session === id
    if (this.#current && again && this.#current.timeout === timeout) {
      // The reported lease continues: its holders rely on it until it ends, or is proven again.
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

  /** Proves the lease when requests may be sent. */
  connected(): void {
    // The opening of a session proves it.
    if ((this.#current?.lease.gainMs ?? 0) > this.#betweenProofs * MIN_GAIN_FRACTION) this.#prove()
  }

  /** Records that the session is over. */
  ended(): void {
    this.#current = undefined
    clearTimeout(this.#endTimer)
    clearTimeout(this.#proofTimer)
  }

  /** Rejects waiting callers: no session will follow. */
  close(cause?: Error): void {
    this.ended()
    this.#closed = true
    this.#proof?.reject(noSessionError(cause))
    this.#proof = undefined
  }

  /** Records an answer, by the time at which its request was sent. */
  replyReceived(sentAt: Instant): void {
    this.#current?.lease.replyReceived(sentAt)
  }

  /** Records that this answer came from the leader, or was agreed on by a quorum. */
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

  /** Returns whether the session can be used; reports its end if not. True where there is no session. */
  isAlive(): boolean {
    if (!this.#current || this.#current.lease.timeLeftMs > 0) return true
    this.#actions.onOver(this.#current.lease.expiryReason)
    return false
  }

  /** Instant until which the session is certainly alive, on the monotonic clock; in the past where that is unknown. */
  get aliveUntil(): number {
    return this.#clock().monotonic + (this.#current?.lease.remainingMs ?? Number.NEGATIVE_INFINITY)
  }

  /** Whether there is a hold. */
  get isHeld(): boolean {
    return this.#holds.size > 0
  }

  hold(): LeaseHold {
    const released = createSharedController()
    const release = () => {
      released.abort(new InvalidState('this hold on the lease was released'))
      this.#release(hold)
    }
    const isProven = () => !released.signal.aborted && this.#provenLease !== undefined
    const hold: LeaseHold = {
      get isProven() {
        return isProven()
      },
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

  /** Requests a proof, unless recent answers prove as much, and schedules the next one. */
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
    if (this.#current && this.#holds.size > 0) this.#proofTimer = startTimer(then, ms)
  }

  get #betweenProofs(): number {
    return (this.#current?.timeout ?? 0) / PROOFS_PER_TIMEOUT
  }

  #waitForEnd(): void {
    clearTimeout(this.#endTimer)
    const left = this.#current?.lease.timeLeftMs ?? Number.POSITIVE_INFINITY
    this.#endTimer = startTimer(
      () => {
        if (this.isAlive()) this.#waitForEnd()
      },
      Math.max(1, left),
    )
  }

  /** The lease of the current session, if it is proven and has not ended. */
  get #provenLease(): CurrentLease | undefined {
    const kept = this.#current
    return kept?.lease.isProven && kept.lease.remainingMs > 0 ? kept : undefined
  }

  #waitForProof(): Promise<ProvenLease> {
    const kept = this.#provenLease
    if (kept) return Promise.resolve({ session: kept.session, until: this.aliveUntil })
    if (this.#closed) return Promise.reject(noSessionError())
    if (!this.#proof) {
      this.#proof = createDeferred()
      // The caller may have stopped waiting.
      this.#proof.promise.catch(() => undefined)
      this.#prove()
    }
    return this.#proof.promise
  }

  #resolveProof(): void {
    if (!this.#current) return
    // A proven lease may end earlier than the timer expects.
    this.#waitForEnd()
    this.#proof?.resolve({ session: this.#current.session, until: this.aliveUntil })
    this.#proof = undefined
  }
}

function noSessionError(cause?: Error): NotConnected {
  return new NotConnected('there is no session and none will follow', { cause, retryable: false })
}
