/** Finds the rule for a key: the limit of the key itself, else the limit of the pattern with the longest prefix; and its holds. */
import { PatternMap } from '../../core/collections/pattern-map.ts'
import { defined } from '../../core/options.ts'
import {
  isQueueKey,
  isSwitchKey,
  type LimitOrigin,
  type LimitRule,
  type LimitRules,
  toFlowOfKey,
} from '../model/limits.ts'
import type { ReadRecord } from '../records/record-store.ts'
import { type FlowRules, NO_FLOW_RULES } from '../settings/rules.ts'
import { type HoldRecord, type LimitRecord, toTokenRate } from './record.ts'

/** The number of keys whose rules are cached: a pattern may have as many keys as there are jobs. */
const MAX_CACHED_KEYS = 10_000

export class CompiledRules implements LimitRules {
  readonly #limits: PatternMap<ReadRecord<LimitRecord>>
  readonly #holds: PatternMap<ReadRecord<HoldRecord>>
  readonly #flows: FlowRules
  readonly #cached = new Map<string, LimitRule | undefined>()

  /** @param flows the settings of flows, which hold the keys of disabled flows */
  constructor(
    limits: readonly ReadRecord<LimitRecord>[] = [],
    holds: readonly ReadRecord<HoldRecord>[] = [],
    flows: FlowRules = NO_FLOW_RULES,
  ) {
    this.#limits = new PatternMap(limits, ({ id }) => id)
    this.#holds = new PatternMap(holds, ({ id }) => id)
    this.#flows = flows
  }

  get isEmpty(): boolean {
    return this.#limits.size + this.#holds.size === 0 && !this.#flows.stopsAny
  }

  get isFair(): boolean {
    return this.#limits.some((record) => !('error' in record) && record.value.fair === true)
  }

  ruleOf(key: string): LimitRule | undefined {
    if (this.#cached.has(key)) return this.#cached.get(key)
    const rule = this.#compile(key)
    if (this.#cached.size >= MAX_CACHED_KEYS) this.#cached.clear()
    this.#cached.set(key, rule)
    return rule
  }

  /** Returns the id of the record that applies to the key: the key itself, or a pattern. */
  sourceOf(key: string): string | undefined {
    return this.#limits.find(key)?.id
  }

  #compile(key: string): LimitRule | undefined {
    const isApplied = ({ id }: { readonly id: string }) => !isSwitchKey(key) && (!isQueueKey(key) || isQueueKey(id))
    const limits = this.#limits.findAll(key).filter(isApplied)
    const [limit] = limits
    const holds = this.#holds.findAll(key).filter(isApplied)
    const flow = toFlowOfKey(key)
    const { disabled, unreadable } = this.#flows.ruleOf(flow)
    // This release cannot read what a newer one has set, and must not exceed it: it starts no job of its keys.
    if ((limit && 'error' in limit) || unreadable) return { heldUntil: Number.POSITIVE_INFINITY }
    if (!limit && holds.length === 0 && !disabled) return undefined
    const { concurrency, rate } = limit?.value ?? {}
    // A key with a setting of its own takes turns with the others of the pattern.
    const fair = limits.find((record) => !('error' in record) && record.value.fair)?.id
    return {
      ...(fair === undefined ? {} : { fair }),
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(rate ? { rate: toTokenRate(rate) } : {}),
      ...(limit && concurrency === 0 ? { closed: toOrigin(limit.id, limit.value) } : {}),
      ...longestOf(holds),
      ...(disabled ? { heldUntil: Number.POSITIVE_INFINITY, hold: { ...disabled, ...defined({ flow }) } } : {}),
    }
  }
}

/** Returns the hold that lasts longest. A hold that this release cannot read has no end. */
function longestOf(holds: readonly ReadRecord<HoldRecord>[]): Pick<LimitRule, 'heldUntil' | 'hold'> {
  if (holds.some((hold) => 'error' in hold)) return { heldUntil: Number.POSITIVE_INFINITY }
  const readable = holds.flatMap((hold) => ('error' in hold ? [] : [hold]))
  const ends = readable.map(({ value }) => value.until ?? Number.POSITIVE_INFINITY)
  const heldUntil = Math.max(...ends)
  const longest = readable[ends.indexOf(heldUntil)]
  return longest ? { heldUntil, hold: toOrigin(longest.id, longest.value) } : {}
}

function toOrigin(id: string, { by, at, reason }: Pick<HoldRecord, 'by' | 'at' | 'reason'>): LimitOrigin {
  return { id, by, at, ...defined({ reason }) }
}
