/** Reads the lists other than jobs: flows, schedules, limits, resources, batches, conductors, logbooks. */
import {
  type BatchView,
  DEFAULT_QUEUE,
  type EndedJob,
  type LimitView,
  type ScheduleFiring,
  type ScheduleView,
} from '../../board/index.ts'
import type { FlowRules, ListedJob } from '../../board/internal.ts'
import { boardInternals } from '../../board/internal.ts'
import { Turns } from '../../core/async/turns.ts'
import { InvalidArgument, UnsupportedCapability } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { toDate } from '../../core/time.ts'
import { explainSpec } from '../../schedule/index.ts'
import { followsCompletion } from '../../schedule/internal.ts'
import {
  bookView,
  type ConductorView,
  conductorView,
  conductorViews,
  currentRun,
  describeDeclaration,
  doesServe,
  hasFlow,
  limitView,
  pauseOfQueue,
  queuesPausedByName,
  readBatchView,
} from '../../views/index.ts'
import { stateOf } from '../../views/internal.ts'
import type {
  FiringOutcome,
  WireBatch,
  WireConductor,
  WireFlow,
  WireLimit,
  WireQueue,
  WireResource,
  WireSchedule,
} from '../wire/board.ts'
import type { Unencoded, WireScan } from '../wire/common.ts'
import { type ListOptions, SCAN_JOBS, SCAN_MS } from './job-list.ts'
import type { ViewedBoard } from './viewed-board.ts'

const MAX_FIRST = 10
const MAX_RESOURCES = 1_000
const UPCOMING = 5
/** The schedules whose next times are computed. */
const MAX_UPCOMING = 100

type LookOptions = Pick<ListOptions, 'waitMs'>

/** Reads the flows with their conductors, their open jobs and their outcomes. @throws UnsupportedCapability, NotConnected */
export async function readFlows(viewed: ViewedBoard, { waitMs }: LookOptions): Promise<Unencoded<WireFlow>[]> {
  await viewed.touch()
  const { board } = viewed
  const [flows, entities, rules] = await Promise.all([board.flows(), viewed.conductors(), viewed.flowRules()])
  const counts = new Map<string, Pick<WireFlow, 'waiting' | 'delayed' | 'running'>>()
  const now = await boardInternals(board).readClock()
  const accept = (listed: ListedJob) => {
    const flow = String(listed.posting.details.flow)
    const known = counts.get(flow) ?? { waiting: 0, delayed: 0, running: 0 }
    counts.set(flow, known)
    const state = stateOf(listed, now)
    known[state === 'RUNNING' ? 'running' : state === 'DELAYED' ? 'delayed' : 'waiting'] += 1
    return false
  }
  await boardInternals(board).jobPage({ limit: 1, most: SCAN_JOBS, timeMs: SCAN_MS, accept, waitMs })
  const ended = viewed.supports.history ? await viewed.history() : undefined
  const endedByFlow = ended && groupBy(ended, ({ flow }) => [flow])
  const conductorsByFlow = groupBy(entities.map(conductorView), ({ flows = [], versions = {} }) => [
    ...flows,
    ...Object.keys(versions),
  ])
  return flows.map(({ name, version, digest, since, nodes }) => {
    const having = (conductorsByFlow.get(name) ?? []).filter((conductor) => hasFlow(conductor, { name, version }))
    return {
      ...{ name, version, digest, since },
      atoms: nodes.filter((node) => node.name !== undefined).length,
      conductors: having.map((conductor) => conductor.name),
      ...(counts.get(name) ?? { waiting: 0, delayed: 0, running: 0 }),
      ...(endedByFlow ? outcomesOf(endedByFlow.get(name) ?? []) : {}),
      disabled: toDisabled(rules.ruleOf(name)),
    }
  })
}

function toDisabled({ disabled }: ReturnType<FlowRules['ruleOf']>): Unencoded<WireFlow>['disabled'] {
  if (!disabled) return undefined
  const { id: flow, by, at, reason } = disabled
  return { flow, by, since: toDate(at), reason }
}

