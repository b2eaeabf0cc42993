/** Reads the lists other than jobs: flows, schedules, limits, resources, batches, conductors, logbooks. */
import type { BatchView, EndedJob, LimitView, ScheduleView } from '../../board/index.ts'
import type { ListedJob } from '../../board/internal.ts'
import { boardInternals } from '../../board/internal.ts'
import { Turns } from '../../core/async/turns.ts'
import { InvalidArgument, UnsupportedCapability } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import type { Redactor } from '../../core/redaction.ts'
import { explainSpec } from '../../schedule/index.ts'
import { followsCompletion } from '../../schedule/internal.ts'
import { conductorView } from '../../views/index.ts'
import type { WireBatch, WireConductor, WireFlow, WireLimit, WireResource, WireSchedule } from '../wire/board.ts'
import type { WireScan } from '../wire/common.ts'
import { type ListOptions, SCAN_JOBS, SCAN_MS } from './job-list.ts'
import { stateOf, toIso } from './rows.ts'
import { slownessOf } from './slowness.ts'
import type { ViewedBoard } from './viewed-board.ts'

const MAX_FIRST = 10
const MAX_RESOURCES = 1_000
const UPCOMING = 5
/** The schedules whose next times are computed. */
const MAX_UPCOMING = 100

type LookOptions = Pick<ListOptions, 'waitMs'>

/** Reads the flows with their conductors, their open jobs and their outcomes. @throws UnsupportedCapability, NotConnected */
export async function readFlows(viewed: ViewedBoard, { waitMs }: LookOptions): Promise<WireFlow[]> {
  await viewed.touch()
  const { board } = viewed
  const [flows, entities] = await Promise.all([board.flows(), viewed.conductors()])
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
  const ended = boardInternals(board).capabilities.history ? await viewed.history() : undefined
  const endedByFlow = ended && groupBy(ended, ({ flow }) => [flow])
  const conductorsByFlow = groupBy(entities.map(conductorView), ({ flows = [] }) => flows)
  return flows.map(({ name, version, digest, since, nodes }) => {
    const having = (conductorsByFlow.get(name) ?? []).filter(({ versions }) => {
      const known = versions?.[name]
      return known === undefined || known.includes(version)
    })
    return {
      ...{ name, version, digest, since: since.toISOString() },
      atoms: nodes.filter((node) => node.name !== undefined).length,
      conductors: having.map((conductor) => conductor.name),
      ...(counts.get(name) ?? { waiting: 0, delayed: 0, running: 0 }),
      ...(endedByFlow ? outcomesOf(endedByFlow.get(name) ?? []) : {}),
    }
  })
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
  return { done: done.length, failed: ended.length - done.length, ...defined({ medianMs }) }
}

/** Reads the schedules with their next times. @throws UnsupportedCapability, NotConnected */
export async function readSchedules(viewed: ViewedBoard, redaction: Redactor): Promise<WireSchedule[]> {
  await viewed.touch()
  const { schedules } = viewed.board
  const views = await schedules.list()
  const turns = new Turns()
  return Promise.all(
    views.map(async (view, index) => {
      const { spec } = view
      const mayFire = spec && !followsCompletion(spec) && view.state !== 'ended' && index < MAX_UPCOMING
      await turns.begin()
      let error: Error | undefined
      const times = mayFire
        ? await schedules.next(view.id, UPCOMING + 1).catch((cause: unknown) => {
            if (cause instanceof InvalidArgument) error = cause
            return []
          })
        : []
      const upcoming = times.map(({ at }) => at).filter((at) => view.next === undefined || at > view.next)
      const words = spec && (await explainSpec(spec))
      const shown = error ? { ...view, error } : view
      return toWireSchedule(shown, { upcoming: upcoming.slice(0, UPCOMING), words, redaction })
    }),
  )
}

interface ScheduleContext {
  readonly upcoming: readonly Date[]
  readonly words: string | undefined
  readonly redaction: Redactor
}

