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

/** Rounding errors of the times in milliseconds since 1970. */
const ROUNDING_MS = 0.01

export class LimitModel {
  readonly #settings = new Map<string, Settings>()
  readonly #holds = new Map<string, number>()
  /** The jobs that hold a slot of each key. */
  readonly #slots = new Map<string, Set<ModelJob>>()
  /** When all tokens of each key would be there again. */
  readonly #full = new Map<string, number>()
  /** What was taken of each key since its rate was set as it is. */
  readonly #taken = new Map<string, { readonly rate: string; readonly tokens: Taken[] }>()
  readonly jobs: ModelJob[] = []

  set(id: string, settings: Settings): void {
    this.#settings.set(id, settings)
  }

  remove(id: string): void {
    this.#settings.delete(id)
    this.#holds.delete(id)
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
      if (waits.some((each) => passed.has(each))) return false
      if (!job.hasLostOwner && this.mayStart(job, now)) return true
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
    const interval = rate.per / rate.limit
    this.#full.set(key, Math.max(this.#full.get(key) ?? 0, now) + cost * interval)
    const known = this.#taken.get(key)
    const same = JSON.stringify(rate)
    const tokens = known?.rate === same ? known.tokens : []
    tokens.push({ at: now, cost })
    this.#taken.set(key, { rate: same, tokens })
    let sum = 0
    for (const { at, cost: each } of tokens.toReversed()) {
      sum += each
      // The last one may have cost more than the burst: then no token was missing.
      const allowed = Math.max(rate.burst, cost) + (now - at) / interval
      if (sum > allowed + ROUNDING_MS)
        throw new Error(`${sum} tokens of ${key} in ${now - at} ms, allowed are ${allowed}`)
    }
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
    const interval = rate.per / rate.limit
    const missing = Math.max(0, (this.#full.get(key) ?? 0) - now) / interval
    return missing + cost <= Math.max(rate.burst, cost) + ROUNDING_MS / interval
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

function applies(id: string, key: string): boolean {
  return id.endsWith('*') ? key.startsWith(id.slice(0, -1)) : id === key
}
