/**
 * Decides when the board is viewed: the backend reports changes while anything of this process needs them, and for 10 s to 10 min after that.
 * A process that only posts subscribes to nothing, so it costs the servers nothing while others work.
 *
 *     closed ──first hold──→ subscribing ──→ subscribed ──last hold disposed──→ lingering ──time is over──→ closed
 *                              ↑      │          ↑                                 │
 *                              └─retry┘          └────────────── hold ─────────────┘
 *
 * Because of the lingering, a sequence of calls such as one `find` after the other lists the board once. A view lingers the longer,
 * the longer it took to read the board: so a process that needs it again and again spends little of its time on that. Only a caller that begins
 * to poll closes it at once.
 */
import { rejectOnAbort } from '../../core/async/abort.ts'
import type { Stoppable } from '../../core/async/abort-flag.ts'
import { RecurringError } from '../../core/async/recurring-error.ts'
import { asError, NotConnected } from '../../core/errors.ts'
import { backoffDelay, monotonic, startTimer } from '../../core/time.ts'
import type { BackendChanges } from '../contract/index.ts'

/** The time for which the view stays open after its last use: `perReading` times the time that it took to read the board, within limits. */
const LINGER_MS = { least: 10_000, most: 600_000, perReading: 50 } as const
/** The pauses before another attempt: while the board is not connected, and after any other error while the view is held. */
const RETRY_BACK_OFF_MS = { first: 50, max: 2_000, jitter: 'full' } as const
const ERROR_BACK_OFF_MS = { first: 1_000, max: 30_000, jitter: 'full' } as const

export interface SubscriptionOptions {
  readonly changes: Pick<BackendChanges, 'subscribe' | 'unsubscribe'>
  /** Called before the backend reports the first change. */
  readonly onOpen: () => void
  /** Called when the view is closed, before the backend is asked to stop. */
  readonly onClose: () => void
  /** Called when the backend reports changes from now on. */
  readonly onSubscribed: () => void
  /** Called when a subscription fails for another reason than a missing connection; once for each message in a row. */
  readonly onError: (error: Error) => void
  /** The signal that ends the background work. */
  readonly signal: AbortSignal
}

/** A hold of the view, which keeps it open until it is disposed. There is one for each wait for a job, so it has no function of its own. */
class Hold implements Disposable {
  #onDisposed: (() => void) | undefined

  constructor(onDisposed: () => void) {
    this.#onDisposed = onDisposed
  }

  [Symbol.dispose](): void {
    const onDisposed = this.#onDisposed
    this.#onDisposed = undefined
    onDisposed?.()
  }
}

