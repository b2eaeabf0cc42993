/** Lists as tables: jobs, the trash, logbooks, conductors. */

import type { EndedJob, Entity, ListedFlow } from '../../../board/index.ts'
import { toJson } from '../../../core/json.ts'
import {
  type BookView,
  type ConductorView,
  conductorView,
  describeQueues,
  formatAge,
  formatDuration,
  hasFlow,
  type JobView,
  type TrashView,
} from '../../../views/index.ts'
import { type Screen, stateTone } from './paint.ts'
import { type Column, renderTable } from './table.ts'

export function jobsTable(jobs: readonly JobView[], screen: Screen): string[] {
  const columns: readonly Column<JobView>[] = [
    { title: 'UUID', value: (job) => job.uuid },
    { title: 'NAME', value: (job) => job.name, min: 16 },
    { title: 'STATE', value: formatState, tone: (job) => stateTone(job.state) },
    ...queueColumn(jobs),
    { title: 'PRIORITY', value: (job) => job.priority, optional: true },
    { title: 'RUNS', value: (job) => String(job.runs), optional: true },
    { title: 'AGE', value: (job) => job.postedAt && formatAge(job.postedAt, screen.now) },
    { title: 'OWNER', value: (job) => job.owner, min: 8 },
  ]
  return renderTable(columns, jobs, screen)
}

/** Returns the column of the queue if any job is in another than the default one. */
function queueColumn<T extends { readonly queue?: string | undefined }>(jobs: readonly T[]): Column<T>[] {
  if (jobs.every(({ queue = 'default' }) => queue === 'default')) return []
  return [{ title: 'QUEUE', value: ({ queue = 'default' }) => queue, optional: true }]
}

export function trashTable(
  jobs: readonly Pick<TrashView, 'uuid' | 'name' | 'queue' | 'at' | 'by' | 'reason'>[],
  screen: Screen,
): string[] {
  const columns: readonly Column<(typeof jobs)[number]>[] = [
    { title: 'UUID', value: (job) => job.uuid },
    { title: 'NAME', value: (job) => job.name, min: 16 },
    ...queueColumn(jobs),
    { title: 'AGE', value: (job) => formatAge(job.at, screen.now) },
    { title: 'BY', value: (job) => job.by, min: 8, optional: true },
    { title: 'REASON', value: (job) => job.reason, min: 16 },
  ]
  return renderTable(columns, jobs, screen)
}

/** An ended job, whose queue is absent if it is the default one. */
type ListedEnd = Omit<EndedJob, 'queue'> & { readonly queue?: string | undefined }

export function historyTable(jobs: readonly ListedEnd[], screen: Screen): string[] {
  const columns: readonly Column<ListedEnd>[] = [
    { title: 'UUID', value: (job) => job.uuid },
    { title: 'NAME', value: (job) => job.name, min: 16 },
    { title: 'OUTCOME', value: (job) => job.outcome, tone: (job) => stateTone(job.outcome) },
    ...queueColumn(jobs),
    { title: 'AGE', value: (job) => formatAge(job.endedAt, screen.now) },
    { title: 'TOOK', value: formatLastRun },
    { title: 'RUNS', value: (job) => String(job.runs), optional: true },
    { title: 'BY', value: (job) => job.who, min: 8, optional: true },
    ...(jobs.some(({ reason }) => reason !== undefined) ? [REASON_COLUMN] : []),
  ]
  return renderTable(columns, jobs, screen)
}

const REASON_COLUMN: Column<ListedEnd> = { title: 'REASON', value: ({ reason }) => reason, min: 16 }

/** Formats the time that the last run took; undefined for a job that never ran. */
function formatLastRun({ startedAt, endedAt }: ListedEnd): string | undefined {
  return startedAt && formatDuration(Math.max(0, endedAt.getTime() - startedAt.getTime()))
}

/** Formats the state, and whether a cancellation is requested. */
export function formatState({ state, cancelRequested }: Pick<JobView, 'state' | 'cancelRequested'>): string {
  return cancelRequested ? `${state}, cancelling` : state
}

/** The child processes of conductors with a pool, by their states: `2 busy, 1 idle`. */
const CHILDREN_COLUMN: Column<ConductorView> = {
  title: 'CHILDREN',
  value: ({ children, noChild }) => {
    if (noChild !== undefined) return 'cannot be started'
    const counts = new Map<string, number>()
    for (const { state = '?' } of children ?? []) counts.set(state, (counts.get(state) ?? 0) + 1)
    return [...counts].map(([state, count]) => `${count} ${state}`).join(', ')
  },
}