/** Reads the queues that have jobs or are paused, by name, with the conductors that serve them. @throws NotConnected */
export async function readQueues(
  viewed: ViewedBoard,
  { waitMs }: LookOptions,
): Promise<{ readonly queues: Unencoded<WireQueue>[]; readonly more: boolean }> {
  await viewed.touch()
  const { board } = viewed
  const [pauses, entities, now] = await Promise.all([
    board.pausedQueues(),
    viewed.conductors(),
    boardInternals(board).readClock(),
  ])
  const queues = new Map<string, QueueCounts>(queuesPausedByName(pauses).map((queue) => [queue, newQueueCounts()]))
  const accept = (listed: ListedJob) => {
    const queue = listed.posting.queue ?? DEFAULT_QUEUE
    const counts = queues.get(queue) ?? newQueueCounts()
    queues.set(queue, counts)
    const state = stateOf(listed, now)
    counts[state === 'RUNNING' ? 'running' : state === 'DELAYED' ? 'delayed' : 'waiting'] += 1
    const { uuid, name, postedAt } = listed.job
    const isOlder = postedAt && (!counts.oldestWaiting || postedAt < counts.oldestWaiting.postedAt)
    if (state === 'WAITING' && isOlder) counts.oldestWaiting = { uuid, name, postedAt }
    return false
  }
  const page = await boardInternals(board).jobPage({ limit: 1, most: SCAN_JOBS, timeMs: SCAN_MS, accept, waitMs })
  const conductors = entities.map(conductorView)
  const rows = [...queues].map(([queue, counts]) => {
    const serving = conductors.filter((conductor) => doesServe(conductor, queue)).map(({ name }) => name)
    return { queue, ...counts, conductors: serving, ...defined({ paused: pauseOfQueue(queue, pauses) }) }
  })
  return { queues: rows.sort((a, b) => (a.queue < b.queue ? -1 : 1)), more: page.next !== undefined }
}

interface QueueCounts {
  waiting: number
  delayed: number
  running: number
  oldestWaiting?: { readonly uuid: string; readonly name: string; readonly postedAt: Date }
}

function newQueueCounts(): QueueCounts {
  return { waiting: 0, delayed: 0, running: 0 }
}

/** Groups items by keys, in one pass, because there may be a thousand flows and a thousand conductors. An item may have several keys. */
function groupBy<T>(items: readonly T[], keysOf: (item: T) => readonly (string | undefined)[]): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    for (const key of new Set(keysOf(item))) {
      if (key === undefined) continue
      const group = groups.get(key)
      if (group) group.push(item)
      else groups.set(key, [item])
    }
  }
  return groups
}

function outcomesOf(ended: readonly EndedJob[]): Pick<WireFlow, 'done' | 'failed' | 'medianMs'> {
  const done = ended.filter(({ outcome }) => outcome === 'COMPLETE')
  const durations = done
    .flatMap(({ startedAt, endedAt }) => (startedAt ? [Math.max(0, endedAt.getTime() - startedAt.getTime())] : []))
    .sort((a, b) => a - b)
  const medianMs = durations[Math.floor(durations.length / 2)]
  return { done: done.length, failed: ended.length - done.length, medianMs }
}

/** Reads the schedules with their next times. @throws UnsupportedCapability, NotConnected */
export async function readSchedules(viewed: ViewedBoard): Promise<Unencoded<WireSchedule>[]> {
  await viewed.touch()
  const { schedules } = viewed.board
  const views = await schedules.list()
  const turns = new Turns()
  return Promise.all(
    views.map(async (view, index) => {
      const { spec } = view
      const mayFire = spec && !followsCompletion(spec) && view.state !== 'ended' && index < MAX_UPCOMING
      await turns.begin()
      let { error } = view
      const times = mayFire
        ? await schedules.next(view.id, UPCOMING + 1).catch((cause: unknown) => {
            if (cause instanceof InvalidArgument) error = cause
            return []
          })
        : []
      const upcoming = times.map(({ at }) => at).filter((at) => view.next === undefined || at > view.next)
      const words = spec && (await explainSpec(spec))
      return toScheduleRow(view, { upcoming: upcoming.slice(0, UPCOMING), words, error })
    }),
  )
}

