/** The settings that apply to a flow, key by key: those of the flow itself, else of the longest pattern that sets the key. */
import { PatternMap } from '../../core/collections/pattern-map.ts'
import { InvalidPosting } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { formatDuration } from '../../core/time.ts'
import { HOLD_FLOW, toExpirySteps } from '../model/expiry.ts'
import type { LimitOrigin } from '../model/limits.ts'
import type { PostOptions } from '../model/posting/post-options.ts'
import type { Posting } from '../model/posting/posting.ts'
import { DEFAULT_QUEUE } from '../model/queues.ts'
import type { ReadRecord } from '../records/record-store.ts'
import type { FlowSettingsRecord } from './record.ts'
import type { FlowSettingKey, StoredSettings } from './settings.ts'

/** The keys that are written into a posting, for servers and for the order of claims. */
const POSTED_KEYS = ['priority', 'queue', 'delay', 'expiresAfter', 'onOwnerLost'] as const
/** The keys that are looked up when a job is claimed or settled: a posting says which of them its caller has given. */
const CLAIM_KEYS = ['maxAttempts', 'backOff', 'deadline', 'onOwnerLost', 'expiresAfter', 'resultTtl'] as const

type ClaimKey = (typeof CLAIM_KEYS)[number]
/** The key of a setting that a job's posting can have, too. */
export type ExplicitKey = (typeof POSTED_KEYS)[number] | ClaimKey

/** The setting of one key that applies to a flow. */
export interface AppliedSetting {
  readonly value: NonNullable<StoredSettings[FlowSettingKey]>
  /** The flow or pattern in whose record it is. */
  readonly from: string
  /** Whether it replaces what callers say. */
  readonly force: boolean
}

/** What applies to the jobs of one flow. */
export interface FlowRule {
  readonly applied: ReadonlyMap<FlowSettingKey, AppliedSetting>
  /** Who has disabled the flow; undefined for a flow whose jobs are claimed. */
  readonly disabled: LimitOrigin | undefined
  /** The error of a record that cannot be read here: nothing is known of its settings, so no job of the flow is claimed. */
  readonly unreadable: Error | undefined
}

const NO_RULE: FlowRule = { applied: new Map(), disabled: undefined, unreadable: undefined }
/** The number of flows whose rules are cached: the names of flows in postings are any texts. */
const MAX_CACHED_FLOWS = 10_000

/** The settings of all flows as they are set now. */
export class FlowRules {
  readonly #records: PatternMap<ReadRecord<FlowSettingsRecord>>
  readonly #cached = new Map<string, FlowRule>()

  /** Whether jobs of any flow are stopped: it is disabled, or it has a record that cannot be read here. */
  readonly stopsAny: boolean

  constructor(records: readonly ReadRecord<FlowSettingsRecord>[] = []) {
    this.#records = new PatternMap(records, ({ id }) => id)
    this.stopsAny = records.some((record) => 'error' in record || record.value.settings.enabled === false)
  }

  /** Whether nothing is set for any flow. */
  get isEmpty(): boolean {
    return this.#records.size === 0
  }

  /** Returns the values that all records have for a key. */
  valuesOf<K extends FlowSettingKey>(key: K): readonly NonNullable<StoredSettings[K]>[] {
    return this.#records.values().flatMap((record) => {
      const value = 'error' in record ? undefined : record.value.settings[key]
      return value === undefined ? [] : [value]
    })
  }

  /** Returns what applies to a flow; nothing to a job without one. A hold of a resource belongs to its caller, so nothing applies to it. */
  ruleOf(flow: string | undefined): FlowRule {
    if (flow === undefined || flow === HOLD_FLOW || this.isEmpty) return NO_RULE
    const known = this.#cached.get(flow)
    if (known) return known
    const rule = toRule(this.#records.findAll(flow))
    if (this.#cached.size >= MAX_CACHED_FLOWS) this.#cached.clear()
    this.#cached.set(flow, rule)
    return rule
  }

  /** Returns the value of a setting that is no option of a post. */
  valueOf<K extends 'keepResults' | 'keepLogbooks' | 'removeTrashAfter'>(
    flow: string | undefined,
    key: K,
  ): StoredSettings[K] {
    // The record's parser has checked the type of each key.
    return this.ruleOf(flow).applied.get(key)?.value as StoredSettings[K]
  }

  /**
   * Returns a posting, or the template of a schedule's postings, as it is posted.
   *
   * @param given the options that the caller has given, which settings replace only with `force`
   * @throws InvalidPosting if the job would expire before it could be claimed, because of a setting with `force`
   */
  withPosted<T extends Template>(template: T, given: readonly string[] = template.explicit ?? []): T {
    const replacing = this.#replacing(template.details.flow, { keys: POSTED_KEYS, explicit: given })
    if (replacing.length === 0) return template
    const changes: Mutable<StoredSettings> = Object.fromEntries(replacing.map(([key, { value }]) => [key, value]))
    if (template.reserved) {
      // The poster claims the job itself: it waits no delay, and the job expires when the poster has died.
      delete changes.delay
      delete changes.expiresAfter
    } else resolveTimes(template, changes, new Map(replacing))
    const posted = withChanges(template, changes)
    // In a posting, an absent queue stands for the default one.
    if (posted.queue === DEFAULT_QUEUE) delete posted.queue
    return posted
  }

  /** Returns the posting as it is treated at a claim or settlement. Returns the posting itself where no setting changes it. */
  applyTo(posting: Posting): Posting {
    const { details, explicit = [] } = posting
    const changes = this.#changes(details.flow, { keys: CLAIM_KEYS, explicit })
    if (!changes) return posting
    const { expiresAfter, ...others } = changes
    // The board keeps the time of the first post: the time of one that was replaced counts from the newest post.
    const elapsed = toExpirySteps(posting.replacedAfter ?? 0)
    return withChanges(posting, {
      ...others,
      ...(expiresAfter === undefined ? {} : { expiresAfter: elapsed + expiresAfter }),
    })
  }

  /** Returns the settings that {@link applyTo} puts in place of options of the posting, with their origins. */
  replacing({ details, explicit = [] }: Posting): ReadonlyMap<ClaimKey, AppliedSetting> {
    return new Map(this.#replacing(details.flow, { keys: CLAIM_KEYS, explicit }))
  }

  /** Returns the settings of these keys that apply: those with `force`, and those whose options the caller has not given; undefined if there are none. */
  #changes(flow: string | undefined, asked: ReplacedOptions<ExplicitKey>): StoredSettings | undefined {
    const changed = this.#replacing(flow, asked).map(([key, { value }]) => [key, value] as const)
    return changed.length === 0 ? undefined : Object.fromEntries(changed)
  }

  #replacing<K extends ExplicitKey>(
    flow: string | undefined,
    { keys, explicit }: ReplacedOptions<K>,
  ): (readonly [K, AppliedSetting])[] {
    const { applied } = this.ruleOf(flow)
    if (applied.size === 0) return []
    return keys.flatMap((key) => {
      const setting = applied.get(key)
      return setting && (setting.force || !explicit.includes(key)) ? [[key, setting] as const] : []
    })
  }
}