const COUNT_COLUMNS: readonly Column<ConductorView>[] = [
  { title: 'DONE', value: ({ counts }) => counts?.done?.toString(), optional: true },
  { title: 'FAILED', value: ({ counts }) => counts?.failed?.toString(), optional: true },
]

export function conductorsTable(conductors: readonly ConductorView[], screen: Screen): string[] {
  const columns: readonly Column<ConductorView>[] = [
    { title: 'NAME', value: ({ name }) => name, min: 12 },
    { title: 'STATE', value: ({ state }) => state, tone: ({ state }) => stateTone(state) },
    { title: 'RUNS', value: ({ running, concurrency }) => [running ?? '?', concurrency ?? '?'].join('/') },
    ...(conductors.some(({ counts }) => counts) ? COUNT_COLUMNS : []),
    ...(conductors.some(({ children }) => children) ? [CHILDREN_COLUMN] : []),
    { title: 'QUEUES', value: ({ queues }) => (queues ? describeQueues(queues) : 'all'), optional: true },
    { title: 'FLOWS', value: formatFlows, min: 12 },
    { title: 'HOST', value: ({ host }) => host, min: 8, optional: true },
    { title: 'PID', value: ({ pid }) => pid?.toString(), optional: true },
    { title: 'UP', value: ({ startedAt }) => startedAt && formatAge(startedAt, screen.now), optional: true },
    { title: 'RELEASE', value: ({ release }) => release ?? '-', optional: true },
    { title: 'JOBBOARD', value: ({ version }) => version, optional: true },
  ]
  return renderTable(columns, conductors, screen)
}

/** Returns the flows with their versions, as in `import 1.0, 2.0, hello 1.0`. */
function formatFlows({ flows, versions = {} }: ConductorView): string | undefined {
  return flows?.map((name) => [name, versions[name]?.join(', ')].filter(Boolean).join(' ')).join(', ')
}

export function logbooksTable(books: readonly BookView[], screen: Screen): string[] {
  const columns: readonly Column<BookView>[] = [
    { title: 'UUID', value: ({ uuid }) => uuid },
    { title: 'NAME', value: ({ name }) => name, min: 12 },
    { title: 'STATE', value: formatStates, tone: ({ flows }) => stateTone(flows[0]?.state) },
    { title: 'FLOW', value: ({ flows }) => flows.map(({ name }) => name).join(', '), min: 8, optional: true },
    { title: 'RUNS', value: ({ flows }) => flows.map(({ run }) => run).join(', '), optional: true },
    { title: 'CREATED', value: ({ createdAt }) => createdAt.toISOString(), optional: true },
    { title: 'UNCHANGED', value: ({ updatedAt }) => formatAge(updatedAt, screen.now) },
  ]
  return renderTable(columns, books, screen)
}

/** Lists each state once: a book with a thousand flows has as few states as any other. */
function formatStates({ flows }: BookView): string {
  return [...new Set(flows.map(({ state }) => state))].join(', ') || 'EMPTY'
}

/** Lists flows with their tasks, and how many of the living conductors have each. */
export function flowsTable(
  flows: readonly ListedFlow[],
  { conductors, screen }: { readonly conductors: readonly Entity[]; readonly screen: Screen },
): string[] {
  const views = conductors.map(conductorView)
  const columns: readonly Column<ListedFlow>[] = [
    { title: 'NAME', value: ({ name }) => name, min: 12 },
    { title: 'VERSION', value: ({ version }) => version },
    { title: 'CONDUCTORS', value: (flow) => String(views.filter((view) => hasFlow(view, flow)).length) },
    { title: 'TASKS', value: ({ nodes }) => nodes.flatMap((node) => node.name ?? []).join(', '), min: 16 },
    { title: 'SINCE', value: ({ since }) => formatAge(since, screen.now), optional: true },
  ]
  return renderTable(columns, flows, screen)
}

/** A value of the configuration, and where it comes from. */
interface ConfigRow {
  readonly key: string
  readonly value: unknown
  readonly origin: string
}

export function configTable(rows: readonly ConfigRow[], screen: Screen): string[] {
  const columns: readonly Column<ConfigRow>[] = [
    { title: 'KEY', value: ({ key }) => key, min: 16 },
    { title: 'VALUE', value: ({ value }) => (typeof value === 'string' ? value : toJson(value)), min: 12 },
    { title: 'FROM', value: ({ origin }) => origin },
  ]
  return renderTable(columns, rows, screen)
}
