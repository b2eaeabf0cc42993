/**
 * The limits of a board: `board.limits`. The limit of a key or pattern is a record, and takes effect with the next claim of every process:
 * see `model/limits.ts`.
 */
import { abortAfter, answerInTime } from '../../core/async/abort.ts'
import { AbortFlag } from '../../core/async/abort-flag.ts'
import { InvalidArgument, JobboardError, NotFound, Timeout, UnsupportedCapability } from '../../core/errors.ts'
import { assertOptions, defined } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { isLimitOf, isSameRate, limitCostProblem, limitKeyProblem, type TokenRequest } from '../model/limits.ts'
import type { BoardRecords } from '../records/board-records.ts'
import { changeRecord } from '../records/change-record.ts'
import { type DeclarationReport, toDeclaredMark, writeDeclared } from '../records/declared-records.ts'
import type { RecordStore } from '../records/record-store.ts'
import { CompiledRules } from './compiled-rules.ts'
import { type DeclaredLimits, digestOfLimit, toWantedLimits } from './declare.ts'
import { LimitReader, type LimitReaderHost } from './limit-reader.ts'
import { type LimitView, type LimitViewOptions, toHeld } from './limit-view.ts'
import { HOLDS, type HoldRecord, LIMITS, type LimitRecord } from './record.ts'
import { assertKeyOrPattern, type LimitSettings, toLimitRecord } from './settings.ts'
import { type LimitStop, stopsOf } from './stops.ts'
import type { TokenCall } from './token-taker.ts'

/** The greatest length of the name of a person. */
const MAX_BY = 1_000

/** The options of `board.limits.pushBack`: the time for which the key is held. */
export interface PushBackOptions {
  readonly for: Duration
  readonly reason?: string
  /** The person or program that asks for it; the name of this process by default. */
  readonly by?: string
}

/** The options of `board.limits.take`; all are optional. */
export interface TakeOptions {
  /** The number of tokens; 1 by default. A call for more than the burst is served when no token is missing. */
  readonly cost?: number
  /** Ends the wait with its reason. */
  readonly signal?: AbortSignal
  /** The longest wait, after which the call throws Timeout: 0 takes tokens only if they are free now. By default it waits without limit. */
  readonly timeout?: Duration
}

/** The result of `board.limits.resume`. */
export interface ResumedLimit {
  /** Whether the key was held. */
  readonly wasHeld: boolean
  /** The stops that still apply to the key; empty if its jobs start as its limit permits. */
  readonly stops: readonly LimitStop[]
}

/** The parts of a board on which limits are set. */
export interface LimitsHost extends LimitReaderHost {
  /** The URI without a password, for messages. */
  readonly uri: string
  readonly who: string
  /** Whether the board has limits; known once the board is open. */
  readonly isSupported: boolean
  readonly records: BoardRecords
  /** Resolves when {@link now} is the servers' time. @throws NotConnected */
  readClock(): Promise<void>
  /** Returns the revision of the limits. @throws NotConnected */
  revision(): Promise<number>
  /** Applies a rate to the tokens that were taken by another one. @throws LimitsChanged, NotConnected, OutcomeUnknown */
  applyRate(request: TokenRequest): Promise<void>
  /** Resolves when the tokens of the call were taken. */
  take(key: string, call: TokenCall): Promise<void>
}

/** The limits of a board: `board.limits`. */
export class Limits {
  readonly #host: LimitsHost
  readonly #limits: RecordStore<LimitRecord>
  readonly #holds: RecordStore<HoldRecord>
  readonly #reader: LimitReader

  /** @internal Use `board.limits`. */
  constructor(host: LimitsHost) {
    this.#host = host
    this.#limits = host.records.of(LIMITS)
    this.#holds = host.records.of(HOLDS)
    this.#reader = new LimitReader(host, { limits: this.#limits, holds: this.#holds })
  }

  /**
   * Returns the limits and holds that are set, ordered by key.
   *
   * @throws UnsupportedCapability, NotConnected
   * @example const limits = await board.limits.list({ waiting: true })
   */
  async list(options: LimitViewOptions = {}): Promise<LimitView[]> {
    assertOptions(options, { waiting: true }, 'limits.list')
    await this.#prepare()
    return this.#reader.list(options)
  }

