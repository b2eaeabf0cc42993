/** Posts jobs of a schedule on request: at the end of a pause, now, or for times that have passed. */
import { Duplicate, InvalidArgument } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { followsCompletion, toInstant, toOccurrences, Work, zoneOf } from '../../schedule/internal.ts'
import type { PostRequest } from '../contract/index.ts'
import { countTimes, isLate, planNext } from './decide.ts'
import { countSkipped } from './firing.ts'
import { type Firing, isOver, type ScheduleRecord, withRecent } from './record.ts'
import type { ScheduleEditor } from './schedule-editor.ts'
import type { ScheduleHost } from './schedule-host.ts'
import { postsPerWrite, toScheduledPost } from './scheduled-post.ts'

/** The maximum number of jobs of a backfill. */
const MAX_BACKFILL = 1_000

/** The options of `board.schedules.resume`. */
export interface ResumeScheduleOptions {
  /** `latest` posts the newest of the times that have passed meanwhile; by default none is posted. */
  readonly catchUp?: 'none' | 'latest'
}

/** The result of `board.schedules.resume`. */
export interface Resumed {
  /** The number of times that have passed. */
  readonly passed: number
  /** The job of the newest of them, if it was posted. */
  readonly posted?: string
}

/** The options of `board.schedules.backfill`. */
export interface BackfillOptions {
  /** The first nominal time; a text without an offset is a local time of the schedule's zone. */
  readonly from: string | Date
  /** The last nominal time; now by default, and at the latest. */
  readonly to?: string | Date
}

interface PostSource {
  readonly host: Pick<ScheduleHost, 'now' | 'flowRules'>
  readonly editor: ScheduleEditor
}

/** Resumes a schedule: see `board.schedules.resume`. */
export async function resumeSchedule(
  id: string,
  { catchUp = 'none' }: ResumeScheduleOptions,
  { host, editor }: PostSource,
): Promise<Resumed> {
  if (catchUp !== 'none' && catchUp !== 'latest')
    throw new InvalidArgument(`resume: catchUp must be 'none' or 'latest', got ${JSON.stringify(catchUp)}`)
  const settings = await host.flowRules()
  let passed = 0
  let posted: string | undefined
  const outcome = await editor.changeWithKey(id, async (record, key) => {
    posted = undefined
    const { value } = record
    if (!value.paused) return undefined
    const now = host.now()
    const rule = await toOccurrences(value.spec, { now: value.createdAt })
    const hasTimes = !followsCompletion(value.spec) && !isOver(value)
    passed = hasTimes ? countTimes(rule, { after: value.cursor, until: now }) : 0
    const { paused: _, ...rest } = value
    const resumed = { ...rest, cursor: now, failuresInRow: 0 }
    const isPlanned = value.awaits === undefined && !isOver(value)
    const next = isPlanned ? planNext(id, value.policies, { rule, cursor: now }) : undefined
    const newest = catchUp === 'latest' && passed > 0 ? rule.last(now) : undefined
    const skipped = { reason: 'paused', count: newest === undefined ? passed : passed - 1 } as const
    const counts = countSkipped(value.counts, [skipped])
    if (newest === undefined) return { value: { ...resumed, counts, ...(next ? { next } : {}) } }
    await editor.cancelPrevious(record)
    const post = toScheduledPost(id, value, { nominal: newest, now, why: 'time', key, missed: passed - 1, settings })
    posted = post.posting.uuid
    const firing: Firing = { nominal: newest, at: now, why: 'time', uuid: posted }
    const late = counts.late + (isLate(newest, { now, policies: value.policies }) ? 1 : 0)
    const caughtUp = {
      ...{ ...resumed, counts: { ...counts, fired: counts.fired + 1, late } },
      ...{ recent: withRecent([firing], value), last: { nominal: newest, uuid: posted } },
    }
    return { value: { ...caughtUp, ...(next && !isOver(caughtUp) ? { next } : {}) }, posts: [post] }
  })
  // A job of the schedule is on the board: the overlap policy permits no other.
  if (outcome === 'key taken') return resumeSchedule(id, {}, { host, editor })
  return { passed, ...defined({ posted }) }
}