function toWireSchedule(view: ScheduleView, { upcoming, words, redaction }: ScheduleContext): WireSchedule {
  const { id, state, rule, flow, version, tenant, lateMs, catchUp, overlap, awaits, failuresInRow, paused, counts } =
    view
  const { skipped, ...numbers } = counts ?? {}
  return {
    ...{ id, state, rule },
    ...defined({
      words,
      flow,
      version,
      tenant,
      lateMs,
      catchUp,
      overlap,
      awaits,
      failuresInRow,
      next: toIso(view.next),
    }),
    upcoming: upcoming.map((at) => at.toISOString()),
    ...(paused
      ? {
          paused: {
            since: paused.since.toISOString(),
            by: paused.by,
            ...defined({ reason: paused.reason && redaction.text(paused.reason) }),
          },
        }
      : {}),
    ...(counts
      ? {
          counts: {
            ...numbers,
            ...Object.fromEntries(Object.entries(skipped ?? {}).map(([why, count]) => [`skipped: ${why}`, count])),
          },
        }
      : {}),
    recent: (view.recent ?? []).map(({ nominal, at, why, uuid, skipped, count, error }) => ({
      ...{ nominal: nominal.toISOString(), at: at.toISOString() },
      outcome: error !== undefined ? 'refused' : skipped === undefined ? (why === 'time' ? 'posted' : why) : 'skipped',
      ...defined({ uuid, count, reason: error === undefined ? skipped : redaction.text(error) }),
    })),
    ...defined({
      declared: view.declared && `${view.declared.owner}, version ${view.declared.version}`,
      error: view.error && redaction.text(view.error.message),
    }),
  }
}

/** Reads the limits with their use, and the numbers of jobs that wait for them. @throws UnsupportedCapability, NotConnected */
export async function readLimits(viewed: ViewedBoard, redaction: Redactor): Promise<WireLimit[]> {
  await viewed.touch()
  const read = () => viewed.board.limits.list({ waiting: true })
  const limits = await viewed.cache.get('limits with jobs', { minAgeMs: 1_000, maxAgeMs: 5_000 }, read)
  return limits.map((limit) => toWireLimit(limit, redaction))
}