  /**
   * Returns what applies to a key: the limit of the key itself, or of the pattern with the longest prefix, and its hold. For a pattern,
   * returns the limit of the pattern itself, with its keys.
   *
   * @throws NotFound if nothing is set; UnsupportedCapability, NotConnected
   */
  async show(key: string, options: LimitViewOptions = {}): Promise<LimitView> {
    assertKeyOrPattern(key)
    assertOptions(options, { waiting: true }, 'limits.show')
    await this.#prepare()
    return this.#reader.show(key, options)
  }

  /**
   * Sets the limit of a key or pattern, in place of the former one. Running jobs continue. One limit applies to a key: its own, otherwise
   * the limit of the longest matching pattern. If conductors declare a limit of the key, this one stays until their declaration changes.
   *
   * @param options.by the person or program that sets it; the name of this process by default
   * @throws InvalidArgument; UnsupportedCapability, NotConnected, OutcomeUnknown
   * @example await board.limits.set('api/stripe', { concurrency: 10, rate: { limit: 100, per: '1m', burst: 20 } })
   */
  async set(key: string, settings: LimitSettings, options: { readonly by?: string } = {}): Promise<void> {
    assertKeyOrPattern(key)
    assertBy(options, 'limits.set')
    const value = toLimitRecord(key, settings)
    await this.#prepare()
    const record: LimitRecord = { ...value, by: options.by ?? this.#host.who, at: this.#host.now() }
    await changeRecord(this.#limits, key, (found) => ({ ...record, ...toDeclaredMark(found) }))
    await this.#applyRates(key)
  }

  /**
   * @internal Sets the limits that a conductor declares when it starts, each by compare-and-set. Limits set at run time stay.
   *
   * @throws InvalidArgument for an invalid key or limit: then none is set
   */
  async declare({ declare, owner, prune }: Required<DeclaredLimits>): Promise<DeclarationReport> {
    const settings = toWantedLimits(declare)
    await this.#prepare()
    const by = { by: this.#host.who, at: this.#host.now() }
    const wanted = settings.map((each) => ({ ...each, value: { ...each.value, ...by } }))
    const onChanged = (key: string) => this.#applyRates(key)
    return writeDeclared(wanted, { owner, prune, store: this.#limits, digestOf: digestOfLimit, onChanged })
  }

  /** Removes the limit and the hold of a key or pattern. @throws NotFound if there is neither */
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
   * Holds a key or pattern for a time: no process starts a job of it before the time is over. Use it when a service has answered "too many
   * requests". A hold that lasts longer stays.
   *
   * @throws InvalidArgument
   * @example await board.limits.pushBack('api/stripe', { for: '30s' })
   */
  async pushBack(key: string, options: PushBackOptions): Promise<void> {
    assertOptions(options, { for: true, reason: true, by: true }, 'pushBack')
    const ms = toMilliseconds(options.for, 'pushBack: for')
    assertReason(options.reason, 'pushBack')
    assertBy(options, 'pushBack')
    await this.#prepare()
    await this.#hold(key, { until: this.#host.now() + ms, ...defined({ reason: options.reason, by: options.by }) })
  }

  /** Stops a key or pattern: holds it until {@link resume}. Running jobs continue. @throws InvalidArgument */
  async stop(key: string, options: { readonly reason?: string; readonly by?: string } = {}): Promise<void> {
    if (Object.hasOwn(Object(options), 'for'))
      throw new InvalidArgument(
        `limits.stop holds ${key} until resume: to hold it for a time, use limits.pushBack(key, { for: '1h' })`,
      )
    assertOptions(options, { reason: true, by: true }, 'limits.stop')
    const { reason, by } = options
    assertBy(options, 'limits.stop')
    assertReason(reason, 'limits.stop')
    await this.#prepare()
    await this.#hold(key, defined({ reason, by }))
  }

  /**
   * Ends the hold of a key or pattern, if there is one. Returns whether there was one, and what still stops the key: the hold of a pattern,
   * or a limit with a concurrency of 0.
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
    return { wasHeld, stops: stopsOf(key, await this.#reader.listSet()) }
  }

  /**
   * Takes tokens of a key outside of a claim, and waits until its rate permits them: for work that calls a service several times. Calls of
   * one process are served in their order. Takes no slot. Resolves at once for a key without a rate, and waits while the key is held or has
   * a concurrency of 0. Continues after a lost connection. The tokens are not given back.
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
    const toTimeout = (time: string) => new Timeout(`limit ${key}: no token was free within ${time}`)
    using _timer = abortAfter(late, timeout, toTimeout)
    await answerInTime(
      { timeout },
      { work: () => this.#host.take(key, { cost, signal, timeout: late }), late: toTimeout },
    )
  }

  /** Whether the board has limits. Boards that are shared with TaskFlow have none. */
  get isSupported(): boolean {
    return this.#host.isSupported
  }

  #assertSupported(): void {
    if (this.isSupported) return
    throw new UnsupportedCapability(`board ${this.#host.uri} has no limits: other programs claim its jobs`, {
      capability: 'limits',
    })
  }

  /** Resolves when the time of the board is known. @throws UnsupportedCapability, NotConnected */
  async #prepare(): Promise<void> {
    this.#assertSupported()
    await this.#host.readClock()
  }

  /**
   * Applies the current rates to tokens that were taken by former ones, for the key or the keys of the pattern. Without this, tokens would
   * come back at the former rate until the next request of a process applies the new one.
   */
  async #applyRates(changed: string): Promise<void> {
    try {
      // The revision is read before the rates, which are then at least as new: with older ones, the request would apply a former rate.
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
      // The limit is set all the same. At another revision, the process that has changed the limits since applies the rates.
      if (!(error instanceof JobboardError)) throw error
    }
  }

  async #hold(key: string, hold: Pick<HoldRecord, 'until' | 'reason'> & { readonly by?: string }): Promise<void> {
    assertKeyOrPattern(key)
    const now = this.#host.now()
    await changeRecord(this.#holds, key, (record) => {
      const former = record && !('error' in record) ? record.value : undefined
      if (former && lastsLonger(former, hold)) return 'keep'
      return { by: this.#host.who, ...hold, at: now }
    })
    await this.#removeEndedHolds(now)
  }

  /** Removes up to 100 holds that are over, because every process reads them. */
  async #removeEndedHolds(now: number): Promise<void> {
    const ended = (await this.#holds.list()).filter(
      (record) => !('error' in record) && record.value.until !== undefined && record.value.until < now - ENDED_HOLD_MS,
    )
    if (ended.length === 0) return
    await this.#holds.write(ended.slice(0, 100).map(({ id, revision }) => ({ id, revision, value: undefined })))
  }
}

