/** What limits permit, worked out anew from all that has happened: slots by claims, and tokens by the times at which they were taken. */

/** What is set for a key or a pattern. */
export interface Settings {
  readonly concurrency?: number
  readonly rate?: { readonly limit: number; readonly per: number; readonly burst: number }
}

export interface Key {
  readonly key: string
  readonly cost: number
}

/** A job of the model. */
export interface ModelJob {
  readonly number: number
  readonly keys: readonly Key[]
  state: 'waiting' | 'claimed' | 'gone'
  /** Whether an owner of it was lost: such jobs are tried with more care. */
  hasLostOwner: boolean
}

interface Taken {
  readonly at: number
  readonly cost: number
}

type Rate = Required<Settings>['rate']

/** What happened to the tokens of a key. */
interface Tokens {
  /** The number of tokens that are missing at a time, and the rate at which they come back from then on. */
  missing: number
  at: number
  rate: Rate
  /** The rates that were set, each until the next one, and how many of the missing tokens its burst forgave. */
  readonly rates: { readonly from: number; readonly rate: Rate; readonly forgiven: number }[]
  readonly taken: Taken[]
}

/** Rounding errors of the times in milliseconds since 1970. */
const ROUNDING_MS = 0.01

export class LimitModel {
  readonly #settings = new Map<string, Settings>()
  readonly #holds = new Map<string, number>()
  /** The jobs that hold a slot of each key. */
  readonly #slots = new Map<string, Set<ModelJob>>()
  readonly #tokens = new Map<string, Tokens>()
  readonly jobs: ModelJob[] = []

  set(id: string, settings: Settings, now: number): void {
    this.#settings.set(id, settings)
    this.#applyRates(now)
  }

  remove(id: string, now: number): void {
    this.#settings.delete(id)
    this.#holds.delete(id)
    this.#applyRates(now)
  }

