/**
 * Decides what a schedule does at an instant: a pure function of the record, its rule and the time.
 *
 * | the time is                                    | `none`   | `latest`                  | `all`                  |
 * |------------------------------------------------|----------|---------------------------|------------------------|
 * | the newest, and not later than a minute        | posted   | posted                    | posted                 |
 * | within the window                              | skipped  | the newest is posted      | the newest `max` are   |
 * | later than the window                          | skipped  | skipped                   | skipped                |
 *
 * Every time after the cursor is decided once: it is posted, or counted as skipped with its reason. Nothing is lost silently.
 */
import { createHash } from 'node:crypto'
import { describeSpec, followsCompletion, type Rule, Work } from '../../schedule/internal.ts'
import { MAX_CATCH_UP, type SchedulePolicies } from './policies.ts'
import type { ScheduleRecord, SkipReason } from './record.ts'

/** A job that is posted within this time after its nominal time is on time: conductors are busy, or one has just died. */
const ON_TIME_MS = 60_000
const DAY_MS = 86_400_000
/** More times than these are not counted one by one: a schedule of every second whose conductors were away for a week. */
const MAX_COUNTED_TIMES = 10_000

/** Times in a row that are not run. */
export interface SkippedTimes {
  readonly reason: SkipReason
  /** The number of times; of more than 10,000 not all are counted. */
  readonly count: number
  readonly from: number
  readonly to: number
  /** The reason why the board refused the job. */
  readonly error?: string
}

export interface Decision {
  /** The nominal times to post, oldest first. */
  readonly due: readonly number[]
  readonly skipped: readonly SkippedTimes[]
  readonly cursor: number
  /** The first time after the cursor; absent if there is none. */
  readonly next: ScheduleRecord['next']
}

export interface DecideOptions {
  readonly rule: Rule
  readonly now: number
}

/** Decides which times after the cursor are posted and which are skipped. Returns undefined if none is due. */
export function decide(id: string, record: ScheduleRecord, { rule, now }: DecideOptions): Decision | undefined {
  const { next, policies, counts } = record
  if (record.paused || !next || next.at > now) return undefined
  const left = policies.times === undefined ? Number.POSITIVE_INFINITY : Math.max(0, policies.times - counts.fired)
  // The interval is counted from the end of the previous job: no time can have been missed.
  if (followsCompletion(record.spec))
    return { due: [next.nominal], skipped: [], cursor: now, next: planNext(id, policies, { rule, cursor: now }) }
  const passed = listPassed(id, record, { next, rule, now })
  const newest = passed.times.at(-1) ?? next.nominal
  const window = policies.windowMs ?? defaultWindow(policies, { newest, rule })
  const wanted = passed.times.filter((nominal) => {
    const isWithinWindow = now - nominal - policies.jitterMs <= window
    return (
      (nominal === newest && !isLate(nominal, { now, policies })) || (policies.catchUp !== 'none' && isWithinWindow)
    )
  })
  const due = (policies.catchUp === 'all' ? wanted.slice(-policies.max) : wanted.slice(-1)).slice(0, left)
  const posted = new Set(due)
  const missed = passed.times.filter((nominal) => !posted.has(nominal))
  const count = missed.length + passed.uncounted
  const to = missed.at(-1) ?? (passed.uncounted > 0 ? rule.last((passed.times[0] ?? now) - 1) : undefined)
  return {
    due,
    skipped: to === undefined ? [] : [{ reason: 'missed', count, from: next.nominal, to }],
    cursor: newest,
    next: planNext(id, policies, { rule, cursor: newest }),
  }
}

/** Returns whether a job that is posted now is late for its nominal time: more than a minute, and the jitter. */
export function isLate(
  nominal: number,
  { now, policies }: { readonly now: number; readonly policies: Pick<SchedulePolicies, 'jitterMs'> },
): boolean {
  return now - nominal - policies.jitterMs > ON_TIME_MS
}

/** Returns the decision with its due times skipped. */
export function skipDue(
  { due, ...decision }: Decision,
  { reason, error }: { readonly reason: SkipReason; readonly error?: string },
): Decision {
  const [from] = due
  const to = due.at(-1)
  if (from === undefined || to === undefined) return { due, ...decision }
  const skipped = { reason, count: due.length, from, to, ...(error === undefined ? {} : { error }) }
  return { ...decision, due: [], skipped: [...decision.skipped, skipped] }
}