/** The time for which a hold stays after its end, in milliseconds, because the clocks of processes differ. */
const ENDED_HOLD_MS = 60_000

/** Returns whether the former hold ends with the new one or later. A new hold without an end replaces any former one. */
function lastsLonger(former: HoldRecord, { until }: Pick<HoldRecord, 'until'>): boolean {
  return until !== undefined && (former.until ?? Number.POSITIVE_INFINITY) >= until
}

/** Checks the name of the person or program that changes a limit. @throws InvalidArgument */
function assertBy({ by }: { readonly by?: string }, what: string): void {
  if (by !== undefined && (typeof by !== 'string' || by === '' || by.length > MAX_BY))
    throw new InvalidArgument(`${what}: by must be a text of 1 to ${MAX_BY} characters`)
}

/** Checks that the reason is a text: with another value, no process could read the hold, and the key would be held until it is resumed. */
function assertReason(reason: unknown, what: string): void {
  if (reason !== undefined && typeof reason !== 'string')
    throw new InvalidArgument(`${what}: reason must be a text, got ${typeof reason}`)
}

/** Checks a key, which is not a pattern. @throws InvalidArgument */
function assertKey(key: unknown): void {
  const problem = limitKeyProblem(key)
  if (problem !== undefined) throw new InvalidArgument(`limit: ${problem}`)
}
