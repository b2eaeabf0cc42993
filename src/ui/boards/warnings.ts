/** The warnings of an overview: what an operator should look at, and the page that shows it. */
import type { FlowSettingsView, LimitView, ScheduleView } from '../../board/index.ts'
import { type ConductorView, describeClock, isLate } from '../../views/index.ts'
import { describeKeptSlots, type JobWarning } from '../../views/internal.ts'
import type { WireOverview } from '../wire/board.ts'
import type { WireScan } from '../wire/common.ts'
import { SLOW } from './slowness.ts'
import { quote } from './trash-groups.ts'

/** The time without a report after which a conductor may hang. A conductor reports once a minute. */
const SILENT_MS = 180_000
/** The most jobs with the same kind of warning that are named. */
const MAX_WARNED_JOBS = 5

export interface WarningSources {
  readonly reading: WireScan['reading']
  readonly limits: readonly LimitView[]
  readonly flowSettings: readonly FlowSettingsView[]
  readonly schedules: readonly ScheduleView[]
  readonly conductors: readonly ConductorView[]
  readonly now: number
  /** The number of jobs that are due and not claimed. */
  readonly waiting: number
  /** The flows that no conductor has, with the numbers of the jobs that wait for one. */
  readonly unknownFlows: readonly { readonly flow: string; readonly jobs: number }[]
  readonly jobs: readonly JobWarning[]
  readonly slowness: ReadonlyMap<string, number>
}

/** Returns the warnings; at most 50. */
export function toWarnings(sources: WarningSources): WireOverview['warnings'] {
  const { reading, limits, flowSettings, schedules, conductors, now, waiting, unknownFlows, jobs, slowness } = sources
  const warnings: WireOverview['warnings'] = []
  if (reading) {
    const { read, all } = reading
    const text = `the board is being read${all === undefined ? '' : ` (${read} of ${all} jobs)`}: the numbers are too small until then`
    warnings.push({ text, page: 'jobs' })
  }
  if (conductors.length === 0 && waiting > 0)
    warnings.push({ text: `no conductor is connected, and ${jobsThatWait(waiting)}`, page: 'conductors' })
  for (const { flow, jobs: count } of unknownFlows)
    warnings.push({
      text: `no conductor has flow ${flow}, and ${jobsThatWait(count)} for one`,
      page: `jobs?${new URLSearchParams({ q: `state:waiting flow:${quote(flow)}` })}`,
    })
  for (const about of ['suspect', 'poison', 'unheeded'] as const) {
    const same = jobs.filter((warning) => warning.about === about)
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
  for (const { flow, settings, error } of flowSettings) {
    if (settings?.enabled === false) warnings.push({ text: `flow ${flow} is disabled: its jobs wait`, page: 'flows' })
    if (error) warnings.push({ text: `settings of flow ${flow} cannot be read: its jobs wait`, page: 'flows' })
  }
  for (const schedule of schedules) {
    const { id, lateMs = 0, error } = schedule
    const page = `schedules?${new URLSearchParams({ schedule: id })}`
    if (isLate(schedule)) warnings.push({ text: `schedule ${id} is ${Math.round(lateMs / 1_000)} s late`, page })
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
