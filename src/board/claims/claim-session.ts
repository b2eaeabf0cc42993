/**
 * The session in which this board object claims: whether claims can be granted now, and the watch over its lease. The lease is watched while
 * claims are requested or held, and for a short time afterwards, because the next claim may follow soon.
 */
import { monotonic, startTimer } from '../../core/time.ts'
import type { Backend, BoardSessionEvent, LeaseWatch } from '../contract/index.ts'
import type { JobEntry, QueuePlace } from '../model/entry.ts'
import type { LiveView } from '../view/live-view.ts'
import type { Incarnation } from './incarnation.ts'

/** The time for which the lease is watched after the last claim has ended. */
const LEASE_WATCH_LINGER_MS = 2_000

export interface ClaimSessionOptions {
  readonly backend: Pick<Backend, 'session'>
  readonly view: Pick<LiveView, 'isCurrent'>
  readonly incarnation: Pick<Incarnation, 'sessionLost' | 'stopWatching'>
}

/** The session in which this board object claims. */
export class ClaimSession {
  readonly #options: ClaimSessionOptions
  #session: BoardSessionEvent | undefined
  /** Whether the board is paused; undefined until it is known. */
  #paused: boolean | undefined
  /** The claims that are requested or held, by what identifies them. */
  readonly #users = new Set<JobEntry | QueuePlace>()
  #watch: LeaseWatch | undefined
  /** The time on the monotonic clock since which no claim is requested or held. */
  #unusedSince = 0
  /** The timer that ends the watch; claims that come meanwhile do not stop it. */
  #timer: NodeJS.Timeout | undefined

  constructor(options: ClaimSessionOptions) {
    this.#options = options
  }

  sessionChanged(event: BoardSessionEvent): void {
    this.#session = event
    if (event.state === 'lost') this.#options.incarnation.sessionLost()
  }

  pausedChanged(paused: boolean): void {
    this.#paused = paused
  }

  /** Whether the board can claim jobs now. */
  get canClaim(): boolean {
    return this.#session?.state === 'connected' && this.#options.view.isCurrent && this.#paused === false
  }

  /** Returns whether this session, which has granted a claim, is over by all reports so far. */
  isOver(session: string): boolean {
    const now = this.#session
    return now?.session !== session || now.state === 'lost' || now.state === 'closed'
  }

  /** Watches the lease until {@link end} was called for all these requests and claims. */
  begin(users: readonly (JobEntry | QueuePlace)[]): void {
    for (const user of users) this.#users.add(user)
    this.#watch ??= this.#options.backend.session.watchLease()
  }

  /** Stops watching the lease some time after the last claim has ended. */
  end(users: readonly (JobEntry | QueuePlace)[]): void {
    for (const user of users) this.#users.delete(user)
    if (this.#users.size > 0) return
    this.#unusedSince = monotonic()
    this.#timer ??= this.#startTimer(LEASE_WATCH_LINGER_MS)
  }

  #startTimer(ms: number): NodeJS.Timeout {
    return startTimer(() => this.#endWatchIfUnused(), ms).unref()
  }

  #endWatchIfUnused(): void {
    this.#timer = undefined
    if (this.#users.size > 0) return
    const leftMs = Math.ceil(this.#unusedSince + LEASE_WATCH_LINGER_MS - monotonic())
    if (leftMs > 0) {
      this.#timer = this.#startTimer(leftMs)
      return
    }
    this.#watch?.[Symbol.dispose]()
    this.#watch = undefined
    this.#options.incarnation.stopWatching()
  }

  /** Resolves when the session is proven to be alive; undefined if it is, and while the lease is not watched. */
  whenAlive(): Promise<unknown> | undefined {
    return this.#watch?.whenAlive()
  }
}