export class Subscription {
  readonly #options: SubscriptionOptions
  readonly #onDisposed = () => {
    this.#holds -= 1
    this.#closeUnlessHeld()
  }
  #isOpen = false
  #isSubscribed = false
  #holds = 0
  /** Whether {@link touch} was called since the linger timer was set. */
  #isTouched = false
  #subscribedAt = 0
  /** Whether the board was read completely since the subscription. */
  #isRead = false
  #lingerMs: number = LINGER_MS.least
  /** The newest attempt to subscribe: under way, or successful. */
  #attempt: Promise<void> | undefined
  #failures = 0
  readonly #recurring = new RecurringError()
  #retryTimer: NodeJS.Timeout | undefined
  #lingerTimer: NodeJS.Timeout | undefined
  /** The end of the former subscription; undefined once it is over. */
  #ending: Promise<void> | undefined

  constructor(options: SubscriptionOptions) {
    this.#options = options
  }

  /** Whether changes are reported, or will be once the board is connected. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Whether the backend reports changes. */
  get isSubscribed(): boolean {
    return this.#isSubscribed
  }

  /** The number of holds that are not disposed. */
  get holds(): number {
    return this.#holds
  }

  /** Keeps the view open until the result is disposed; opens it if it is closed. */
  hold(): Disposable {
    this.#holds += 1
    clearTimeout(this.#lingerTimer)
    // Callers that need the outcome await `whenSubscribed`.
    if (this.#attempt === undefined) this.#subscribe().catch(() => undefined)
    return new Hold(this.#onDisposed)
  }

  /** Keeps the view open for some time; opens it if it is closed. */
  touch(): void {
    this.#isTouched = true
    if (!this.#isOpen) this.hold()[Symbol.dispose]()
  }

  /**
   * Resolves when the backend reports changes.
   *
   * @throws NotConnected, AccessDenied and others: another attempt follows by itself while the view is held
   */
  async whenSubscribed({ signal }: { readonly signal?: Stoppable | undefined } = {}): Promise<void> {
    const attempt = this.#subscribe()
    await (signal ? rejectOnAbort(attempt, signal) : attempt)
  }

  /** Notes that the board was read completely for the first time since the subscription. */
  noteRead(): void {
    const tookMs = monotonic() - this.#subscribedAt
    this.#isRead = true
    this.#lingerMs = Math.min(Math.max(tookMs * LINGER_MS.perReading, LINGER_MS.least), LINGER_MS.most)
  }

  /** Closes the view now if nothing holds it, without lingering; calls that were to find it open then open it again. */
  closeIfUnused(): void {
    if (this.#holds > 0 || !this.#isOpen) return
    clearTimeout(this.#lingerTimer)
    this.#close()
  }

  /** Ends the background work, because the board is closed. */
  stop(): void {
    clearTimeout(this.#lingerTimer)
    clearTimeout(this.#retryTimer)
  }

  #subscribe(): Promise<void> {
    const { changes, onOpen } = this.#options
    if (this.#attempt !== undefined) return this.#attempt
    clearTimeout(this.#retryTimer)
    if (!this.#isOpen) {
      this.#isOpen = true
      onOpen()
    }
    // Sent in this call unless an earlier subscription is still being ended: a post that is sent next comes after it, and is reported.
    const attempt = this.#ending === undefined ? changes.subscribe() : this.#ending.then(() => changes.subscribe())
    this.#attempt = attempt
    attempt.then(
      () => this.#onSucceeded(attempt),
      (error: unknown) => this.#onFailed(attempt, error),
    )
    return attempt
  }

  #onSucceeded(attempt: Promise<void>): void {
    if (this.#attempt !== attempt) return
    this.#failures = 0
    this.#recurring.clear()
    this.#isSubscribed = true
    this.#subscribedAt = monotonic()
    this.#isRead = false
    this.#options.onSubscribed()
  }

  #onFailed(attempt: Promise<void>, thrown: unknown): void {
    const { signal, onClose, onError } = this.#options
    if (this.#attempt !== attempt) return
    this.#attempt = undefined
    if (signal.aborted) return
    const error = asError(thrown)
    const isAway = error instanceof NotConnected
    if (!isAway && this.#recurring.isNew(error)) onError(error)
    if (!isAway && this.#holds === 0) {
      clearTimeout(this.#lingerTimer)
      this.#isOpen = false
      onClose()
      return
    }
    this.#failures += 1
    const retry = () => void this.#subscribe().catch(() => undefined)
    const pause = backoffDelay(this.#failures, isAway ? RETRY_BACK_OFF_MS : ERROR_BACK_OFF_MS)
    this.#retryTimer = startTimer(retry, pause).unref()
  }

  #closeUnlessHeld(): void {
    const { signal } = this.#options
    clearTimeout(this.#lingerTimer)
    if (this.#holds > 0 || !this.#isOpen || signal.aborted) return
    this.#isTouched = false
    const lingered = () => (this.#isTouched || this.#isReading ? this.#closeUnlessHeld() : this.#close())
    this.#lingerTimer = startTimer(lingered, this.#lingerMs).unref()
  }

  /** Whether the board is still being read: a view that is closed before it was read completely is read from the beginning next time. */
  get #isReading(): boolean {
    return this.#isSubscribed && !this.#isRead && monotonic() - this.#subscribedAt < LINGER_MS.most
  }

  #close(): void {
    const { changes, onClose } = this.#options
    const attempt = this.#attempt
    clearTimeout(this.#retryTimer)
    this.#attempt = undefined
    this.#isOpen = this.#isSubscribed = false
    onClose()
    // An attempt that is under way has to end before its subscription can be ended.
    const ending = Promise.allSettled([attempt]).then(() => changes.unsubscribe())
    const isOver = () => {
      if (this.#ending === over) this.#ending = undefined
    }
    const over = ending.then(isOver, isOver)
    this.#ending = over
  }
}