/** Posts a job of the schedule now: see `board.schedules.trigger`. @returns its uuid */
export async function triggerSchedule(
  id: string,
  { store }: { readonly store?: object },
  { host, editor }: PostSource,
): Promise<string> {
  const settings = await host.flowRules()
  let uuid = ''
  const outcome = await editor.changeWithKey(id, async (record, key) => {
    const { value } = record
    const now = host.now()
    await editor.cancelPrevious(record)
    const salt = String(value.counts.manual)
    const post = toScheduledPost(id, value, {
      nominal: now,
      now,
      why: 'manual',
      key,
      salt,
      settings,
      ...defined({ store }),
    })
    uuid = post.posting.uuid
    const firing: Firing = { nominal: now, at: now, why: 'manual', uuid }
    const counts = { ...value.counts, manual: value.counts.manual + 1 }
    return { value: { ...value, counts, recent: withRecent([firing], value) }, posts: [post] }
  })
  if (outcome === 'done') return uuid
  const { value } = await editor.read(id)
  throw new Duplicate(
    `schedule ${id}: one of its jobs is still on the board, and overlap '${value.policies.overlap}' permits no other`,
  )
}

/** Posts a job for each time between two instants: see `board.schedules.backfill`. @returns their uuids */
export async function backfillSchedule(
  id: string,
  options: BackfillOptions,
  { host, editor }: PostSource,
): Promise<readonly string[]> {
  const { value } = await editor.read(id)
  if (followsCompletion(value.spec))
    throw new InvalidArgument(`schedule ${id} has no times of its own: each follows the end of a job`)
  const times = await timesBetween(id, value, { ...options, now: host.now() })
  const settings = await host.flowRules()
  const uuids: string[] = []
  const most = postsPerWrite(value)
  for (let first = 0; first < times.length; first += most) {
    const chunk = times.slice(first, first + most)
    let posts: PostRequest[] = []
    await editor.change(id, (record) => {
      const now = host.now()
      const salt = String(record.value.counts.backfilled)
      posts = chunk.map((nominal) =>
        toScheduledPost(id, record.value, { nominal, now, why: 'backfill', salt, settings }),
      )
      const firings = posts.map(({ posting }, index): Firing => {
        return { nominal: chunk[index] ?? now, at: now, why: 'backfill', uuid: posting.uuid }
      })
      const counts = { ...record.value.counts, backfilled: record.value.counts.backfilled + posts.length }
      return { value: { ...record.value, counts, recent: withRecent(firings.reverse(), record.value) }, posts }
    })
    uuids.push(...posts.map(({ posting }) => posting.uuid))
  }
  return uuids
}

async function timesBetween(
  id: string,
  { spec, createdAt }: ScheduleRecord,
  options: BackfillOptions & { readonly now: number },
): Promise<number[]> {
  const { now } = options
  const zone = zoneOf(spec)
  const from = toInstant(options.from, { zone, what: 'from' })
  const to = options.to === undefined ? now : Math.min(now, toInstant(options.to, { zone, what: 'to' }))
  if (to < from)
    throw new InvalidArgument(
      `backfill of schedule ${id}: to must not be before from, and from must not be in the future`,
    )
  const rule = await toOccurrences(spec, { now: createdAt })
  const work = new Work(`backfill of schedule ${id}`)
  const times: number[] = []
  for (let at = rule.next(from - 1, work); at !== undefined && at <= to; at = rule.next(at, work)) {
    times.push(at)
    if (times.length > MAX_BACKFILL)
      throw new InvalidArgument(
        `backfill of schedule ${id}: there are more than ${MAX_BACKFILL} times between from and to; take a shorter span`,
      )
  }
  return times
}
