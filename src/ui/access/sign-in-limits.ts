/**
 * Limits sign-ins with a password: each check takes 16 MiB and about 50 ms. Two passwords are checked at once: more checks would fill the
 * four threads of libuv, which files and host names need, too. Addresses take turns, so that the checks of one address do not keep other
 * addresses waiting.
 */
import { monotonic } from '../../core/time.ts'
import { Refusal } from '../problem.ts'
import type { Client } from './access.ts'
import { toClientKey } from './address.ts'

const MAX_RUNNING = 2
/** The maximum number of waiting checks: of one address, and of all addresses. */
const MAX_WAITING_PER_ADDRESS = 8
const MAX_WAITING = 1_000
/** The wrong passwords of one address after which it is locked, and the time for which they count. */
const MAX_WRONG = 20
const WINDOW_MS = 60_000
const MAX_ADDRESSES = 10_000

interface WrongOnes {
  count: number
  readonly untilMs: number
}

/** The limits of sign-ins for one dashboard. */
export class SignInLimits {
  #running = 0
  #waiting = 0
  readonly #lines = new Map<string, (() => void)[]>()
  readonly #wrong = new Map<string, WrongOnes>()

  /**
   * Runs a check when its turn comes. The check returns undefined for a wrong password.
   *
   * @throws Refusal if this address has too many checks under way, or had too many wrong passwords
   */
  async run<T>({ address, log }: Client, check: () => Promise<T | undefined>): Promise<T | undefined> {
    const key = toClientKey(address)
    this.#assertUnlocked(key)
    await this.#turn(key ?? 'unknown')
    try {
      this.#assertUnlocked(key)
      const found = await check()
      if (key === undefined) return found
      if (found !== undefined) this.#wrong.delete(key)
      else if (this.#countWrong(key) === MAX_WRONG)
        log?.warn({ address: key }, `dashboard: an address is locked for a minute after ${MAX_WRONG} wrong passwords`)
      return found
    } finally {
      this.#running -= 1
      this.#next()
    }
  }

  #assertUnlocked(key: string | undefined): void {
    const wrong = key === undefined ? undefined : this.#wrong.get(key)
    if (!wrong || wrong.count < MAX_WRONG) return
    const leftMs = wrong.untilMs - monotonic()
    if (leftMs > 0)
      throw new Refusal('TOO_MANY', 'too many wrong passwords from this address; try again in a minute', {
        'Retry-After': String(Math.ceil(leftMs / 1_000)),
      })
  }

  #countWrong(key: string): number {
    const now = monotonic()
    const known = this.#wrong.get(key)
    const wrong = known && known.untilMs > now ? known : { count: 0, untilMs: now + WINDOW_MS }
    wrong.count += 1
    // Newest last: the oldest are forgotten first.
    this.#wrong.delete(key)
    this.#wrong.set(key, wrong)
    if (this.#wrong.size > MAX_ADDRESSES) for (const oldest of this.#wrong.keys()) return this.#forget(oldest, wrong)
    return wrong.count
  }

  #forget(oldest: string, { count }: WrongOnes): number {
    this.#wrong.delete(oldest)
    return count
  }

  async #turn(key: string): Promise<void> {
    if (this.#running < MAX_RUNNING) {
      this.#running += 1
      return
    }
    const line = this.#lines.get(key) ?? []
    if (line.length >= MAX_WAITING_PER_ADDRESS || this.#waiting >= MAX_WAITING)
      throw new Refusal('TOO_MANY', 'too many sign-ins at once; try again', { 'Retry-After': '1' })
    this.#lines.set(key, line)
    this.#waiting += 1
    await new Promise<void>((resolve) => line.push(resolve))
  }

  /** Begins the oldest check of the address whose turn it is, and puts the address last. */
  #next(): void {
    for (const [key, line] of this.#lines) {
      const begin = line.shift()
      this.#lines.delete(key)
      if (line.length > 0) this.#lines.set(key, line)
      if (!begin) continue
      this.#waiting -= 1
      this.#running += 1
      begin()
      return
    }
  }
}
