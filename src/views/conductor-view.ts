/** The view of a conductor. Another release, or another program, may have written the entity: a value of another type is left out. */

import type { Entity } from '../board/index.ts'
import { isDate } from '../core/errors.ts'
import { servesQueue } from '../core/job-names.ts'
import { formatDuration } from './duration.ts'

/** The readers of the fields of an object that another program may have written. A reader returns undefined for a value of another type. */
type Readers = Readonly<Record<string, (value: unknown) => unknown>>
/** The values that the readers return; a field is absent if it cannot be read. */
type Fields<R extends Readers> = { readonly [Name in keyof R]?: Exclude<ReturnType<R[Name]>, undefined> }

const COUNTS = { done: readNumber, failed: readNumber, other: readNumber, workedMs: readNumber }

const CHILD = {
  number: readNumber,
  pid: readNumber,
  state: readText,
  /** The number of tasks that it has begun. */
  tasks: readNumber,
  /** The resident memory when it was last reported, in bytes. */
  memory: readNumber,
}

/** The queues that a conductor serves: names in order, or names with weights. */
type ConductorQueues = readonly string[] | Readonly<Record<string, number>>

const CONDUCTOR = {
  host: readText,
  pid: readNumber,
  /** The release of the application. */
  release: readText,
  /** The release of jobboard. */
  version: readText,
  state: readText,
  running: readNumber,
  concurrency: readNumber,
  /** The queues that it serves: names in order, or names with weights. */
  queues: readQueues,
  flows: readFlowNames,
  /** The versions of each flow that it runs, by name. */
  versions: readVersions,
  /** The uuids of the jobs that it runs. */
  jobs: readTexts,
  /** The uuids of the jobs that it has given back or lost, and whose tasks still keep slots. */
  unended: readTexts,
  /** Its child processes for isolated tasks. */
  children: readChildren,
  /** The reason why no child process can be started. */
  noChild: readText,
  startedAt: readDate,
  /** The time of its last report: at most a minute ago. */
  reportedAt: readDate,
  /** The time at which it began to stop. */
  drainingSince: readDate,
  /** The milliseconds by which the machine's clock is ahead of the servers' clock; present if they differ by seconds. */
  clockAheadMs: readNumber,
  /** The state of the logbooks: `away` while the conductor cannot reach them. */
  logbooks: readText,
  /** The counts of the conductor since its start. */
  counts: readCounts,
  /** The version of its time-zone data. */
  timeZones: readText,
  /** The schedules that it declares: their owner, and their ids unless they are many. */
  declares: readDeclares,
}

export interface ConductorView extends Fields<typeof CONDUCTOR> {
  readonly name: string
}

export function conductorView({ name, metadata }: Entity): ConductorView {
  return { name, ...readFields(CONDUCTOR, metadata) }
}

/** Returns the views of conductors in the order of their names. */
export function conductorViews(entities: readonly Entity[]): ConductorView[] {
  return entities.map(conductorView).sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Returns whether the conductor has this version of a flow. A conductor that has the flow and reports no versions of it is counted. */
export function hasFlow(
  { flows = [], versions = {} }: ConductorView,
  { name, version }: { readonly name: string; readonly version: string },
): boolean {
  const known = Object.hasOwn(versions, name) ? versions[name] : undefined
  return known ? known.includes(version) : flows.includes(name)
}

/** The slots of all conductors that report them. */
export interface Slots {
  readonly busy: number
  readonly all: number
}

export function countSlots(conductors: readonly ConductorView[]): Slots {
  return {
    busy: conductors.reduce((sum, { running = 0 }) => sum + running, 0),
    all: conductors.reduce((sum, { concurrency = 0 }) => sum + concurrency, 0),
  }
}

/** Describes that the clock of a conductor's machine differs from the servers' clock. */
export function describeClock({
  name,
  clockAheadMs,
}: {
  readonly name: string
  readonly clockAheadMs: number
}): string {
  const how = clockAheadMs > 0 ? 'ahead of' : 'behind'
  return `the clock of conductor ${name} is ${formatDuration(Math.abs(clockAheadMs))} ${how} the servers' clock`
}

/** Returns the fields that can be read. */
function readFields<R extends Readers>(readers: R, written: object): Fields<R> {
  const values: Readonly<Record<string, unknown>> = { ...written }
  const fields = Object.entries(readers).map(([name, read]) => [name, read(values[name])] as const)
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined)) as Fields<R>
}

function readText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function readNumber(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

/** Reads a Date, or the text of one: boards that hold JSON store it as text. */
function readDate(value: unknown): Date | undefined {
  const found = new Date(isDate(value) || typeof value === 'string' ? value : Number.NaN)
  return Number.isNaN(found.getTime()) ? undefined : found
}

/** Returns whether a conductor serves a queue. A conductor that names no queues serves all. */
export function doesServe({ queues }: Pick<ConductorView, 'queues'>, queue: string): boolean {
  return servesQueue(queues, queue)
}

/** Returns the queues that a conductor serves, for people: `urgent, bulk`, or `urgent=3, bulk=1`. */
export function describeQueues(queues: ConductorQueues): string {
  const names = Array.isArray(queues) ? queues : Object.entries(queues).map(([name, weight]) => `${name}=${weight}`)
  return names.join(', ')
}

function readQueues(value: unknown): ConductorQueues | undefined {
  if (Array.isArray(value)) return readTexts(value)
  const weights = Object.entries(Object(value)).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  )
  return weights.length > 0 ? Object.fromEntries(weights) : undefined
}

function readTexts(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined
}

/** Reads the names of flows; other programs may list them with their versions, as `[{ name, version }]`. */
function readFlowNames(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) ? readTexts(value.map((flow) => Object(flow).name ?? flow)) : undefined
}

function readVersions(value: unknown): Readonly<Record<string, readonly string[]>> | undefined {
  const lists = Object.entries(Object(value)).flatMap(([name, list]): [string, readonly string[]][] => {
    const versions = readTexts(list)
    return versions ? [[name, versions]] : []
  })
  return lists.length > 0 ? Object.fromEntries(lists) : undefined
}

function readCounts(value: unknown): Fields<typeof COUNTS> | undefined {
  return typeof value === 'object' && value !== null ? readFields(COUNTS, value) : undefined
}

function readChildren(value: unknown): readonly Fields<typeof CHILD>[] | undefined {
  return Array.isArray(value) ? value.map((child) => readFields(CHILD, Object(child))) : undefined
}

function readDeclares(value: unknown): { readonly owner: string; readonly ids?: readonly string[] } | undefined {
  const { owner, ids } = readFields({ owner: readText, ids: readTexts }, Object(value))
  return owner === undefined ? undefined : { owner, ...(ids ? { ids } : {}) }
}
