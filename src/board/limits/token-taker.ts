/**
 * Takes tokens of limits for calls outside of claims: a call resolves when its tokens were taken.
 *
 * The calls of a key wait in one line, in their order. One request at a time takes tokens for the first calls of the line. The answer says
 * for how many, and when the next tokens are free. Then one alarm is set for the whole line: a thousand waiting calls cost no more than
 * one.
 *
 *     asking ──all of these calls were served──→ asking, or the end of the line
 *       │  ↑
 *       │  └──the alarm rings, the limits change, or the first call is aborted──┐
 *       └──the next tokens are not free──→ waiting ────────────────────────────┘
 *
 * A request whose answer is lost may have taken tokens. They are taken again: so fewer calls are served in that time, and never more.
 */
import { followSignals, onAbort, rejectOnAbort } from '../../core/async/abort.ts'
import type { Stoppable } from '../../core/async/abort-flag.ts'
import { retry } from '../../core/async/retry.ts'
import { asError, InvalidState, JobboardError, LimitsChanged, OutcomeUnknown } from '../../core/errors.ts'
import { systemAlarmClock } from '../../core/time.ts'
import type { Backend } from '../contract/index.ts'
import { type LimitRule, MAX_CALLS_PER_REQUEST } from '../model/limits.ts'
import type { LimitBook } from './limit-book.ts'
import { TokenLine } from './token-line.ts'

/** The time for which the limits are watched after the last call, in milliseconds: a call in that time need not read them. */
const LINGER_MS = 10_000
/** The period in which a process with waiting calls reads whether the limits have changed: a notification may be lost. */
const RECHECK_MS = 30_000
const RETRY_PAUSES_MS = { firstPauseMs: 50, maxPauseMs: 2_000 }

export interface TokenTakerOptions {
  readonly backend: Pick<Backend, 'limits' | 'clock'>
  readonly book: Pick<LimitBook, 'open' | 'close' | 'refresh' | 'rules' | 'revision'>
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
}

/** A call: the tokens that it takes, and the signals that end its wait. */
export interface TokenCall {
  readonly cost: number
  readonly signal?: Stoppable | undefined
  /** Ends the wait, but not during a request: it may have taken the tokens, which would be lost. */
  readonly timeout?: Stoppable | undefined
}

export class TokenTaker {
  readonly #options: TokenTakerOptions
  readonly #lines = new Map<string, TokenLine>()
  #recheckTimer: NodeJS.Timeout | undefined
  #lingerTimer: NodeJS.Timeout | undefined

  constructor(options: TokenTakerOptions) {
    this.#options = options
  }

  /**
   * Resolves when the tokens of the call were taken.
   *
   * @throws the reason of a signal; InvalidState when the board is closed; AccessDenied
   */
  async take(key: string, { cost, signal, timeout }: TokenCall): Promise<void> {
    using stop = followSignals([this.#options.signal, signal])
    stop.throwIfAborted()
    const line = this.#lines.get(key) ?? this.#openLine(key)
    const call = line.add(cost)
    const unfollow = timeout && onAbort(timeout, () => line.expire(call, timeout.reason))
    try {
      await rejectOnAbort(call.served.promise, stop)
    } finally {
      unfollow?.()
      line.remove(call)
    }
  }

  /** Makes all lines ask again, because the limits have changed. */
  rulesChanged(): void {
    for (const line of this.#lines.values()) line.wake()
  }

  #openLine(key: string): TokenLine {
    clearTimeout(this.#lingerTimer)
    const { backend, book } = this.#options
    // The timer also keeps the process alive while calls wait: a board in memory has no open handle.
    this.#recheckTimer ??= setInterval(() => {
      if (book.revision !== undefined) book.refresh().catch(() => undefined)
    }, RECHECK_MS)
    const line = new TokenLine(key, backend.clock.alarms ?? systemAlarmClock)
    this.#lines.set(key, line)
    // The caller adds the first call after this function returns: without a call, the line would end at once.
    queueMicrotask(() => void this.#serve(line))
    return line
  }

  async #serve(line: TokenLine): Promise<void> {
    while (line.size > 0) {
      try {
        const until = await this.#askWithRetries(line)
        if (until === undefined) continue
        line.endAsking()
        await line.wait(until - this.#options.backend.clock.now())
      } catch (error) {
        line.rejectAll(asError(error))
      }
    }
    this.#lines.delete(line.key)
    if (this.#lines.size > 0) return
    clearInterval(this.#recheckTimer)
    this.#recheckTimer = undefined
    const { book, signal } = this.#options
    if (!signal.aborted) this.#lingerTimer = setTimeout(() => book.close('tokens'), LINGER_MS).unref()
  }

  #askWithRetries(line: TokenLine): Promise<number | undefined> {
    return retry(() => this.#ask(line), {
      ...RETRY_PAUSES_MS,
      signal: this.#options.signal,
      isRetryable: (error) => line.size > 0 && isTransient(error),
      onRetry: () => line.endAsking(),
    })
  }

  /** Serves calls from the head of the line. Returns when the next one can be served; undefined if it can be now. */
  async #ask(line: TokenLine): Promise<number | undefined> {
    const { backend, book } = this.#options
    line.beginAsking()
    await Promise.all([book.open('tokens'), backend.clock.read()])
    const { rules, revision } = book
    const rule = rules.ruleOf(line.key)
    const until = blockedUntil(rule, backend.clock.now())
    if (until !== undefined) return until
    const rate = rule?.rate
    const calls = line.first(rate ? MAX_CALLS_PER_REQUEST : line.size)
    if (calls.length === 0) return undefined
    if (revision === undefined) throw new InvalidState(`limit ${line.key}: the board does not know its limits`)
    try {
      // Without a rate, the request checks the revision: a rate that this process does not know yet may have been set.
      const wanted = rate ? { rate, costs: calls.map(({ cost }) => cost) } : { costs: [] }
      const answer = await backend.limits.takeTokens({ key: line.key, revision, ...wanted })
      line.serve(rate ? calls.slice(0, answer.taken) : calls)
      return answer.until
    } catch (error) {
      if (!(error instanceof LimitsChanged)) throw error
      await book.refresh()
      // The server that answered the read lags behind the server that has refused: the error is thrown, so that a pause comes first.
      if (book.revision === revision) throw error
      return undefined
    }
  }
}

/** Returns the time until which the key gives no tokens, because it is held or stopped; undefined otherwise. */
function blockedUntil(rule: LimitRule | undefined, nowMs: number): number | undefined {
  const { heldUntil = 0, concurrency } = rule ?? {}
  if (concurrency === 0) return Number.POSITIVE_INFINITY
  return heldUntil > nowMs ? heldUntil : undefined
}

function isTransient(error: unknown): boolean {
  return error instanceof OutcomeUnknown || (error instanceof JobboardError && error.retryable)
}
