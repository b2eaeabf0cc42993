/**
 * The limits of the board as this process knows them, for its claims.
 *
 *     closed ──the first user opens it──→ watching ──read──→ current ⇄ reading after a hint, a gap, or LimitsChanged
 *        ↑                                                      │
 *        └──────────────────the last user closes it─────────────┘
 *
 * Its users are the view of the board, by which jobs are claimed, and calls of `limits.take`.
 *
 * The revision is read before the records, so the records are at least as new as the revision with which claims are sent. After a change
 * that this process has not received yet, the servers refuse its claims.
 */
import { asError, LimitReached, NotConnected } from '../../core/errors.ts'
import { toDate } from '../../core/time.ts'
import type { Backend } from '../contract/index.ts'
import { describeStop, isStopped } from '../model/limit-stops.ts'
import { type ClaimLimits, type LimitRules, toClaimCosts, toClaimLimits } from '../model/limits.ts'
import type { Posting } from '../model/posting/posting.ts'
import { LIMIT_KINDS } from '../model/record.ts'
import type { BoardRecords } from '../records/board-records.ts'
import { FLOW_SETTINGS } from '../settings/record.ts'
import { FlowRules, NO_FLOW_RULES } from '../settings/rules.ts'
import { CompiledRules } from './compiled-rules.ts'
import { HOLDS, LIMITS } from './record.ts'

export interface LimitBookOptions {
  readonly backend: Pick<Backend, 'limits' | 'shared' | 'clock'>
  readonly records: Pick<BoardRecords, 'of' | 'watch'>
  /** Called when the rules have changed. */
  readonly onRules: (rules: LimitRules) => void
  readonly onError: (error: Error) => void
}

const NO_LIMITS: ClaimLimits['wants'] = []
/** No board has this revision: a claim with it is refused. */
const UNKNOWN_REVISION = -1

/** A user of the limits. `view`: the view of the board, and the claims of jobs. `tokens`: calls that take tokens outside of claims. */
export type LimitBookUser = 'view' | 'tokens'

export class LimitBook {
  readonly #options: LimitBookOptions
  readonly #users = new Set<LimitBookUser>()
  #revision: number | undefined
  #rules = new CompiledRules()
  #flowRules = NO_FLOW_RULES
  #opening: Promise<void> | undefined
  #watches: readonly AsyncDisposable[] = []
  #reading: Promise<void> | undefined
  /** Whether the limits may have changed since the current read began. */
  #isStale = false

  constructor(options: LimitBookOptions) {
    this.#options = options
  }

  get rules(): CompiledRules {
    return this.#rules
  }

  /** The settings of flows, which have the revision of {@link rules}. */
  get flowRules(): FlowRules {
    return this.#flowRules
  }

  /** Whether the board has limits; known once the board is open. Other programs that claim jobs of a shared board would take no slots. */
  get isSupported(): boolean {
    return !this.#options.backend.shared
  }

  /** The revision of {@link rules}; undefined before {@link open}, and on a board without limits. */
  get revision(): number | undefined {
    return this.#revision
  }

  /** Returns whether {@link open} has nothing to do for the user. */
  isOpenFor(user: LimitBookUser): boolean {
    return this.#users.has(user) && (this.#revision !== undefined || !this.isSupported)
  }

  /** Reads the limits, and watches them until all users have closed. @throws NotConnected, AccessDenied */
  async open(user: LimitBookUser): Promise<void> {
    this.#users.add(user)
    if (this.#revision !== undefined || !this.isSupported) return
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined
      // All users have closed meanwhile.
      if (this.#users.size === 0) this.#endWatches()
    })
    await this.#opening
  }

  /** Ends the watch if no other user needs it. The next {@link open} reads the limits again. */
  close(user: LimitBookUser): void {
    this.#users.delete(user)
    // While the watches are being created, the end of that does it: until then not all of them are known.
    if (this.#users.size === 0 && !this.#opening) this.#endWatches()
  }

  #endWatches(): void {
    const watches = this.#watches
    this.#watches = []
    this.#revision = undefined
    for (const watch of watches) Promise.resolve(watch[Symbol.asyncDispose]()).catch(() => undefined)
  }