  /** Tokens that are missing stay missing, no more than the new burst, and come back at the new rate. Without a rate they come back as before. */
  #applyRates(now: number): void {
    for (const [key, tokens] of this.#tokens) {
      const { rate } = this.#ruleOf(key) ?? {}
      if (!rate || isSame(rate, tokens.rate)) continue
      const missing = missingOf(tokens, now)
      tokens.missing = Math.min(rate.burst, missing)
      tokens.at = now
      tokens.rate = rate
      tokens.rates.push({ from: now, rate, forgiven: missing - tokens.missing })
    }
  }

  hold(id: string, until: number): void {
    this.#holds.set(id, Math.max(this.#holds.get(id) ?? 0, until))
  }

  resume(id: string): void {
    this.#holds.delete(id)
  }

  post(keys: readonly Key[] | 'none'): ModelJob {
    const number = this.jobs.length
    const flow = { key: 'flow/work', cost: 1 }
    const job: ModelJob = {
      number,
      keys: keys === 'none' ? [] : [flow, ...keys],
      state: 'waiting',
      hasLostOwner: false,
    }
    this.jobs.push(job)
    return job
  }

  /** Returns a key of the job that does not permit its claim; undefined if all do. */
  blockedBy({ keys }: ModelJob, now: number): string | undefined {
    return keys.find((each) => !this.#permits(each, now, this.#slots.get(each.key)?.size ?? 0))?.key
  }

  /** Returns jobs of which a caller of `claimNext` must get one: each of them may start, and none has to wait behind another. */
  startable(now: number): ModelJob[] {
    const passed = new Set<string>()
    return this.jobs.filter((job) => {
      if (job.state !== 'waiting') return false
      const limited = job.keys.flatMap(({ key }) => (this.#isLimited(key) ? [key] : [])).sort()
      // Jobs of the same keys do not overtake each other, and none takes a token that one before it waits for.
      const waits = limited.length > 0 ? [limited.join(), ...limited.filter((key) => this.#ruleOf(key)?.rate)] : []
      const isBehind = waits.some((each) => passed.has(each))
      if (!isBehind && !job.hasLostOwner && this.mayStart(job, now)) return true
      // Also one that is behind another: it may wait for a further key, and those after it wait behind it there.
      for (const each of waits) passed.add(each)
      return false
    })
  }

  /** Takes the slots and tokens of a claim. @throws for a claim that no limit permits */
  grant(job: ModelJob, now: number): void {
    const blocked = this.blockedBy(job, now)
    if (blocked !== undefined) throw new Error(`job ${job.number} was claimed in spite of limit ${blocked}`)
    job.state = 'claimed'
    for (const { key, cost } of job.keys) {
      const rule = this.#ruleOf(key)
      if (rule?.concurrency !== undefined) this.#slots.set(key, (this.#slots.get(key) ?? new Set()).add(job))
      this.#takeOf(key, cost, now)
    }
  }

  /** Frees the slots of a claim. */
  end(job: ModelJob, state: 'waiting' | 'gone'): void {
    job.state = state
    for (const slots of this.#slots.values()) slots.delete(job)
  }

  /** Returns whether tokens may be taken outside of a claim, and takes them then. */
  take(key: string, cost: number, now: number): boolean {
    const { concurrency, rate } = this.#ruleOf(key) ?? {}
    const settings = { ...(concurrency === 0 ? { concurrency } : {}), ...(rate ? { rate } : {}) }
    if (!this.#permits({ key, cost }, now, 0, settings)) return false
    this.#takeOf(key, cost, now)
    return true
  }

  runningOf(key: string): number {
    return this.#slots.get(key)?.size ?? 0
  }

  #takeOf(key: string, cost: number, now: number): void {
    const { rate } = this.#ruleOf(key) ?? {}
    if (!rate) return
    const tokens = this.#tokens.get(key) ?? {
      missing: 0,
      at: now,
      rate,
      rates: [{ from: now, rate, forgiven: 0 }],
      taken: [],
    }
    this.#tokens.set(key, tokens)
    tokens.missing = missingOf(tokens, now) + cost
    tokens.at = now
    tokens.taken.push({ at: now, cost })
    checkWindows(key, tokens, now)
  }

  /** Returns whether the job must be granted: a board counts all claimed jobs that it sees, also those that hold no slot. */
  mayStart({ keys }: ModelJob, now: number): boolean {
    const claimed = (key: string) =>
      this.jobs.filter((job) => job.state === 'claimed' && job.keys.some((each) => each.key === key)).length
    return keys.every((each) => this.#permits(each, now, claimed(each.key)))
  }

  #permits({ key, cost }: Key, now: number, running: number, settings = this.#ruleOf(key)): boolean {
    const { concurrency, rate } = settings ?? {}
    const heldUntil = Math.max(0, ...[...this.#holds].flatMap(([id, until]) => (applies(id, key) ? [until] : [])))
    if (heldUntil > now) return false
    if (concurrency !== undefined && running >= concurrency) return false
    if (!rate) return true
    const tokens = this.#tokens.get(key)
    const missing = tokens ? missingOf(tokens, now) : 0
    return missing + cost <= Math.max(rate.burst, cost) + ROUNDING_MS / intervalOf(rate)
  }

  #isLimited(key: string): boolean {
    return this.#ruleOf(key) !== undefined || [...this.#holds.keys()].some((id) => applies(id, key))
  }

  #ruleOf(key: string): Settings | undefined {
    const ids = [...this.#settings.keys()].filter((id) => applies(id, key))
    const [best] = ids.sort((a, b) => Number(b === key) - Number(a === key) || b.length - a.length)
    return best === undefined ? undefined : this.#settings.get(best)
  }
}

function intervalOf({ per, limit }: Rate): number {
  return per / limit
}

function isSame(one: Rate, other: Rate): boolean {
  return intervalOf(one) === intervalOf(other) && one.burst === other.burst
}

function missingOf({ missing, at, rate }: Tokens, now: number): number {
  return Math.max(0, missing - (now - at) / intervalOf(rate))
}

/**
 * Checks the times that end now, and contain at most one change of the rate: no more tokens were taken than the present burst, what each rate gives in
 * its part, and what the change forgave.
 */
function checkWindows(key: string, { rates, taken }: Tokens, now: number): void {
  const [last, before] = [rates.at(-1), rates.at(-2)]
  const start = before?.from ?? Number.NEGATIVE_INFINITY
  let [sum, burst, forgiven] = [0, last?.rate.burst ?? 0, 0]
  for (const { at, cost } of taken.toReversed()) {
    // At the moment of a change, it is not known which rate it was taken by.
    if (!last || at <= start) return
    sum += cost
    // One that costs more than the burst is taken when no token is missing. Of the tokens before the change, those that came back later are in `given`.
    if (at >= last.from) burst = Math.max(burst, cost)
    if (at <= last.from && before) forgiven = last.forgiven
    const changed = Math.max(at, last.from)
    const given = (now - changed) / intervalOf(last.rate) + (before ? (changed - at) / intervalOf(before.rate) : 0)
    const allowed = burst + forgiven + given
    if (sum > allowed + 0.001) throw new Error(`${sum} tokens of ${key} in ${now - at} ms, allowed are ${allowed}`)
  }
}

function applies(id: string, key: string): boolean {
  return id.endsWith('*') ? key.startsWith(id.slice(0, -1)) : id === key
}
