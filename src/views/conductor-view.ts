/** The view of a conductor. Another release, or another program, may have written the entity. */

import type { Entity } from '../board/index.ts'
import { isDate } from '../core/errors.ts'
import { formatDuration } from './duration.ts'

export interface ConductorView {
  readonly name: string
  readonly host?: string
  readonly pid?: number
  /** The release of the application. */
  readonly release?: string
  /** The release of jobboard. */
  readonly version?: string
  readonly state?: string
  readonly running?: number
  readonly concurrency?: number
  readonly sizes?: readonly string[]
  readonly flows?: readonly string[]
  /** The versions of each flow that it runs, by name. */
  readonly versions?: Readonly<Record<string, readonly string[]>>
  /** The uuids of the jobs that it runs. */
  readonly jobs?: readonly string[]
  /** The uuids of the jobs that it has given back or lost, and whose tasks still keep slots. */
  readonly unended?: readonly string[]
  /** Its child processes for isolated tasks. */
  readonly children?: readonly ChildView[]
  /** The reason why no child process can be started. */
  readonly noChild?: string
  readonly startedAt?: Date
  /** The time of its last report: at most a minute ago. */
  readonly reportedAt?: Date
  /** The time at which it began to stop. */
  readonly drainingSince?: Date
  /** By how much the clock of its machine is ahead of the servers' clock, in milliseconds, if they differ by seconds. */
  readonly clockAheadMs?: number
  /** Set to `away` while it cannot reach the logbooks of the board. */
  readonly logbooks?: string
  /** The counts of the conductor since its start. */
  readonly counts?: CountsView
  /** The version of its time-zone data. */
  readonly timeZones?: string
  /** The schedules that it declares: their owner, and their ids unless they are many. */
  readonly declares?: { readonly owner: string; readonly ids?: readonly string[] }
}

export interface CountsView {
  readonly done?: number
  readonly failed?: number
  readonly other?: number
  readonly workedMs?: number
}

export interface ChildView {
  readonly number?: number
  readonly pid?: number
  readonly state?: string
  /** The number of tasks that it has begun. */
  readonly tasks?: number
  /** The resident memory when it was last reported, in bytes. */
  readonly memory?: number
}

export function conductorView({ name, metadata }: Entity): ConductorView {
  return {
    name,
    ...text(metadata, 'host'),
    ...number(metadata, 'pid'),
    ...text(metadata, 'release'),
    ...text(metadata, 'version'),
    ...text(metadata, 'state'),
    ...number(metadata, 'running'),
    ...number(metadata, 'concurrency'),
    ...texts(metadata, 'sizes'),
    ...flowNames(metadata),
    ...versions(metadata),
    ...texts(metadata, 'jobs'),
    ...texts(metadata, 'unended'),
    ...children(metadata),
    ...text(metadata, 'noChild'),
    ...date(metadata, 'startedAt'),
    ...date(metadata, 'reportedAt'),
    ...date(metadata, 'drainingSince'),
    ...number(metadata, 'clockAheadMs'),
    ...text(metadata, 'logbooks'),
    ...counts(metadata),
    ...text(metadata, 'timeZones'),
    ...declares(metadata),
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

type Metadata = Entity['metadata']

function text<K extends string>(metadata: Metadata, name: K): { readonly [N in K]?: string } {
  const value = metadata[name]
  return typeof value === 'string' ? ({ [name]: value } as { [N in K]: string }) : {}
}

function number<K extends string>(metadata: Metadata, name: K): { readonly [N in K]?: number } {
  const value = metadata[name]
  return typeof value === 'number' ? ({ [name]: value } as { [N in K]: number }) : {}
}

/** Returns a Date, or the text of one: boards that hold JSON store it as text. */
function date<K extends string>(metadata: Metadata, name: K): { readonly [N in K]?: Date } {
  const value = metadata[name]
  const found = new Date(isDate(value) || typeof value === 'string' ? value : Number.NaN)
  return Number.isNaN(found.getTime()) ? {} : ({ [name]: found } as { [N in K]: Date })
}

function counts({ counts }: Metadata): Pick<ConductorView, 'counts'> {
  if (typeof counts !== 'object' || counts === null) return {}
  const metadata: Metadata = { ...counts }
  const [done, failed, other] = [number(metadata, 'done'), number(metadata, 'failed'), number(metadata, 'other')]
  return { counts: { ...done, ...failed, ...other, ...number(metadata, 'workedMs') } }
}

/** Returns the names of the flows; other programs may list them with their versions, as `[{ name, version }]`. */
function flowNames({ flows }: Metadata): Pick<ConductorView, 'flows'> {
  const names: unknown[] = Array.isArray(flows) ? flows.map((flow) => Object(flow).name ?? flow) : []
  return Array.isArray(flows) && names.every((name) => typeof name === 'string') ? { flows: names } : {}
}

function versions({ versions }: Metadata): Pick<ConductorView, 'versions'> {
  const lists = Object.entries(Object(versions)).flatMap(([name, list]): [string, string[]][] =>
    Array.isArray(list) && list.every((item) => typeof item === 'string') ? [[name, list]] : [],
  )
  return lists.length > 0 ? { versions: Object.fromEntries(lists) } : {}
}

function children({ children }: Metadata): Pick<ConductorView, 'children'> {
  if (!Array.isArray(children)) return {}
  const views = children.map((child): ChildView => {
    const metadata: Metadata = Object(child)
    return {
      ...number(metadata, 'number'),
      ...number(metadata, 'pid'),
      ...text(metadata, 'state'),
      ...number(metadata, 'tasks'),
      ...number(metadata, 'memory'),
    }
  })
  return { children: views }
}

function declares({ declares }: Metadata): Pick<ConductorView, 'declares'> {
  const metadata: Metadata = Object(declares)
  const { owner } = metadata
  return typeof owner === 'string' ? { declares: { owner, ...texts(metadata, 'ids') } } : {}
}

function texts<K extends string>(metadata: Metadata, name: K): { readonly [N in K]?: string[] } {
  const value = metadata[name]
  const list = Array.isArray(value) && value.every((item) => typeof item === 'string')
  return list ? ({ [name]: value } as { [N in K]: string[] }) : {}
}