/** The options for which settings are looked up, and which of them the caller has given. */
interface ReplacedOptions<K> {
  readonly keys: readonly K[]
  readonly explicit: readonly string[]
}

/** The fields of a posting, or of a template of postings, on which settings depend. */
type Template = Pick<Posting, 'details' | 'explicit' | 'reserved'> & {
  onOwnerLost?: 'fail'
  queue?: string
  delay?: number
  expiresAfter?: number
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/**
 * Leaves out the setting of a time by which the job would expire before it could be claimed: first the delay, then the expiry. A setting with `force` stays.
 *
 * @throws InvalidPosting if both have to stay
 */
function resolveTimes(
  template: Template,
  changes: Mutable<StoredSettings>,
  applied: ReadonlyMap<ExplicitKey, AppliedSetting>,
): void {
  const times = () => [changes.delay ?? template.delay, changes.expiresAfter ?? template.expiresAfter] as const
  for (const key of ['delay', 'expiresAfter'] as const) {
    const [delay, expiresAfter] = times()
    if (delay === undefined || expiresAfter === undefined || delay < expiresAfter) return
    if (!applied.get(key)?.force) delete changes[key]
  }
  const [delay, expiresAfter] = times()
  if (delay === undefined || expiresAfter === undefined || delay < expiresAfter) return
  throw new InvalidPosting(
    `flow ${template.details.flow}: the job would expire before it could be claimed: its delay is ${formatDuration(delay)}, and it expires after ` +
      `${formatDuration(expiresAfter)}; jobboard flows show lists the settings of the flow`,
  )
}

function withChanges<T extends Template>(template: T, changes: StoredSettings | undefined): T {
  if (!changes) return template
  const { onOwnerLost, ...others } = changes
  const changed: T = { ...template, ...others }
  // In a posting, an absent `onOwnerLost` stands for 'retry'.
  if (onOwnerLost === 'fail') return { ...changed, onOwnerLost }
  if (onOwnerLost === 'retry') delete changed.onOwnerLost
  return changed
}

/** The rules of a board on which nothing is set. */
export const NO_FLOW_RULES = new FlowRules()

/** Returns which of the options that count at a claim the caller of a post has given; undefined for none, as with most posts. */
export function givenClaimKeys(options: PostOptions): readonly ExplicitKey[] | undefined {
  if (CLAIM_KEYS.every((key) => options[key] === undefined)) return undefined
  return CLAIM_KEYS.filter((key) => options[key] !== undefined)
}

/** Returns which of the options the caller of a post has given. */
export function givenKeys(options: PostOptions): readonly ExplicitKey[] {
  const given = [...new Set([...POSTED_KEYS, ...CLAIM_KEYS])].filter((key) => options[key] !== undefined)
  return options.size !== undefined && !given.includes('queue') ? [...given, 'queue'] : given
}

function toRule(records: readonly ReadRecord<FlowSettingsRecord>[]): FlowRule {
  if (records.length === 0) return NO_RULE
  const applied = new Map<FlowSettingKey, AppliedSetting>()
  let disabled: LimitOrigin | undefined
  for (const record of records) {
    if ('error' in record) return { applied, disabled: undefined, unreadable: record.error }
    const { id, value } = record
    const { force = false, ...settings } = value.settings
    for (const [key, setting] of Object.entries(settings) as [FlowSettingKey, AppliedSetting['value']][]) {
      if (applied.has(key)) continue
      applied.set(key, { value: setting, from: id, force })
      if (key === 'enabled' && setting === false) disabled = toOrigin(id, value.switched ?? value)
    }
  }
  return { applied, disabled, unreadable: undefined }
}

function toOrigin(id: string, { by, at, reason }: NonNullable<FlowSettingsRecord['switched']>): LimitOrigin {
  return { id, by, at, ...defined({ reason }) }
}