interface ScheduleContext {
  readonly upcoming: readonly Date[]
  readonly words: string | undefined
  readonly error: Error | undefined
}

function toScheduleRow(view: ScheduleView, { upcoming, words, error }: ScheduleContext): Unencoded<WireSchedule> {
  const { id, state, rule, flow, version, tenant, next, lateMs, catchUp, overlap, awaits, failuresInRow, paused } = view
  const { skipped, ...numbers } = view.counts ?? {}
  const skips = Object.entries(skipped ?? {}).map(([why, count]): [string, number] => [`skipped: ${why}`, count])
  return {
    ...{ id, state, rule, words, flow, version, tenant, next, upcoming, lateMs, catchUp, overlap, awaits },
    ...{ failuresInRow, paused },
    counts: view.counts && { ...numbers, ...Object.fromEntries(skips) },
    recent: (view.recent ?? []).map(toFiringRow),
    declared: describeDeclaration(view),
    error: error?.message,
  }
}

function toFiringRow({ nominal, at, why, uuid, skipped, count, error }: ScheduleFiring) {
  const posted: FiringOutcome = why === 'time' ? 'posted' : why
  const outcome: FiringOutcome = error !== undefined ? 'refused' : skipped === undefined ? posted : 'skipped'
  return { nominal, at, outcome, uuid, count, reason: error ?? skipped }
}

/** Reads the limits with their use, and the numbers of jobs that wait for them. @throws UnsupportedCapability, NotConnected */
export async function readLimits(viewed: ViewedBoard): Promise<Unencoded<WireLimit>[]> {
  await viewed.touch()
  const read = () => viewed.board.limits.list({ waiting: true })
  const limits = await viewed.cache.get('limits with jobs', { minAgeMs: 1_000, maxAgeMs: 5_000 }, read)
  return limits.map(toLimitRow)
}

function toLimitRow(limit: LimitView): Unencoded<WireLimit> {
  const { keys = [], waiting, waitingIsPartial = false, ...view } = limitView(limit)
  return {
    ...{ ...view, keys },
    waiting: waiting === undefined ? undefined : { value: waiting, atLeast: waitingIsPartial },
    declared: describeDeclaration(limit),
  }
}

/** Reads which jobs hold resources and which wait for them. Looks at as many jobs as one request may. @throws NotConnected */
export async function readResources(
  viewed: ViewedBoard,
  { waitMs }: LookOptions,
): Promise<{ readonly resources: WireResource[]; readonly scan: WireScan }> {
  await viewed.touch()
  const found = new Map<string, WireResource>()
  const waiting = new Map<string, number>()
  const accept = (listed: ListedJob) => {
    const { uuid, name, resources: { exclusive = [], shared = [] } = {} } = listed.posting
    const alone = new Set(exclusive)
    const names = new Set([...exclusive, ...shared])
    for (const resource of names) {
      const row = found.get(resource) ?? newResource(resource)
      if (found.size < MAX_RESOURCES) found.set(resource, row)
      if (listed.claimed) {
        row.mode = alone.has(resource) ? 'exclusive' : 'shared'
        row.holders.push({ uuid, name, owner: currentRun(listed.posting)?.who })
      } else {
        waiting.set(resource, (waiting.get(resource) ?? 0) + 1)
        if (row.firstWaiting.length < MAX_FIRST) row.firstWaiting.push({ uuid, name })
        if (row.holders.length === 0 && alone.has(resource)) row.mode = 'exclusive'
      }
    }
    return false
  }
  const options = { limit: 1, most: SCAN_JOBS, timeMs: SCAN_MS, owners: true, accept, waitMs }
  const { next, looked, total, reading } = await boardInternals(viewed.board).jobPage(options)
  const atLeast = next !== undefined || reading !== undefined
  const resources = [...found.values()].map((row) => ({
    ...row,
    waiting: { value: waiting.get(row.resource) ?? 0, atLeast },
  }))
  resources.sort((a, b) => b.waiting.value - a.waiting.value || (a.resource < b.resource ? -1 : 1))
  return { resources, scan: { looked, total, reading } }
}

