/**
 * Fires a schedule: one transaction changes the record at its revision and posts the jobs. Of two processes that fire at once, the
 * second is refused by the revision, so each nominal time is decided once, whichever process fires, and however often.
 *
 * | refused by          | means                                     | then                                           |
 * |---------------------|-------------------------------------------|------------------------------------------------|
 * | the revision        | another process has fired or changed it   | nothing: the view reads the new record         |
 * | the key             | a job of the schedule is on the board     | the overlap policy decides, in a second write  |
 * | an invalid job      | it can never be posted                    | the time is skipped with the reason `refused`  |
 */
import type { Turns } from '../../core/async/turns.ts'
import { InvalidArgument, JobFailure, UnsupportedCapability } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import { followsCompletion } from '../../schedule/internal.ts'
import type { BoardRecord, RecordStore } from '../records/record-store.ts'
import type { FlowRules } from '../settings/rules.ts'
import { type Decision, decide, isLate, limitDue, type SkippedTimes, skipDue } from './decide.ts'
import type { Overlap } from './policies.ts'
import { type Firing, isOver, type ScheduleCounts, type ScheduleRecord, withRecent } from './record.ts'
import type { RuleCache } from './rule-cache.ts'
import { postsPerWrite, queuedKey, scheduleKey, toScheduledPost } from './scheduled-post.ts'

/** The outcome of one transaction for a schedule. */
export interface Fired {
  readonly id: string
  readonly tenant: string | undefined
  readonly posted: readonly { readonly uuid: string; readonly nominal: number; readonly lateMs: number }[]
  readonly skipped: readonly SkippedTimes[]
}

export interface FiringOptions {
  readonly store: RecordStore<ScheduleRecord>
  readonly rules: RuleCache
  /** Returns the settings of flows. @throws NotConnected */
  readonly flowRules: () => Promise<FlowRules>
  /** Returns the time of the board's clock. */
  readonly now: () => number
  /** The turns of this firing among others: rules take time to compute. */
  readonly turns?: Turns
  /** Cancels a job if it is on the board. */
  readonly cancel: (uuid: string, reason: string) => Promise<void>
}

/**
 * Fires the schedule if it is due. Returns undefined if it is not, or if another process was faster.
 *
 * @throws NotConnected, OutcomeUnknown: fire again; nothing is done twice. If the answer to a write was lost that was done, this firing
 *   is not reported; the record shows it
 */
export async function fire(record: BoardRecord<ScheduleRecord>, options: FiringOptions): Promise<Fired | undefined> {
  const { id, value } = record
  const now = options.now()
  let decided: Decision | undefined
  try {
    await options.turns?.begin()
    const rule = await options.rules.ruleOf(record)
    await options.turns?.begin()
    decided = decide(id, value, { rule, now })
  } catch (error) {
    if (!(error instanceof InvalidArgument)) throw error
    return pauseFor(record, { error, now }, options)
  }
  if (!decided) return undefined
  const decision = decided.due.length > 1 ? limitDue(decided, { most: postsPerWrite(value), now }) : decided
  const { overlap } = value.policies
  // Before the write: if this process dies in between, the next one cancels the same job again.
  if (overlap === 'cancelPrevious' && decision.due.length > 0) await cancelPrevious(record, options)
  for (const key of decision.due.length > 0 ? keysFor(id, overlap) : []) {
    const outcome = await write(record, { decision, now, key }, options)
    if (outcome !== 'key taken') return outcome
  }
  const outcome = await write(
    record,
    { decision: skipDue(decision, { reason: 'overlap' }), now, key: undefined },
    options,
  )
  return outcome === 'key taken' ? undefined : outcome
}

/** Pauses a schedule whose rule cannot be computed: otherwise it would be tried every second, and fail, unnoticed. */
async function pauseFor(
  { id, revision, value }: BoardRecord<ScheduleRecord>,
  { error, now }: { readonly error: Error; readonly now: number },
  { store }: Pick<FiringOptions, 'store'>,
): Promise<Fired | undefined> {
  const nominal = value.next?.nominal ?? now
  const skipped: SkippedTimes = { reason: 'refused', count: 1, from: nominal, to: nominal, error: error.message }
  const rest = applyDecision(
    value,
    { due: [], skipped: [skipped], cursor: nominal, next: undefined },
    { posted: [], now },
  )
  const paused = { since: now, by: 'its rule', reason: error.message }
  const written = await store.write([{ id, revision, value: { ...rest, paused } }])
  return written.done ? { id, tenant: value.tenant, posted: [], skipped: [skipped] } : undefined
}

