/** A line: the calls that wait for tokens of one key, in their order. */
import { createDeferred, type Deferred } from '../../core/async/abort.ts'
import type { AlarmClock } from '../../core/time.ts'

/** Differences below this are rounding errors of a time since 1970. */
const ROUNDING_MS = 0.001

/** A call in a line. */
export interface WaitingCall {
  /** The number of tokens that it takes. */
  readonly cost: number
  readonly served: Deferred<void>
  /** Set if its timeout is over while a request is under way: the reason with which it ends after the answer, if it is not served. */
  expired?: { readonly reason: unknown }
}

export class TokenLine {
  readonly key: string
  readonly #clock: AlarmClock
  readonly #calls = new Set<WaitingCall>()
  /** Whether a request is under way or about to be sent. */
  #isAsking = true
  /** Whether the limits or the first call have changed since the last request began. */
  #isStale = false
  #wake: (() => void) | undefined

  constructor(key: string, clock: AlarmClock) {
    this.key = key
    this.#clock = clock
  }

  /** The number of calls that wait. */
  get size(): number {
    return this.#calls.size
  }

  /** Adds a call to the end of the line. */
  add(cost: number): WaitingCall {
    const call: WaitingCall = { cost, served: createDeferred() }
    // After an abort, the caller no longer waits for it: a rejection would be unhandled.
    call.served.promise.catch(() => undefined)
    this.#calls.add(call)
    return call
  }

  /** Returns up to `count` calls from the head of the line. */
  first(count: number): WaitingCall[] {
    const first: WaitingCall[] = []
    for (const call of this.#calls) if (first.push(call) === count) break
    return first
  }

  /** Removes a call that was served or aborted. If it was the first, the line asks again: the next call may need fewer tokens. */
  remove(call: WaitingCall): void {
    const [first] = this.#calls
    if (this.#calls.delete(call) && call === first) this.wake()
  }

  /** Ends the wait of a call whose timeout is over: now, or after the request under way, which may have taken its tokens. */
  expire(call: WaitingCall, reason: unknown): void {
    if (this.#isAsking) call.expired = { reason }
    else call.served.reject(reason)
  }

  /** Notes that a request begins. */
  beginAsking(): void {
    this.#isAsking = true
    this.#isStale = false
  }

  /** Resolves calls whose tokens were taken, or that need none. */
  serve(calls: Iterable<WaitingCall>): void {
    for (const call of calls) {
      this.#calls.delete(call)
      call.served.resolve()
    }
  }

  /** Notes that no request is under way any more, and rejects the calls that have expired meanwhile. */
  endAsking(): void {
    this.#isAsking = false
    for (const call of this.#calls) if (call.expired) call.served.reject(call.expired.reason)
  }

  rejectAll(error: Error): void {
    for (const call of this.#calls) call.served.reject(error)
    this.#calls.clear()
  }

  /** Makes the line ask again: at once, or after the request under way. */
  wake(): void {
    this.#isStale = true
    this.#wake?.()
  }

  /** Resolves when the time is over, or earlier if the line has to ask again. An infinite time is never over. */
  async wait(ms: number): Promise<void> {
    if (this.#isStale || this.#calls.size === 0) return
    const woken = createDeferred()
    this.#wake = woken.resolve
    const ring = { kind: 'limit', ring: woken.resolve } as const
    using _alarm = Number.isFinite(ms) ? this.#clock.alarm(Math.max(1, Math.ceil(ms - ROUNDING_MS)), ring) : undefined
    await woken.promise
    this.#wake = undefined
  }
}