function newResource(resource: string): WireResource {
  return { resource, mode: 'shared', holders: [], waiting: { value: 0, atLeast: false }, firstWaiting: [] }
}

/** Reads the newest 1,000 batches with their progress. @throws UnsupportedCapability, NotConnected */
export async function readBatches(viewed: ViewedBoard): Promise<Unencoded<WireBatch>[]> {
  await viewed.touch()
  return (await viewed.board.batches({ limit: 1_000 })).map(toBatchRow)
}

/** Reads one batch with its progress. @throws NotFound, UnsupportedCapability, NotConnected */
export async function readBatch(viewed: ViewedBoard, uuid: string): Promise<Unencoded<WireBatch>> {
  await viewed.touch()
  return toBatchRow(await readBatchView(await viewed.board.findBatch(uuid)))
}

/** Returns a batch without its `meta`, which may be secret. */
function toBatchRow(batch: BatchView): Unencoded<WireBatch> {
  const { uuid, name, state, sealed, total, open, done, failed, createdAt, endedAt, who, reason } = batch
  return { uuid, name, state, sealed, total, open, done, failed, createdAt, endedAt, who, reason }
}

/** Reads the conductors with the jobs that they run. @throws NotConnected */
export async function readConductors(viewed: ViewedBoard): Promise<Unencoded<WireConductor>[]> {
  await viewed.touch()
  const views = conductorViews(await viewed.conductors())
  const wanted = new Set(views.flatMap(({ jobs = [] }) => jobs))
  const [running, slowness] = await Promise.all([findRunning(viewed, wanted), viewed.slowness()])
  return views.map(({ declares: _, jobs = [], ...view }) => ({
    ...view,
    meanMs: meanOf(view.counts),
    slowness: slowness.get(view.name),
    jobs: jobs.map((uuid) => ({ uuid, ...running.get(uuid) })),
  }))
}

function meanOf(counts: ConductorView['counts']): number | undefined {
  const jobs = (counts?.done ?? 0) + (counts?.failed ?? 0) + (counts?.other ?? 0)
  return counts?.workedMs === undefined || jobs === 0 ? undefined : Math.round(counts.workedMs / jobs)
}

/** Returns the names and start times of the wanted jobs that are running. A job that has ended meanwhile is left out. */
async function findRunning(
  { board }: ViewedBoard,
  wanted: ReadonlySet<string>,
): Promise<ReadonlyMap<string, { readonly name: string; readonly since: Date | undefined }>> {
  if (wanted.size === 0) return new Map()
  const accept = ({ posting, claimed }: ListedJob) => claimed && wanted.has(posting.uuid)
  const page = await boardInternals(board).jobPage({ limit: wanted.size, most: SCAN_JOBS, timeMs: SCAN_MS, accept })
  return new Map(
    page.items.map(({ posting }) => [posting.uuid, { name: posting.name, since: currentRun(posting)?.at }]),
  )
}

/** Returns the logbooks of a page, with their flows. @throws UnsupportedCapability without logbooks; StorageFailure */
export async function readLogbooks(
  viewed: ViewedBoard,
  { after, limit }: { readonly after?: string | undefined; readonly limit: number },
) {
  const persistence = logbooksOf(viewed)
  const uuids = await persistence.listUuids({ limit: limit + 1, ...defined({ after }) })
  const shown = uuids.slice(0, limit)
  const read = await Promise.all(shown.map((uuid) => persistence.getBook(uuid).catch(() => undefined)))
  const logbooks = read.flatMap((book) => (book ? [bookView(book)] : []))
  const next = uuids.length > limit ? shown.at(-1) : undefined
  return { logbooks, scan: { looked: shown.length, next } }
}

/** Returns the logbooks of a board. @throws UnsupportedCapability if the dashboard was started without them */
export function logbooksOf({ name, persistence }: ViewedBoard): NonNullable<ViewedBoard['persistence']> {
  if (persistence) return persistence
  throw new UnsupportedCapability(`board ${name} has no logbooks here: start the dashboard with --persistence URI`, {
    capability: 'logbooks',
  })
}