/** Returns the decision with at most so many due times; the others are due at once, in the next write. */
export function limitDue(decision: Decision, { most, now }: { readonly most: number; readonly now: number }): Decision {
  const due = decision.due.slice(0, most)
  const [cursor, following] = [due.at(-1), decision.due[most]]
  if (cursor === undefined || following === undefined) return decision
  return { ...decision, due, cursor, next: { nominal: following, at: now } }
}

/** Returns the first time after the cursor, and when its job is posted; undefined if there is none. */
export function planNext(
  id: string,
  { jitterMs }: Pick<SchedulePolicies, 'jitterMs'>,
  { rule, cursor, work }: { readonly rule: Rule; readonly cursor: number; readonly work?: Work },
): ScheduleRecord['next'] {
  const nominal = rule.next(cursor, work)
  if (nominal === undefined) return undefined
  if (jitterMs === 0) return { nominal, at: nominal }
  // A job is posted before the next time, whatever the jitter: their order stays.
  const following = rule.next(nominal, work) ?? Number.POSITIVE_INFINITY
  return { nominal, at: Math.min(nominal + toJitter(id, { nominal, jitterMs }), following - 1) }
}

/** Counts the times of a rule after `after`, up to `until`; at most 10,000, and fewer if they take long to compute. */
export function countTimes(rule: Rule, { after, until }: { readonly after: number; readonly until: number }): number {
  const work = new Work('the times that have passed')
  let count = 0
  for (let at = rule.next(after, work); at !== undefined && at <= until; at = rule.next(at, work)) {
    count += 1
    if (count >= MAX_COUNTED_TIMES || work.isHalfSpent) break
  }
  return count
}

/** Lists the times that are due, from the planned one; where there are very many, only the newest, and the number of others. */
function listPassed(
  id: string,
  { policies, spec }: Pick<ScheduleRecord, 'policies' | 'spec'>,
  { next, rule, now }: DecideOptions & { readonly next: NonNullable<ScheduleRecord['next']> },
): { readonly times: readonly number[]; readonly uncounted: number } {
  const times = [next.nominal]
  const [forwards, backwards] = [new Work(describeSpec(spec)), new Work(describeSpec(spec))]
  while (times.length < MAX_COUNTED_TIMES && !forwards.isHalfSpent) {
    const following = planNext(id, policies, { rule, cursor: times.at(-1) ?? next.nominal, work: forwards })
    if (!following || following.at > now) return { times, uncounted: 0 }
    times.push(following.nominal)
  }
  // Only the newest can be posted now: they are found from the end.
  const newest: number[] = []
  // Both loops have limits that do not depend on the record: any client may have written it.
  const most = Math.min(policies.max, MAX_CATCH_UP)
  let looks = 0
  let at = rule.last(now, backwards)
  while (at !== undefined && newest.length < most) {
    looks += 1
    if (looks > MAX_COUNTED_TIMES) break
    const isDue = (planNext(id, policies, { rule, cursor: at - 1, work: backwards })?.at ?? at) <= now
    if (isDue) newest.unshift(at)
    if (backwards.isHalfSpent && newest.length > 0) break
    at = rule.last(at - 1, backwards)
  }
  const [oldest = now] = newest
  return { times: newest, uncounted: times.filter((nominal) => nominal < oldest).length }
}

/** Returns the window where none is set: a day, and with `latest` not longer than until the following time. */
function defaultWindow(
  { catchUp }: Pick<SchedulePolicies, 'catchUp'>,
  { newest, rule }: { readonly newest: number; readonly rule: Rule },
): number {
  if (catchUp === 'all') return DAY_MS
  return Math.min(DAY_MS, (rule.next(newest) ?? Number.POSITIVE_INFINITY) - newest)
}

/** Returns a number below `jitterMs` that is the same in all processes: they must agree on when a job is due. */
function toJitter(id: string, { nominal, jitterMs }: { readonly nominal: number; readonly jitterMs: number }): number {
  const hash = createHash('sha256').update(`${id}\n${nominal}`).digest()
  return Math.floor((hash.readUInt32BE(0) / 2 ** 32) * jitterMs)
}