/** Returns the keys with which the job may be posted, in the order in which they are tried; undefined is no key. */
export function keysFor(id: string, overlap: Overlap): readonly (string | undefined)[] {
  if (overlap === 'skip') return [scheduleKey(id)]
  if (overlap === 'queueOne') return [scheduleKey(id), queuedKey(id)]
  return [undefined]
}

/** Cancels the jobs that were posted last, for a time and on request; they may have ended. */
export async function cancelPrevious(
  { id, value }: BoardRecord<ScheduleRecord>,
  { cancel }: Pick<FiringOptions, 'cancel'>,
): Promise<void> {
  const newest = value.recent.find(({ uuid }) => uuid !== undefined)?.uuid
  for (const uuid of new Set([newest, value.last?.uuid]))
    if (uuid !== undefined) await cancel(uuid, `schedule ${id} posts its next job`)
}

interface Attempt {
  readonly decision: Decision
  readonly now: number
  readonly key: string | undefined
}

async function write(
  record: BoardRecord<ScheduleRecord>,
  { decision, now, key }: Attempt,
  options: FiringOptions,
): Promise<Fired | 'key taken' | undefined> {
  const { id, revision, value } = record
  const missed = decision.skipped.find(({ reason }) => reason === 'missed')?.count ?? 0
  const settings = await options.flowRules()
  try {
    const posts = decision.due.map((nominal, index) =>
      toScheduledPost(id, value, { nominal, now, why: 'time', key, missed: index === 0 ? missed : 0, settings }),
    )
    const posted = decision.due.map((nominal, index) => {
      return { nominal, uuid: posts[index]?.posting.uuid ?? '', lateMs: Math.max(0, now - nominal) }
    })
    const changed = applyDecision(value, decision, { posted, now })
    const written = await options.store.write([{ id, revision, value: changed }], posts)
    if (!written.done) return 'key' in written.conflict ? 'key taken' : undefined
    return { ...{ id, tenant: value.tenant }, posted, skipped: decision.skipped }
  } catch (error) {
    if (decision.due.length === 0 || !(error instanceof JobFailure || error instanceof UnsupportedCapability))
      throw error
    // Without this the schedule would try the same job for ever, and no later one.
    const refused = skipDue(decision, { reason: 'refused', error: describeError(error) })
    return write(record, { decision: refused, now, key: undefined }, options)
  }
}

/** Returns the record as it is after the decision. */
function applyDecision(
  value: ScheduleRecord,
  { cursor, next, skipped }: Decision,
  { posted, now }: { readonly posted: Fired['posted']; readonly now: number },
): ScheduleRecord {
  const { next: _, ...rest } = value
  const firings = posted.map(({ nominal, uuid }): Firing => ({ nominal, at: now, why: 'time', uuid }))
  const skips = skipped.map(({ reason, count, to, error }): Firing => {
    const entry = { nominal: to, at: now, why: 'time', skipped: reason } as const
    return { ...entry, ...(count > 1 ? { count } : {}), ...(error === undefined ? {} : { error }) }
  })
  const late = posted.filter(({ nominal }) => isLate(nominal, { now, policies: value.policies }))
  const counts = {
    ...countSkipped(value.counts, skipped),
    fired: value.counts.fired + posted.length,
    late: value.counts.late + late.length,
  }
  const following = isOver({ ...value, counts }) ? undefined : next
  const last = posted.at(-1)
  // The end of this job decides the next time, if there is one.
  const awaited = followsCompletion(value.spec) && following ? last : undefined
  return {
    ...rest,
    cursor,
    ...(awaited ? { awaits: awaited.uuid } : following && { next: following }),
    ...(last ? { last: { nominal: last.nominal, uuid: last.uuid } } : {}),
    counts,
    recent: withRecent([...firings.reverse(), ...skips.reverse()], value),
  }
}

/** Adds skipped times to the counts. */
export function countSkipped(
  counts: ScheduleCounts,
  times: readonly Pick<SkippedTimes, 'reason' | 'count'>[],
): ScheduleCounts {
  const skipped = { ...counts.skipped }
  for (const { reason, count } of times) skipped[reason] = (skipped[reason] ?? 0) + count
  return { ...counts, skipped }
}
