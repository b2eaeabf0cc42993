/**
 * The limits of a board, for people and programs: `board.limits`. What is set is a record for each key or pattern, and takes effect with the
 * next claim of every process: see `model/limits.ts`.
 */
import { abortAfter } from '../../core/async/abort.ts'
import { AbortFlag } from '../../core/async/abort-flag.ts'
import { InvalidArgument, JobboardError, NotFound, Timeout, UnsupportedCapability } from '../../core/errors.ts'
import { assertOptions, defined } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import type { BackendCapabilities } from '../backend.ts'
import {
  isLimitOf,
  isSameRate,
  type LimitUse,
  limitCostProblem,
  limitKeyProblem,
  type TokenRequest,
} from '../model/limits.ts'
import type { BoardRecords } from '../records/board-records.ts'
import type { RecordStore } from '../records/record-store.ts'
import { changeRecord } from './change-record.ts'
import { CompiledRules } from './compiled-rules.ts'
import {
  type DeclaredLimits,
  type DeclareLimitsReport,
  declareLimits,
  toDeclaredMark,
  toWantedLimits,
} from './declare.ts'
import { type LimitView, type LimitViewOptions, matching, toHeld, toKeys, toView } from './limit-view.ts'
import { HOLDS, type HoldRecord, LIMITS, type LimitRecord } from './record.ts'
import { assertKeyOrPattern, type LimitSettings, toLimitRecord } from './settings.ts'
import { type LimitStop, stopsOf } from './stops.ts'
import type { TokenCall } from './token-taker.ts'
import { countWaiting, joinCounts, type KeyCount, toWaiting, type UnclaimedJob, type WaitingCount } from './waiting.ts'

/** The options of `board.limits.pushBack`: the time for which the key is held. */
export interface PushBackOptions {
  readonly for: Duration
  readonly reason?: string
}

/** The options of `board.limits.take`; all are optional. */
export interface TakeOptions {
  /** The number of tokens; 1 by default. More than the burst are taken when none is missing. */
  readonly cost?: number
  /** Ends the wait with its reason. */
  readonly signal?: AbortSignal
  /** The longest wait, after which the call throws Timeout: 0 takes tokens only if they are free now. By default it waits without limit. */
  readonly timeout?: Duration
}

/** What `board.limits.resume` has found. */
export interface ResumedLimit {
  /** Whether the key was held. */
  readonly wasHeld: boolean
  /** What still stops jobs of the key; empty if they start as its limit permits. */
  readonly stops: readonly LimitStop[]
}

export interface LimitsHost {
  /** The URI without a password, for messages. */
  readonly uri: string
  readonly who: string
  readonly capabilities: BackendCapabilities
  readonly records: BoardRecords
  /** Returns the time of the board's clock, in milliseconds since 1970. */
  now(): number
  /** Resolves when {@link now} is the servers' time. @throws NotConnected */
  readClock(): Promise<void>
  /** Returns what claims have taken of these keys, or of all. @throws NotConnected */
  use(keys?: readonly string[]): Promise<readonly LimitUse[]>
  /** Returns the revision of the limits. @throws NotConnected */
  revision(): Promise<number>
  /** Applies a rate to the tokens that were taken of a key. @throws LimitsChanged, NotConnected, OutcomeUnknown */
  applyRate(request: TokenRequest): Promise<void>
  /** Yields the unclaimed jobs of the board. @throws NotConnected */
  unclaimed(): AsyncIterable<UnclaimedJob>
  /** Resolves when the tokens of the call were taken. */
  take(key: string, call: TokenCall): Promise<void>
}

/** The limits of a board: `board.limits`. */
export class Limits {
  readonly #host: LimitsHost
  readonly #limits: RecordStore<LimitRecord>
  readonly #holds: RecordStore<HoldRecord>

  /** @internal Use `board.limits`. */
  constructor(host: LimitsHost) {
    this.#host = host
    this.#limits = host.records.of(LIMITS)
    this.#holds = host.records.of(HOLDS)
  }

