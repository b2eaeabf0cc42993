/** A schedule as `board.schedules` and the command line show it. */
import { toDate } from '../../core/time.ts'
import { describeSpec, type ScheduleSpec } from '../../schedule/internal.ts'
import type { ReadRecord } from '../records/record-store.ts'
import type { CatchUp, Overlap, SchedulePolicies } from './policies.ts'
import type { Firing, JobTemplate, ScheduleCounts, ScheduleRecord } from './record.ts'

/** A schedule as `board.schedules.list` and `show` return it. */
export interface ScheduleView {
  readonly id: string
  /** `waiting`: for the end of the previous job. `unreadable`: a newer release or another program has written it; `error` says so. */
  readonly state: 'active' | 'waiting' | 'paused' | 'ended' | 'unreadable'
  /** The rule in words: `cron '30 2 * * *' in Europe/Berlin`. */
  readonly rule: string
  readonly spec?: ScheduleSpec
  readonly flow?: string
  readonly version?: string
  readonly store?: object
  readonly catchUp?: CatchUp
  readonly overlap?: Overlap
  /** The policies that are not the default, in milliseconds where they are times. */
  readonly policies?: Partial<Omit<SchedulePolicies, 'catchUp' | 'overlap'>>
  /** The options of its jobs. */
  readonly post?: Omit<JobTemplate, 'details'>
  readonly tenant?: string
  readonly next?: Date
  /** The milliseconds by which the next time is late; absent while it is not due. */
  readonly lateMs?: number
  readonly paused?: { readonly since: Date; readonly by: string; readonly reason?: string }
  /** The job whose end decides the next time. */
  readonly awaits?: string
  readonly counts?: ScheduleCounts
  readonly failuresInRow?: number
  /** The newest first. */
  readonly recent?: readonly ScheduleFiring[]
  /** The owner and the version with which it is declared; absent for a schedule that was put at run time. */
  readonly declared?: { readonly owner: string; readonly version: number }
  readonly error?: Error
}

/** The outcome of a schedule at one time. */
export interface ScheduleFiring extends Omit<Firing, 'nominal' | 'at'> {
  readonly nominal: Date
  readonly at: Date
}

export function toScheduleView(record: ReadRecord<ScheduleRecord>, now: number): ScheduleView {
  const { id } = record
  if ('error' in record) return { id, state: 'unreadable', rule: 'unreadable', error: record.error }
  const { value } = record
  const { spec, job, policies, next, paused, awaits, counts, failuresInRow, recent, declared, tenant } = value
  const { details, ...post } = job
  const { flow = '', version } = details
  return {
    ...{ id, state: stateOf(value), rule: describeSpec(spec), spec, flow },
    // Listed schedules keep their stores encoded.
    get store() {
      return details.store ?? {}
    },
    ...(version === undefined ? {} : { version }),
    ...{ catchUp: policies.catchUp, overlap: policies.overlap, policies: changedPolicies(policies), post },
    ...(tenant === undefined ? {} : { tenant }),
    ...(next ? { next: toDate(next.at) } : {}),
    ...(next && next.at < now ? { lateMs: now - next.at } : {}),
    ...(paused ? { paused: { ...paused, since: toDate(paused.since) } } : {}),
    ...(awaits === undefined ? {} : { awaits }),
    ...{ counts, failuresInRow },
    recent: recent.map(({ nominal, at, ...firing }) => ({ ...firing, nominal: toDate(nominal), at: toDate(at) })),
    ...(declared ? { declared: { owner: declared.owner, version: declared.version } } : {}),
  }
}

/** Returns the policies that differ from what a schedule has if nothing is given. */
function changedPolicies({
  catchUp,
  overlap: _,
  max,
  jitterMs,
  ...others
}: SchedulePolicies): NonNullable<ScheduleView['policies']> {
  return { ...others, ...(jitterMs > 0 ? { jitterMs } : {}), ...(catchUp === 'all' ? { max } : {}) }
}

function stateOf({ paused, awaits, next }: ScheduleRecord): ScheduleView['state'] {
  if (paused) return 'paused'
  if (awaits !== undefined) return 'waiting'
  return next ? 'active' : 'ended'
}
