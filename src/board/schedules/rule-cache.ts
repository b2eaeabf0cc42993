/** The rules of schedules, computed once for each spec: a cron expression takes longer to parse than its next time to compute. */
import { type Rule, toOccurrences } from '../../schedule/internal.ts'
import type { BoardRecord } from '../records/record-store.ts'
import type { ScheduleRecord } from './record.ts'

export class RuleCache {
  readonly #rules = new Map<string, { readonly key: string; readonly rule: Promise<Rule> }>()

  /** Returns the rule of the schedule. @throws InvalidArgument for a spec that this release cannot compute */
  ruleOf({ id, value }: Pick<BoardRecord<ScheduleRecord>, 'id' | 'value'>): Promise<Rule> {
    const { spec } = value
    const key = JSON.stringify(spec)
    const known = this.#rules.get(id)
    if (known?.key === key) return known.rule
    const rule = toOccurrences(spec, { now: value.createdAt })
    this.#rules.set(id, { key, rule })
    // The reason of a failure may be gone later, such as a missing module.
    rule.catch(() => this.#rules.delete(id))
    return rule
  }

  /** Drops the rule of a schedule that was removed. */
  delete(id: string): void {
    this.#rules.delete(id)
  }
}