  /**
   * Returns what is set, ordered by key.
   *
   * @throws UnsupportedCapability, NotConnected
   * @example const limits = await board.limits.list({ waiting: true })
   */
  async list(options: LimitViewOptions = {}): Promise<LimitView[]> {
    assertOptions(options, { waiting: true }, 'limits.list')
    await this.#prepare()
    return this.#withKeys(await this.#listSet(), await this.#count(options))
  }

  async #listSet(): Promise<LimitView[]> {
    const [limits, holds] = await Promise.all([this.#limits.list(), this.#holds.list()])
    const byKey = new Map(limits.map((record) => [record.id, toView(record)]))
    for (const hold of holds) {
      const held = toHeld(hold, this.#host.now())
      if (held) byKey.set(hold.id, { ...(byKey.get(hold.id) ?? { key: hold.id }), held })
    }
    return [...byKey.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /**
   * Returns what applies to a key: what is set for it, or for the pattern with the longest beginning. Of a pattern, returns what is set for
   * the pattern itself, with its keys.
   *
   * @throws NotFound if nothing is set; UnsupportedCapability, NotConnected
   */
  async show(key: string, options: LimitViewOptions = {}): Promise<LimitView> {
    assertKeyOrPattern(key)
    assertOptions(options, { waiting: true }, 'limits.show')
    await this.#prepare()
    const views = await this.#listSet()
    if (key.endsWith('*')) return this.#showPattern(key, views, options)
    const found = matching(key, views)
    const limit = found.find(({ set, error }) => set ?? error)
    const held = found.find((view) => view.held)?.held
    if (!limit && !held) throw new NotFound(`limit ${key}: nothing is set for it, nor for a pattern that it matches`)
    const { held: _, ...settings } = limit ?? { key }
    const view = { ...settings, ...defined({ held }) }
    const counted = await this.#count(options)
    const ofKey = counted && { ...counted, byKey: new Map([[key, counted.byKey.get(key) ?? 0]]) }
    return this.#withCounts(view, joinCounts(await this.#host.use([key]), ofKey), ofKey)
  }

  async #showPattern(key: string, views: readonly LimitView[], options: LimitViewOptions): Promise<LimitView> {
    if (!views.some((view) => view.key === key)) throw new NotFound(`limit ${key}: nothing is set for this pattern`)
    const all = await this.#withKeys(views, await this.#count(options))
    return all.find((view) => view.key === key) ?? { key }
  }

  async #count({ waiting = false }: LimitViewOptions): Promise<WaitingCount | undefined> {
    return waiting ? countWaiting(this.#host.unclaimed(), { now: this.#host.now() }) : undefined
  }

  /** Adds to each limit the keys for which it is the one that counts; a hold counts where nothing is set. */
  async #withKeys(views: readonly LimitView[], counted: WaitingCount | undefined): Promise<LimitView[]> {
    const byLimit = new Map<LimitView, KeyCount[]>()
    for (const count of joinCounts(await this.#useOf(views), counted)) {
      const found = matching(count.key, views)
      const limit = found.find(({ set, error }) => set ?? error) ?? found[0]
      if (!limit) continue
      const keys = byLimit.get(limit)
      if (keys) keys.push(count)
      else byLimit.set(limit, [count])
    }
    return views.map((view) => this.#withCounts(view, byLimit.get(view) ?? [], counted))
  }

  /** Returns what is taken of keys: of some of all, and of each key for which something is set, which may not be among these. */
  async #useOf(views: readonly LimitView[]): Promise<readonly LimitUse[]> {
    const own = views.flatMap(({ key }) => (key.endsWith('*') ? [] : [key]))
    const uses = await Promise.all([this.#host.use(), ...(own.length > 0 ? [this.#host.use(own)] : [])])
    return [...new Map(uses.flat().map((use) => [use.key, use])).values()]
  }

  #withCounts(view: LimitView, keys: readonly KeyCount[], counted: WaitingCount | undefined): LimitView {
    return { ...view, ...toWaiting(keys, counted), ...toKeys(view, keys, this.#host.now()) }
  }

  /**
   * Sets a limit, in place of the one that was set for this key before. Running jobs continue. The longest matching pattern counts, and a key
   * before every pattern. Where conductors declare a limit of the key, it stays until their declaration changes.
   *
   * @throws InvalidArgument; UnsupportedCapability, NotConnected, OutcomeUnknown
   * @example await board.limits.set('api/stripe', { concurrency: 10, rate: { limit: 100, per: '1m', burst: 20 } })
   */
  async set(key: string, settings: LimitSettings): Promise<void> {
    assertKeyOrPattern(key)
    const value = toLimitRecord(key, settings)
    await this.#prepare()
    const record: LimitRecord = { ...value, by: this.#host.who, at: this.#host.now() }
    await changeRecord(this.#limits, key, (found) => ({ ...record, ...toDeclaredMark(found) }))
    await this.#applyRates(key)
  }

  /**
   * @internal Puts the limits that a conductor declares when it starts: each by compare-and-set, and none that somebody has set at run time.
   *
   * @throws InvalidArgument for an invalid key or limit: then none is put
   */
  async declare({ declare, owner, prune }: Required<DeclaredLimits>): Promise<DeclareLimitsReport> {
    const wanted = toWantedLimits(declare)
    await this.#prepare()
    const by = { by: this.#host.who, at: this.#host.now() }
    const applyRates = (key: string) => this.#applyRates(key)
    return declareLimits(wanted, { owner, prune, by, store: this.#limits, applyRates })
  }

  /** Removes what is set for a key or pattern, and its hold. @throws NotFound */
  async remove(key: string): Promise<void> {
    assertKeyOrPattern(key)
    await this.#prepare()
    const removed = await Promise.all([
      changeRecord(this.#limits, key, () => undefined),
      changeRecord(this.#holds, key, () => undefined),
    ])
    if (!removed.includes(true)) throw new NotFound(`limit ${key}: nothing is set for it`)
    await this.#applyRates(key)
  }

  /**
   * Holds a key, for every process: no job of it starts before the time is over. For a service that has answered "too many requests". An
   * earlier hold that lasts longer stays.
   *
   * @throws InvalidArgument
   * @example await board.limits.pushBack('api/stripe', { for: '30s' })
   */
  async pushBack(key: string, options: PushBackOptions): Promise<void> {
    assertOptions(options, { for: true, reason: true }, 'pushBack')
    const ms = toMilliseconds(options.for, 'pushBack: for')
    assertReason(options.reason, 'pushBack')
    await this.#prepare()
    await this.#hold(key, { until: this.#host.now() + ms, ...defined({ reason: options.reason }) })
  }

  /** Stops a key until {@link resume}: no job of it starts, running ones continue. @throws InvalidArgument */
  async stop(key: string, options: { readonly reason?: string } = {}): Promise<void> {
    if (Object.hasOwn(Object(options), 'for'))
      throw new InvalidArgument(
        `limits.stop holds ${key} until resume: to hold it for a time, use limits.pushBack(key, { for: '1h' })`,
      )
    assertOptions(options, { reason: true }, 'limits.stop')
    const { reason } = options
    assertReason(reason, 'limits.stop')
    await this.#prepare()
    await this.#hold(key, defined({ reason }))
  }

  /**
   * Ends the hold of a key, if there is one. Returns whether there was one, and what still stops the key: the hold of a pattern, or a limit that
   * permits 0 jobs.
   *
   * @throws InvalidArgument
   * @example const { stops } = await board.limits.resume('tenant/7')
   */
  async resume(key: string): Promise<ResumedLimit> {
    assertKeyOrPattern(key)
    await this.#prepare()
    let wasHeld = false
    await changeRecord(this.#holds, key, (record) => {
      wasHeld = record !== undefined && toHeld(record, this.#host.now()) !== undefined
      return undefined
    })
    return { wasHeld, stops: stopsOf(key, await this.#listSet()) }
  }

  /**
   * Waits until the rate of the key permits so many tokens, and takes them, outside of a claim: for work that calls a service several times.
   * Calls of one process are served in their order. Resolves at once for a key without a rate, and takes no slot; waits while a key is held, or
   * stopped by a concurrency of 0. Continues when a connection was lost. The tokens are not given back.
   *
   * @throws Timeout when `timeout` is over; the signal's reason; InvalidArgument; InvalidState when the board is closed
   * @throws UnsupportedCapability, AccessDenied
   * @example await board.limits.take('api/stripe', { signal })
   */
  async take(key: string, options: TakeOptions = {}): Promise<void> {
    const what = 'limits.take'
    assertKey(key)
    assertOptions(options, { cost: true, signal: true, timeout: true }, what)
    const { cost = 1, signal, timeout } = options
    const problem = limitCostProblem(key, cost)
    if (problem !== undefined) throw new InvalidArgument(`${what}: ${problem}`)
    this.#assertSupported()
    const late = new AbortFlag()
    using _timer = abortAfter(late, timeout, (time) => new Timeout(`limit ${key}: no token was free within ${time}`))
    await this.#host.take(key, { cost, signal, timeout: late })
  }

  /** Whether the board has limits. Boards that TaskFlow shares have none. */
  get isSupported(): boolean {
    return this.#host.capabilities.limits
  }

  #assertSupported(): void {
    if (this.isSupported) return
    throw new UnsupportedCapability(
      `board ${this.#host.uri} has no limits: other programs claim its jobs, or its driver cannot`,
      { capability: 'limits' },
    )
  }

  /** Resolves when the time of the board is known. @throws UnsupportedCapability, NotConnected */
  async #prepare(): Promise<void> {
    this.#assertSupported()
    await this.#host.readClock()
  }

  /**
   * Applies the present rates to tokens that were taken by former ones, of the key or of the keys of the pattern. The next request of a process would do
   * so, too: until then, tokens would come back at the former rate.
   */
  async #applyRates(changed: string): Promise<void> {
    try {
      // The revision is read first: the rates are at least as new.
      const revision = await this.#host.revision()
      const [limits, uses] = await Promise.all([
        this.#limits.list(),
        this.#host.use(changed.endsWith('*') ? undefined : [changed]),
      ])
      const rules = new CompiledRules(limits)
      await Promise.all(
        uses.map(async ({ key, rate: former }) => {
          const rate = isLimitOf(changed, key) ? rules.ruleOf(key)?.rate : undefined
          if (!rate || !former || isSameRate(rate, former)) return
          await this.#host.applyRate({ key, revision, rate, costs: [] })
        }),
      )
    } catch (error) {
      // The limit is set. At another revision, whoever has changed the limits since applies the rates.
      if (!(error instanceof JobboardError)) throw error
    }
  }

  async #hold(key: string, hold: Pick<HoldRecord, 'until' | 'reason'>): Promise<void> {
    assertKeyOrPattern(key)
    const now = this.#host.now()
    await changeRecord(this.#holds, key, (record) => {
      const there = record && !('error' in record) ? record.value : undefined
      if (there && lastsLonger(there, hold)) return 'keep'
      return { ...hold, by: this.#host.who, at: now }
    })
    await this.#removeEndedHolds(now)
  }

  /** Removes some holds that are over: they hold nothing, but every process reads them. */
  async #removeEndedHolds(now: number): Promise<void> {
    const ended = (await this.#holds.list()).filter(
      (record) => !('error' in record) && record.value.until !== undefined && record.value.until < now - ENDED_HOLD_MS,
    )
    if (ended.length === 0) return
    await this.#holds.write(ended.slice(0, 100).map(({ id, revision }) => ({ id, revision, value: undefined })))
  }
}

/** The time for which a hold that is over stays, in milliseconds: clocks differ. */
const ENDED_HOLD_MS = 60_000

function lastsLonger(there: HoldRecord, { until }: Pick<HoldRecord, 'until'>): boolean {
  return until !== undefined && (there.until ?? Number.POSITIVE_INFINITY) >= until
}

/** Every process reads a hold: one with another reason would stop the key until somebody resumes it. */
function assertReason(reason: unknown, what: string): void {
  if (reason !== undefined && typeof reason !== 'string')
    throw new InvalidArgument(`${what}: reason must be a text, got ${typeof reason}`)
}

function assertKey(key: unknown): void {
  const problem = limitKeyProblem(key)
  if (problem !== undefined) throw new InvalidArgument(`limit: ${problem}`)
}