  /**
   * Returns the limits whose slots and tokens a claim of the job takes; undefined on a board without limits, and before {@link open}. The
   * claim of a cancelled job takes nothing of a key that is stopped: it only ends the job.
   *
   * @throws LimitReached for a job with a key that is held
   */
  limitsOf(posting: Posting, { isCancelled }: { readonly isCancelled: boolean }): ClaimLimits | undefined {
    if (this.#revision === undefined) return undefined
    const rules = isCancelled ? withoutStops(this.#rules) : this.#rules
    if (rules.isEmpty) return { revision: this.#revision, wants: NO_LIMITS }
    this.#assertNotHeld(posting, rules)
    return { revision: this.#revision, wants: toClaimLimits(posting, rules) }
  }

  /**
   * Reads the limits again, and until then claims are refused: the servers have lost their data, and the next revisions may be equal to former ones.
   * Never rejects.
   */
  async readAnew(): Promise<void> {
    if (this.#revision === undefined) return
    this.#revision = UNKNOWN_REVISION
    // The next claim, which is refused, tries again.
    await this.refresh().catch(() => undefined)
  }

  /** Reads the limits again if they have changed. @throws NotConnected */
  async refresh(): Promise<void> {
    if (!this.isSupported) return
    this.#isStale = true
    this.#reading ??= this.#readWhileStale().finally(() => {
      this.#reading = undefined
    })
    await this.#reading
  }

  /**
   * Checks that no key of the job is held. The transaction need not check it: a hold that this process does not know yet has changed the
   * revision of the limits, at which the servers refuse the claim.
   */
  #assertNotHeld(posting: Posting, rules: LimitRules): void {
    for (const { key } of toClaimCosts(posting)) {
      const rule = rules.ruleOf(key) ?? {}
      const { heldUntil = 0 } = rule
      if (heldUntil <= this.#options.backend.clock.now()) continue
      const until = Number.isFinite(heldUntil) ? { until: toDate(Math.ceil(heldUntil)) } : {}
      const why = describeStop(key, rule, { isHeld: true })
      throw new LimitReached(`job ${posting.uuid} (${posting.name}): ${why}`, { key, ...until })
    }
  }

  async #open(): Promise<void> {
    const { records, onError } = this.#options
    const onChange = () => {
      this.#isStale = true
      // The first read is still to come, or is repeated because of `#isStale`.
      if (this.#revision === undefined) return
      this.refresh().catch((error: unknown) => {
        // The gap that follows the loss of a connection reads the limits again.
        if (!(error instanceof NotConnected)) onError(asError(error))
      })
    }
    const watches: AsyncDisposable[] = []
    this.#watches = watches
    try {
      await Promise.all(LIMIT_KINDS.map(async (kind) => watches.push(await records.watch(kind, onChange))))
      await this.refresh()
    } catch (error) {
      // Otherwise these watches would stay: the next attempt creates its own.
      this.#endWatches()
      throw error
    }
  }

  async #readWhileStale(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false
      await this.#read()
    }
  }

  async #read(): Promise<void> {
    const { backend, onRules } = this.#options
    const revision = await backend.limits.revision()
    if (revision === this.#revision) return
    const found = revision > 0 ? await this.#readRules() : undefined
    // All users have closed meanwhile, and nothing is watched. With a revision, the next `open` would take the limits as watched.
    if (this.#users.size === 0) return
    this.#revision = revision
    // The revision is 0 where nothing was ever set: also on a board whose servers have lost their data.
    if (!found && this.#rules.isEmpty && this.#flowRules.isEmpty) return
    const { rules, flows } = found ?? { rules: new CompiledRules(), flows: NO_FLOW_RULES }
    this.#rules = rules
    this.#flowRules = flows
    onRules(rules)
  }

  async #readRules(): Promise<{ readonly rules: CompiledRules; readonly flows: FlowRules }> {
    const { records, onError } = this.#options
    const [limits, holds, settings] = await Promise.all([
      records.of(LIMITS).list(),
      records.of(HOLDS).list(),
      records.of(FLOW_SETTINGS).list(),
    ])
    for (const record of [...limits, ...holds, ...settings]) if ('error' in record) onError(record.error)
    const flows = new FlowRules(settings)
    return { rules: new CompiledRules(limits, holds, flows), flows }
  }
}

/** Returns the rules without the rules of keys that are stopped. */
function withoutStops(rules: LimitRules): LimitRules {
  return {
    isEmpty: rules.isEmpty,
    isFair: rules.isFair,
    ruleOf(key) {
      const rule = rules.ruleOf(key)
      return rule && isStopped(rule) ? undefined : rule
    },
  }
}
