/** Computes the overview of a board: the numbers of jobs by state, why they wait, and warnings. */
import { DEFAULT_QUEUE, type ScheduleView, type TrashedJob, type WaitingFor } from '../../board/index.ts'
import { boardInternals, isCancellation, isKnownToAny, type ListedJob, toFlowReference } from '../../board/internal.ts'
import { UnsupportedCapability } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import type { Redactor } from '../../core/redaction.ts'
import { conductorView, countSlots, currentRun } from '../../views/index.ts'
import {
  type JobWarning,
  jobWarnings,
  type ListContext,
  longestRunning,
  nextStartsOf,
  reasonOf,
  stateOf,
} from '../../views/internal.ts'
import type { WireCount, WireOverview } from '../wire/board.ts'
import type { Unencoded } from '../wire/common.ts'
import { type ListOptions, SCAN_JOBS, SCAN_MS } from './job-list.ts'
import { toWaitingFor } from './rows.ts'
import { groupTrash } from './trash-groups.ts'
import type { ViewedBoard } from './viewed-board.ts'
import { toWarnings } from './warnings.ts'

const MAX_FAILURES = 5
const MAX_SCHEDULES = 5
/** The most flows, and queues, that are listed. */
const MAX_ROWS = 100
/** The most open jobs whose reasons are computed. */
const MAX_REASONS = 2_000
const DAY_MS = 86_400_000

type Overview = Unencoded<WireOverview>
export type OverviewOptions = Pick<ListOptions, 'redaction' | 'waitMs'>

/** Reads the overview. Requests within a second, or 5 s without changes, share an answer. @throws NotConnected, AccessDenied */
export async function readOverview(viewed: ViewedBoard, options: OverviewOptions): Promise<Overview> {
  await viewed.touch()
  const key = options.waitMs === undefined ? 'overview' : 'overview so far'
  const read = () => computeOverview(viewed, options)
  const overview = await viewed.cache.get(key, { minAgeMs: 1_000, maxAgeMs: 5_000 }, read)
  return { ...overview, minutes: viewed.feed.throughput.last(Date.now()) }
}

async function computeOverview(viewed: ViewedBoard, { redaction, waitMs }: OverviewOptions): Promise<Overview> {
  const { board } = viewed
  const [entities, now, limits, flowSettings, schedules, trashed, newTrash, slowness] = await Promise.all([
    viewed.conductors(),
    boardInternals(board).readClock(),
    viewed.limits(),
    ifSupported(() => board.flowSettings.list()),
    ifSupported(() => board.schedules.list()),
    readTrashCount(viewed),
    readNewTrash(viewed),
    viewed.slowness(),
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
    ...{ paused: board.paused, connected: board.connected, at: new Date(now) },
    jobs: {
      waiting: counted(counts.waiting),
      delayed: counted(counts.delayed),
      running: counted(counts.running),
      trashed,
    },
    byPriority: counter.byPriority(),
    byQueue: counter.byQueue(),
    byFlow: counter.byFlow(),
    oldestWaiting: counter.oldestWaiting(),
    waitingFor: counter.reasons(),
    waitingForSlot: counter.waitingForSlot,
    reasonsOf: counter.reasonsOf,
    running: counter.running(),
    slots: { ...countSlots(conductors), conductors: conductors.length },
    minutes: [],
    failures: toFailures(newTrash, redaction),
    nextSchedules: toNextSchedules(schedules),
    warnings: toWarnings({
      ...{ reading: page.reading, limits, flowSettings, schedules, conductors, now },
      ...{ waiting: counts.waiting, unknownFlows: counter.unknownFlows(), jobs: counter.warnings() },
      slowness,
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
  readonly #context: ListContext
  readonly #byPriority = new Map<string, Counts>()
  readonly #byFlow = new Map<string, Counts>()
  readonly #byQueue = new Map<string, Counts>()
  readonly #reasons = new Map<string, { first: ListedJob; jobs: number }>()
  readonly #running: ListedJob[] = []
  /** The jobs that wait after several attempts. */
  readonly #retried: ListedJob[] = []
  #oldest: ListedJob | undefined
  #reasonsComputed = 0
  #hasMoreReasons = false
  readonly #unknownFlows = new Map<string, number>()

  constructor(context: ListContext) {
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
    increase(this.#byQueue, posting.queue ?? DEFAULT_QUEUE, kind)
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

  byPriority(): Overview['byPriority'] {
    return [...this.#byPriority].map(([priority, { waiting, delayed, running }]) => ({
      ...{ priority, waiting, delayed, running },
    }))
  }

  byFlow(): Overview['byFlow'] {
    const flows = [...this.#byFlow].map(([flow, counts]) => ({ flow, ...counts }))
    return flows.sort((a, b) => countAll(b) - countAll(a)).slice(0, MAX_ROWS)
  }

  byQueue(): Overview['byQueue'] {
    const queues = [...this.#byQueue].sort(([, a], [, b]) => countAll(b) - countAll(a)).slice(0, MAX_ROWS)
    return queues.map(([queue, { waiting, delayed, running }]) => ({ queue, waiting, delayed, running }))
  }

  oldestWaiting(): Overview['oldestWaiting'] {
    if (!this.#oldest) return undefined
    const { uuid, name, postedAt } = this.#oldest.job
    return postedAt && { uuid, name, postedAt }
  }

  reasons(): Overview['waitingFor'] {
    const groups = [...this.#reasons.values()].sort((a, b) => b.jobs - a.jobs).slice(0, 20)
    return groups.flatMap(({ first, jobs }) => {
      const reason = reasonOf(first, this.#context)
      return reason ? [{ reason: toWaitingFor(reason), jobs, example: first.posting.uuid }] : []
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

  running(): Overview['running'] {
    return longestRunning(
      this.#running.map(({ posting }) => {
        const run = currentRun(posting)
        return { uuid: posting.uuid, name: posting.name, ...defined({ owner: run?.who, since: run?.at }) }
      }),
    )
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
    const key = `${reason.kind}\0${thingOf(reason)}`
    const known = this.#reasons.get(key)
    if (!known) this.#reasons.set(key, { first: listed, jobs: 1 })
    else {
      known.jobs += 1
      // The job that is due first says most about the jobs that wait for a time.
      if (reason.kind === 'delay' && listed.dueAt < known.first.dueAt) known.first = listed
    }
  }
}

/** Returns the name of what a job waits for; an empty text for the other kinds, of which all jobs are counted together. */
function thingOf(reason: WaitingFor): string {
  if (reason.kind === 'limit') return reason.key
  if (reason.kind === 'resource') return reason.resource
  if (reason.kind === 'queue') return reason.queue
  return reason.kind === 'flow' || reason.kind === 'disabled' ? reason.flow : ''
}

function countAll({ waiting, delayed, running, trashed }: Counts): number {
  return waiting + delayed + running + trashed
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

function toFailures(items: readonly TrashedJob[], redaction: Redactor): Overview['failures'] {
  // A cancelled job has not failed: somebody has decided that it must not run.
  const failed = items.filter(({ reason }) => !isCancellation(reason))
  const groups = groupTrash(failed, redaction).slice(0, MAX_FAILURES)
  return groups.map(({ reason, flow, jobs, last, query }) => ({ reason, flow, jobs, last, query }))
}

function toNextSchedules(schedules: readonly ScheduleView[]): Overview['nextSchedules'] {
  const next = schedules.flatMap(({ id, next }) => (next ? [{ id, next }] : []))
  return next.sort((a, b) => (a.next < b.next ? -1 : 1)).slice(0, MAX_SCHEDULES)
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
