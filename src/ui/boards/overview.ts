/** Computes the overview of a board: the numbers of jobs by state, why they wait, and warnings. */
import type { LimitView, ScheduleView, TrashedJob } from '../../board/index.ts'
import { boardInternals, isCancellation, isKnownToAny, type ListedJob, toFlowReference } from '../../board/internal.ts'
import { UnsupportedCapability } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import type { Redactor } from '../../core/redaction.ts'
import { conductorView, describeClock } from '../../views/index.ts'
import { describeKeptSlots, type JobWarning, jobWarnings } from '../../views/internal.ts'
import type { WireCount, WireOverview } from '../wire/board.ts'
import type { WireScan } from '../wire/common.ts'
import { type ListOptions, nextStartsOf, SCAN_JOBS, SCAN_MS } from './job-list.ts'
import { reasonOf, stateOf, toIso, toWaitingFor } from './rows.ts'
import { SLOW, slownessOf } from './slowness.ts'
import { groupTrash, quote } from './trash-groups.ts'
import type { ViewedBoard } from './viewed-board.ts'

const MAX_RUNNING = 10
const MAX_FAILURES = 5
const MAX_SCHEDULES = 5
/** The most open jobs whose reasons are computed. */
const MAX_REASONS = 2_000
const DAY_MS = 86_400_000
/** A conductor reports once a minute. One that has not reported for this long may hang. */
const SILENT_MS = 180_000

export type OverviewOptions = Pick<ListOptions, 'redaction' | 'waitMs'>

/** Reads the overview. Requests within a second, or 5 s without changes, share an answer. @throws NotConnected, AccessDenied */
export async function readOverview(viewed: ViewedBoard, options: OverviewOptions): Promise<WireOverview> {
  await viewed.touch()
  const key = options.waitMs === undefined ? 'overview' : 'overview so far'
  const read = () => computeOverview(viewed, options)
  const overview = await viewed.cache.get(key, { minAgeMs: 1_000, maxAgeMs: 5_000 }, read)
  return { ...overview, minutes: viewed.feed.throughput.last(Date.now()) }
}

async function computeOverview(viewed: ViewedBoard, { redaction, waitMs }: OverviewOptions): Promise<WireOverview> {
  const { board } = viewed
  const [entities, now, limits, schedules, trashed, newTrash, history] = await Promise.all([
    viewed.conductors(),
    boardInternals(board).readClock(),
    viewed.limits(),
    ifSupported(() => board.schedules.list()),
    readTrashCount(viewed),
    readNewTrash(viewed),
    viewed.history(),
  ])
  const conductors = entities.map(conductorView)
  const counter = new JobCounter({ now, conductors: entities, nextStarts: nextStartsOf(limits, now) })
  for (const { details } of newTrash) counter.addTrashed(details)
  // The page has no jobs, because the counter accepts none.
  const page = await boardInternals(board).jobPage({
    ...{ limit: 1, most: SCAN_JOBS, timeMs: SCAN_MS, waitMs },
    owners: true,
    accept: counter.add,
  })
  const atLeast = page.next !== undefined || page.reading !== undefined
  const counted = (value: number): WireCount => ({ value, atLeast })
  const { counts } = counter
  return {
    paused: board.paused,
    connected: board.connected,
    at: new Date(now).toISOString(),
    jobs: {
      waiting: counted(counts.waiting),
      delayed: counted(counts.delayed),
      running: counted(counts.running),
      trashed,
    },
    byPriority: counter.byPriority(),
    byFlow: counter.byFlow(),
    ...defined({ oldestWaiting: counter.oldestWaiting() }),
    waitingFor: counter.reasons(redaction),
    waitingForSlot: counter.waitingForSlot,
    ...defined({ reasonsOf: counter.reasonsOf }),
    running: counter.running(),
    slots: {
      busy: sum(conductors.map(({ running = 0 }) => running)),
      all: sum(conductors.map(({ concurrency = 0 }) => concurrency)),
      conductors: conductors.length,
    },
    minutes: [],
    failures: toFailures(newTrash, redaction),
    nextSchedules: toNextSchedules(schedules),
    warnings: toWarnings({
      ...{ reading: page.reading, limits, schedules, conductors, now, counter },
      slowness: slownessOf(history),
    }),
  }
}

