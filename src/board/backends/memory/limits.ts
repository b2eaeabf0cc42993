/** The slots and tokens that claims of a memory board, and calls outside of claims, have taken. */
import type { AlarmClock } from '../../../core/time.ts'
import type { BackendLimits } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import {
  type ClaimLimits,
  type LimitUse,
  limitReachedError,
  MAX_USED_KEYS,
  type TakenTokens,
  type TokenRate,
  type TokenRequest,
  type TokensTaken,
  takeTokens,
  takeTokensInOrder,
  toArrivalAt,
} from '../../model/limits.ts'
import type { MemoryBoard } from './store/board.ts'

export class LimitSteps {
  readonly #clock: Pick<AlarmClock, 'now'>
  /** Changes with every change of a limit. */
  #revision = 0
  /** The number of jobs that hold a slot of each key. */
  readonly #used = new Map<string, number>()
  /** The keys whose slots each job holds. */
  readonly #held = new Map<string, readonly string[]>()
  readonly #arrivals = new Map<string, TakenTokens>()

  constructor(clock: Pick<AlarmClock, 'now'>) {
    this.#clock = clock
  }

  get revision(): number {
    return this.#revision
  }

  noteChange(): void {
    this.#revision += 1
  }

  /**
   * Takes the slots and tokens of a claim, or nothing.
   *
   * @throws LimitsChanged, LimitReached
   */
  take(id: string, { revision, wants }: ClaimLimits): { key: string; arrivalMs: number }[] {
    if (revision !== this.#revision) throw refusalError(id, { why: 'limits' })
    const nowMs = this.#clock.now()
    // A changed rate counts from the first request by it, even if that request is refused.
    for (const { key, rate } of wants) if (rate) this.#applyRate(key, rate, nowMs)
    const arrivals = wants.flatMap(({ key, concurrency, rate }) => {
      const used = this.#used.get(key) ?? 0
      if (concurrency !== undefined && used >= concurrency) throw limitReachedError(id, { key, concurrency }, undefined)
      if (!rate) return []
      const taken = takeTokens(this.#arrivals.get(key)?.arrivalMs, rate, nowMs)
      if ('arrivalMs' in taken) return [{ key, arrivalMs: taken.arrivalMs, rate }]
      throw limitReachedError(id, { key }, taken.until)
    })
    const held = wants.flatMap(({ key, concurrency }) => (concurrency === undefined ? [] : [key]))
    for (const key of held) this.#used.set(key, (this.#used.get(key) ?? 0) + 1)
    if (held.length > 0) this.#held.set(id, held)
    for (const { key, arrivalMs, rate } of arrivals) this.#arrivals.set(key, { arrivalMs, rate })
    this.#forgetArrivals(nowMs, arrivals.length + 1)
    return arrivals
  }

  /** Takes tokens for calls outside of claims. @throws LimitsChanged */
  takeTokens({ key, revision, rate, costs }: TokenRequest): TokensTaken {
    if (revision !== this.#revision) throw refusalError(`limit ${key}`, { why: 'limits' })
    if (!rate) return { taken: 0 }
    const nowMs = this.#clock.now()
    const { arrivalMs, ...answer } = takeTokensInOrder(this.#applyRate(key, rate, nowMs), { rate, costs }, nowMs)
    if (answer.taken > 0 && arrivalMs !== undefined) this.#arrivals.set(key, { arrivalMs, rate })
    this.#forgetArrivals(nowMs, 2)
    return answer
  }

  /** Returns what is taken of these keys, or of all. */
  use(keys: readonly string[] = [...new Set([...this.#used.keys(), ...this.#arrivals.keys()])]): LimitUse[] {
    return keys.slice(0, MAX_USED_KEYS).flatMap((key) => {
      const slots = this.#used.get(key) ?? 0
      const { arrivalMs, rate } = this.#arrivals.get(key) ?? {}
      return slots > 0 || arrivalMs !== undefined ? [{ key, slots, arrivalMs, ...(rate ? { rate } : {}) }] : []
    })
  }

  /** Returns the arrival time of the key at this rate, and keeps it if the tokens were taken by another one. */
  #applyRate(key: string, rate: TokenRate, nowMs: number): number | undefined {
    const taken = this.#arrivals.get(key)
    if (!taken) return undefined
    const arrivalMs = toArrivalAt(taken, rate, nowMs)
    this.#arrivals.set(key, { arrivalMs, rate })
    return arrivalMs
  }

  /** Frees the slots that the job holds. */
  free(id: string): void {
    for (const key of this.#held.get(id) ?? []) {
      const used = (this.#used.get(key) ?? 1) - 1
      if (used > 0) this.#used.set(key, used)
      else this.#used.delete(key)
    }
    this.#held.delete(id)
  }

  /**
   * Looks at a few arrival times, and removes the times that are over: they mean the same as none. The others go to the end, so that the next
   * calls look at those behind them.
   *
   * @param count more than were added
   */
  #forgetArrivals(nowMs: number, count: number): void {
    for (const [key, taken] of firstOf(this.#arrivals, count)) {
      this.#arrivals.delete(key)
      if (taken.arrivalMs > nowMs) this.#arrivals.set(key, taken)
    }
  }
}

export class MemoryLimits implements BackendLimits {
  readonly #board: MemoryBoard<{ readonly limits: LimitSteps }>

  constructor(board: MemoryBoard<{ readonly limits: LimitSteps }>) {
    this.#board = board
  }

  async revision(): Promise<number> {
    return this.#board.steps.limits.revision
  }

  async use(keys?: readonly string[]): Promise<readonly LimitUse[]> {
    return this.#board.steps.limits.use(keys)
  }

  async takeTokens(request: TokenRequest): Promise<TokensTaken> {
    return this.#board.steps.limits.takeTokens(request)
  }
}

function firstOf<T>(items: Iterable<T>, count: number): T[] {
  const first: T[] = []
  for (const item of items) if (first.push(item) === count) break
  return first
}