function toWireLimit(limit: LimitView, redaction: Redactor): WireLimit {
  const {
    key,
    concurrency,
    rate,
    fair,
    keys = [],
    waiting,
    waitingIsPartial = false,
    held,
    set,
    declared,
    error,
  } = limit
  return {
    key,
    keys: keys.map(({ nextStart, ...use }) => ({ ...use, ...defined({ nextStart: toIso(nextStart) }) })),
    ...defined({
      ...{ concurrency, fair },
      rate: rate && { ...rate },
      waiting: waiting === undefined ? undefined : { value: waiting, atLeast: waitingIsPartial },
      held: held && {
        ...{ by: held.by, since: held.since.toISOString() },
        ...defined({ until: toIso(held.until), reason: held.reason && redaction.text(held.reason) }),
      },
      set: set && { by: set.by, at: set.at.toISOString() },
      declared: declared && `${declared.owner}, version ${declared.version}`,
      error: error && redaction.text(error.message),
    }),
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
    const { uuid, name, attempts, resources: { exclusive = [], shared = [] } = {} } = listed.posting
    const alone = new Set(exclusive)
    const names = new Set([...exclusive, ...shared])
    for (const resource of names) {
      const row = found.get(resource) ?? newResource(resource)
      if (found.size < MAX_RESOURCES) found.set(resource, row)
      if (listed.claimed) {
        row.mode = alone.has(resource) ? 'exclusive' : 'shared'
        row.holders.push({ uuid, name, ...defined({ owner: attempts.at(-1)?.who }) })
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
  return { resources, scan: { looked, ...defined({ total, reading }) } }
}

function newResource(resource: string): WireResource {
  return { resource, mode: 'shared', holders: [], waiting: { value: 0, atLeast: false }, firstWaiting: [] }
}

/** Reads the newest 1,000 batches with their progress. @throws UnsupportedCapability, NotConnected */
export async function readBatches(viewed: ViewedBoard, redaction: Redactor): Promise<WireBatch[]> {
  await viewed.touch()
  return (await viewed.board.batches({ limit: 1_000 })).map((batch) => toWireBatch(batch, redaction))
}

/** Reads one batch with its progress. @throws NotFound, UnsupportedCapability, NotConnected */
export async function readBatch(viewed: ViewedBoard, uuid: string, redaction: Redactor): Promise<WireBatch> {
  await viewed.touch()
  const batch = await viewed.board.findBatch(uuid)
  const { name, meta, who, createdAt } = batch
  return toWireBatch({ uuid: batch.uuid, name, meta, who, createdAt, ...(await batch.progress()) }, redaction)
}

function toWireBatch(batch: BatchView, redaction: Redactor): WireBatch {
  const { uuid, name, state, sealed, total, open, done, failed, createdAt, endedAt, who, reason } = batch
  return {
    ...{ uuid, name, state, sealed, total, open, done, failed, who, createdAt: createdAt.toISOString() },
    ...defined({ endedAt: toIso(endedAt), reason: reason === undefined ? undefined : redaction.text(reason) }),
  }
}

/** Reads the conductors with the jobs that they run. @throws NotConnected */
export async function readConductors(viewed: ViewedBoard, redaction: Redactor): Promise<WireConductor[]> {
  await viewed.touch()
  const entities = await viewed.conductors()
  const views = entities.map(conductorView).sort((a, b) => (a.name < b.name ? -1 : 1))
  const wanted = new Set(views.flatMap(({ jobs = [] }) => jobs))
  const [running, history] = await Promise.all([findRunning(viewed, wanted), viewed.history()])
  const slowness = slownessOf(history)
  return views.map((view) => toWireConductor(view, { running, slowness, redaction }))
}

interface ConductorContext {
  readonly slowness: ReadonlyMap<string, number>
  readonly running: ReadonlyMap<string, { name: string; since?: string }>
  readonly redaction: Redactor
}

function toWireConductor(
  view: ReturnType<typeof conductorView>,
  { running, slowness, redaction }: ConductorContext,
): WireConductor {
  const {
    declares: _,
    jobs = [],
    sizes,
    flows,
    versions,
    children,
    counts,
    startedAt,
    reportedAt,
    drainingSince,
    noChild,
    ...rest
  } = view
  return {
    ...rest,
    ...defined({
      startedAt: toIso(startedAt),
      reportedAt: toIso(reportedAt),
      drainingSince: toIso(drainingSince),
      sizes: sizes && [...sizes],
      flows: flows && [...flows],
      versions: versions && Object.fromEntries(Object.entries(versions).map(([name, list]) => [name, [...list]])),
      children: children?.map((child) => ({ ...child })),
      counts: counts && { ...counts },
      meanMs: meanOf(counts),
      slowness: slowness.get(view.name),
      noChild: noChild === undefined ? undefined : redaction.text(noChild),
    }),
    jobs: jobs.map((uuid) => ({ uuid, ...running.get(uuid) })),
  }
}

function meanOf(counts: ReturnType<typeof conductorView>['counts']): number | undefined {
  const jobs = (counts?.done ?? 0) + (counts?.failed ?? 0) + (counts?.other ?? 0)
  return counts?.workedMs === undefined || jobs === 0 ? undefined : Math.round(counts.workedMs / jobs)
}

/** Returns the names and start times of the wanted jobs that are running. A job that has ended meanwhile is left out. */
async function findRunning(
  { board }: ViewedBoard,
  wanted: ReadonlySet<string>,
): Promise<ReadonlyMap<string, { name: string; since?: string }>> {
  if (wanted.size === 0) return new Map()
  const accept = ({ posting, claimed }: ListedJob) => claimed && wanted.has(posting.uuid)
  const page = await boardInternals(board).jobPage({ limit: wanted.size, most: SCAN_JOBS, timeMs: SCAN_MS, accept })
  return new Map(
    page.items.map(({ posting: { uuid, name, attempts } }) => [
      uuid,
      { name, ...defined({ since: toIso(attempts.at(-1)?.at) }) },
    ]),
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
  const logbooks = read.flatMap((book) => {
    if (!book) return []
    const newest = Math.max(book.updatedAt.getTime(), ...book.flows.map(({ updatedAt }) => updatedAt.getTime()))
    const flows = book.flows.map(({ uuid, name, state }) => ({ uuid, name, state }))
    return [{ uuid: book.uuid, name: book.name, updatedAt: new Date(newest).toISOString(), flows }]
  })
  const next = uuids.length > limit ? shown.at(-1) : undefined
  return { logbooks, scan: { looked: shown.length, ...defined({ next }) } }
}

/** Returns the logbooks of a board. @throws UnsupportedCapability if the dashboard was started without them */
export function logbooksOf({ name, persistence }: ViewedBoard): NonNullable<ViewedBoard['persistence']> {
  if (persistence) return persistence
  throw new UnsupportedCapability(`board ${name} has no logbooks here: start the dashboard with --persistence URI`, {
    capability: 'logbooks',
  })
}