interface Counts {
  waiting: number
  delayed: number
  running: number
  trashed: number
}

/** Counts the jobs of a board by state, priority, flow and reason. */
class JobCounter {
  readonly counts = { waiting: 0, delayed: 0, running: 0 }
  /** The number of jobs for which no other reason was found. */
  waitingForSlot = 0
  readonly #context: Parameters<typeof reasonOf>[1] & { readonly now: number }
  readonly #byPriority = new Map<string, Counts>()
  readonly #byFlow = new Map<string, Counts>()
  readonly #reasons = new Map<string, { first: ListedJob; jobs: number }>()
  readonly #running: ListedJob[] = []
  /** The jobs that wait after several attempts. */
  readonly #retried: ListedJob[] = []
  #oldest: ListedJob | undefined
  #reasonsComputed = 0
  #hasMoreReasons = false
  readonly #unknownFlows = new Map<string, number>()

  constructor(context: Parameters<typeof reasonOf>[1] & { readonly now: number }) {
    this.#context = context
  }

  /** The number of jobs whose reasons are computed, if there are more. */
  get reasonsOf(): number | undefined {
    return this.#hasMoreReasons ? MAX_REASONS : undefined
  }

  /** Counts a job. Returns false, so that it can be passed as the filter of a page that is to have no jobs. */
  readonly add = (listed: ListedJob): boolean => {
    const { posting, claimed } = listed
    const state = stateOf(listed, this.#context.now)
    const kind = state === 'RUNNING' ? 'running' : state === 'DELAYED' ? 'delayed' : 'waiting'
    this.counts[kind] += 1
    increase(this.#byPriority, posting.priority, kind)
    const { flow }: { flow?: unknown } = posting.details
    if (typeof flow === 'string') increase(this.#byFlow, flow, kind)
    if (claimed) this.#running.push(listed)
    else {
      if (state === 'WAITING' && isPostedBefore(listed, this.#oldest)) this.#oldest = listed
      if (posting.attempts.length > 1) this.#retried.push(listed)
      if (this.#reasonsComputed < MAX_REASONS) this.#addReason(listed)
      else this.#hasMoreReasons = true
    }
    return false
  }

  addTrashed({ flow }: TrashedJob['details']): void {
    if (typeof flow === 'string') increase(this.#byFlow, flow, 'trashed')
  }

  byPriority(): WireOverview['byPriority'] {
    return [...this.#byPriority].map(([priority, { waiting, delayed, running }]) => ({
      ...{ priority, waiting, delayed, running },
    }))
  }

  byFlow(): WireOverview['byFlow'] {
    const flows = [...this.#byFlow].map(([flow, counts]) => ({ flow, ...counts }))
    const sizeOf = ({ waiting, delayed, running, trashed }: Counts) => waiting + delayed + running + trashed
    return flows.sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, 100)
  }

  oldestWaiting(): WireOverview['oldestWaiting'] {
    const { uuid, name } = this.#oldest?.posting ?? {}
    const postedAt = toIso(this.#oldest?.job.postedAt)
    return uuid === undefined || name === undefined || postedAt === undefined ? undefined : { uuid, name, postedAt }
  }

  reasons(redaction: Redactor): WireOverview['waitingFor'] {
    const groups = [...this.#reasons.values()].sort((a, b) => b.jobs - a.jobs).slice(0, 20)
    return groups.flatMap(({ first, jobs }) => {
      const reason = reasonOf(first, this.#context)
      return reason ? [{ reason: toWaitingFor(reason, redaction), jobs, example: first.posting.uuid }] : []
    })
  }

  /** Returns the flows that no conductor has, with the numbers of the jobs that wait for one. */
  unknownFlows(): { readonly flow: string; readonly jobs: number }[] {
    return [...this.#unknownFlows].map(([flow, jobs]) => ({ flow, jobs }))
  }

  /** Returns what the doctor says of jobs that ignore a stop, and of suspects. */
  warnings(): JobWarning[] {
    return jobWarnings([...this.#running, ...this.#retried], this.#context)
  }

  running(): WireOverview['running'] {
    const runs = this.#running.map(({ posting }) => {
      const newest = posting.attempts.at(-1)
      const run = newest?.ended === undefined ? newest : undefined
      return { uuid: posting.uuid, name: posting.name, ...defined({ owner: run?.who, since: toIso(run?.at) }) }
    })
    return runs.sort((a, b) => ((a.since ?? '~') < (b.since ?? '~') ? -1 : 1)).slice(0, MAX_RUNNING)
  }

  #addReason(listed: ListedJob): void {
    this.#reasonsComputed += 1
    // While the board is paused, that is the reason of all jobs, but an unknown flow still is a warning.
    const work = toFlowReference(listed.posting)
    if (work && !isKnownToAny(work, this.#context.conductors))
      this.#unknownFlows.set(work.flow, (this.#unknownFlows.get(work.flow) ?? 0) + 1)
    const reason = reasonOf(listed, this.#context)
    if (!reason) {
      this.waitingForSlot += 1
      return
    }
    const thing = reason.kind === 'limit' ? reason.key : reason.kind === 'resource' ? reason.resource : ''
    const key = `${reason.kind}\0${reason.kind === 'flow' ? reason.flow : thing}`
    const known = this.#reasons.get(key)
    if (!known) this.#reasons.set(key, { first: listed, jobs: 1 })
    else {
      known.jobs += 1
      // Of jobs that wait for a time, the one that is due first says most.
      if (reason.kind === 'delay' && listed.dueAt < known.first.dueAt) known.first = listed
    }
  }
}

function increase(map: Map<string, Counts>, key: string, kind: keyof Counts): void {
  const counts = map.get(key) ?? { waiting: 0, delayed: 0, running: 0, trashed: 0 }
  counts[kind] += 1
  map.set(key, counts)
}

function isPostedBefore({ job }: ListedJob, oldest: ListedJob | undefined): boolean {
  const [at, before] = [job.postedAt, oldest?.job.postedAt]
  return at !== undefined && (before === undefined || at < before)
}

/** Counts the jobs in the trash. On a ZooKeeper board that lists all of them, so the count is cached for longer. */
async function readTrashCount({ cache, board }: ViewedBoard): Promise<WireCount> {
  const count = () => boardInternals(board).countTrash()
  const value = await cache.get('trash-count', { minAgeMs: 2_000, maxAgeMs: 30_000 }, count)
  return { value, atLeast: false }
}

/** Reads the jobs that were moved to the trash in the last 24 hours, the newest first; at most 1,000. */
async function readNewTrash(viewed: ViewedBoard): Promise<readonly TrashedJob[]> {
  const since = Date.now() - DAY_MS
  const accept = ({ at }: TrashedJob) => at.getTime() >= since
  const read = async () => {
    const options = { limit: 1_000, most: 1_000, timeMs: SCAN_MS, accept, newestFirst: true }
    return (await boardInternals(viewed.board).trashPage(options)).items
  }
  return viewed.cache.get('new-trash', { minAgeMs: 2_000, maxAgeMs: 30_000 }, read)
}

function toFailures(items: readonly TrashedJob[], redaction: Redactor): WireOverview['failures'] {
  // A cancelled job has not failed: somebody has decided that it must not run.
  const failed = items.filter(({ reason }) => !isCancellation(reason))
  const groups = groupTrash(failed, redaction).slice(0, MAX_FAILURES)
  return groups.map(({ reason, flow, jobs, last, query }) => ({ reason, jobs, last, query, ...defined({ flow }) }))
}

function toNextSchedules(schedules: readonly ScheduleView[]): WireOverview['nextSchedules'] {
  const next = schedules.flatMap(({ id, next }) => (next ? [{ id, next: next.toISOString() }] : []))
  return next.sort((a, b) => (a.next < b.next ? -1 : 1)).slice(0, MAX_SCHEDULES)
}

interface WarningSources {
  readonly reading: WireScan['reading']
  readonly limits: readonly LimitView[]
  readonly schedules: readonly ScheduleView[]
  readonly conductors: readonly ReturnType<typeof conductorView>[]
  readonly now: number
  readonly counter: JobCounter
  readonly slowness: ReadonlyMap<string, number>
}

/** How late a schedule must be to be a warning. */
const LATE_MS = 60_000
/** The most jobs with the same kind of warning that are named. */
const MAX_WARNED_JOBS = 5

function toWarnings({
  reading,
  limits,
  schedules,
  conductors,
  now,
  counter,
  slowness,
}: WarningSources): WireOverview['warnings'] {
  const { waiting } = counter.counts
  const warnings: { text: string; page: string }[] = []
  if (reading) {
    const { read, all } = reading
    const text = `the board is being read${all === undefined ? '' : ` (${read} of ${all} jobs)`}: the numbers are too small until then`
    warnings.push({ text, page: 'jobs' })
  }
  if (conductors.length === 0 && waiting > 0)
    warnings.push({ text: `no conductor is connected, and ${jobsThatWait(waiting)}`, page: 'conductors' })
  for (const { flow, jobs } of counter.unknownFlows())
    warnings.push({
      text: `no conductor has flow ${flow}, and ${jobsThatWait(jobs)} for one`,
      page: `jobs?${new URLSearchParams({ q: `state:waiting flow:${quote(flow)}` })}`,
    })
  const found = counter.warnings()
  for (const about of ['suspect', 'poison', 'unheeded'] as const) {
    const same = found.filter((warning) => warning.about === about)
    const rest = same.length - MAX_WARNED_JOBS
    for (const [index, { uuid, text }] of same.slice(0, MAX_WARNED_JOBS).entries()) {
      const more = rest > 0 && index === MAX_WARNED_JOBS - 1 ? `; ${rest} more such ${rest === 1 ? 'job' : 'jobs'}` : ''
      warnings.push({ text: `${text}${more}`, page: `jobs?${new URLSearchParams({ id: uuid })}` })
    }
  }
  for (const { key, held, error } of limits) {
    const page = `limits?${new URLSearchParams({ key })}`
    if (held) warnings.push({ text: `limit ${key} is stopped${held.until ? ' for a time' : ''}`, page })
    if (error) warnings.push({ text: `limit ${key} cannot be read`, page })
  }
  for (const { id, lateMs = 0, error } of schedules) {
    const page = `schedules?${new URLSearchParams({ schedule: id })}`
    if (lateMs > LATE_MS) warnings.push({ text: `schedule ${id} is ${Math.round(lateMs / 1_000)} s late`, page })
    if (error) warnings.push({ text: `schedule ${id} cannot be read`, page })
  }
  for (const conductor of conductors) {
    const { name, reportedAt, noChild, clockAheadMs = 0, logbooks } = conductor
    const kept = describeKeptSlots(conductor)
    if (kept !== undefined) warnings.push({ text: `conductor ${kept}`, page: 'conductors' })
    if (clockAheadMs !== 0) warnings.push({ text: describeClock({ name, clockAheadMs }), page: 'conductors' })
    if (logbooks === 'away')
      warnings.push({
        text: `conductor ${name} cannot reach the logbooks, and claims no jobs here`,
        page: 'conductors',
      })
    const factor = slowness.get(name) ?? 0
    if (factor >= SLOW) {
      const text = `jobs on conductor ${name} take ${factor.toFixed(1)} times as long as the same flows on others`
      warnings.push({ text, page: 'conductors' })
    }
    if (noChild !== undefined)
      warnings.push({ text: `conductor ${name} cannot start child processes`, page: 'conductors' })
    if (reportedAt && now - reportedAt.getTime() > SILENT_MS)
      warnings.push({ text: `conductor ${name} has not reported for more than 3 minutes`, page: 'conductors' })
  }
  return warnings.slice(0, 50)
}

function jobsThatWait(count: number): string {
  return count === 1 ? '1 job waits' : `${count} jobs wait`
}

/** Reads a list; returns an empty one if the board does not support the feature. */
async function ifSupported<T>(read: () => Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof UnsupportedCapability) return []
    throw error
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
