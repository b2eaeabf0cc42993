/** The doctor's checks of schedules: late ones, flows that nobody has, orphans, and time zones that differ. */
import type { Entity, JobBoard, ScheduleView } from '../../board/index.ts'
import { isKnownToAny } from '../../board/internal.ts'
import { type ConductorView, conductorView, formatDuration, isLate } from '../../views/index.ts'
import { errorFinding, type Finding, formatCount, listSome, okFinding, warningFinding } from './finding.ts'

/** So many jobs in a row that were trashed are no accident. */
const FAILING_JOBS = 2

/** @throws NotConnected, UnsupportedCapability */
export async function examineSchedules(board: JobBoard): Promise<Finding[]> {
  const [schedules, entities] = await Promise.all([board.schedules.list(), board.entities('conductor')])
  if (schedules.length === 0) return []
  const views = entities.map(conductorView)
  const found = [
    ...noConductorFindings(schedules, views),
    ...lateFindings(schedules),
    ...failingFindings(schedules),
    ...unknownFlowFindings(schedules, entities),
    ...orphanFindings(schedules, views),
    ...zoneFindings(views),
    ...schedules.flatMap(({ error, id }) =>
      error ? [errorFinding('schedule', error.message, `upgrade, or jobboard schedule remove '${id}'`)] : [],
    ),
  ]
  return found.length > 0 ? found : [okFinding('schedules', formatCount(schedules.length, 'schedule'))]
}

function noConductorFindings(schedules: readonly ScheduleView[], conductors: readonly ConductorView[]): Finding[] {
  const active = schedules.filter(({ state }) => state === 'active' || state === 'waiting')
  if (conductors.length > 0 || active.length === 0) return []
  const [next] = active.flatMap(({ id, next }) => (next ? [{ id, next }] : [])).sort((a, b) => +a.next - +b.next)
  const first = next ? `; the next is ${next.id} at ${next.next.toISOString()}` : ''
  const text = `no conductor is connected, and ${formatCount(active.length, 'schedule')} should fire${first}`
  return [warningFinding('schedules', text, 'jobboard conductor --flows MODULE: every conductor fires them')]
}

/** Returns findings for schedules whose last jobs were all trashed. */
function failingFindings(schedules: readonly ScheduleView[]): Finding[] {
  return schedules.flatMap(({ id, flow, failuresInRow = 0, state }) => {
    if (failuresInRow < FAILING_JOBS || state === 'ended') return []
    const text = `schedule ${id}: its last ${failuresInRow} jobs have failed, and are in the trash`
    return [warningFinding('schedule', text, `jobboard trash list --name '${flow}' says why`)]
  })
}

function lateFindings(schedules: readonly ScheduleView[]): Finding[] {
  const late = schedules.filter(isLate)
  if (late.length === 0) return []
  const longest = Math.max(...late.map(({ lateMs = 0 }) => lateMs))
  const text = `not fired for up to ${formatDuration(longest)}: ${listSome(late.map(({ id }) => id))}`
  return [warningFinding('schedules', text, 'start a conductor of this board, or read the logs of those that run')]
}

function unknownFlowFindings(schedules: readonly ScheduleView[], conductors: readonly Entity[]): Finding[] {
  if (conductors.length === 0) return []
  return schedules.flatMap(({ id, flow, version, state }) => {
    if (flow === undefined || state === 'paused' || state === 'ended') return []
    if (isKnownToAny({ flow, version }, conductors)) return []
    const text = `schedule ${id}: no living conductor has flow ${flow}${version === undefined ? '' : ` ${version}`}; its jobs wait`
    return [warningFinding('schedule', text, `start a conductor that has it, or jobboard schedule pause '${id}'`)]
  })
}

/** Returns findings for schedules whose program lives, and does not declare them any more. */
function orphanFindings(schedules: readonly ScheduleView[], conductors: readonly ConductorView[]): Finding[] {
  const orphans = schedules.filter(({ id, declared }) => {
    const same = conductors.filter(({ declares }) => declares?.owner === declared?.owner)
    const isComplete = same.every(({ declares }) => declares?.ids !== undefined)
    return declared && same.length > 0 && isComplete && !same.some(({ declares }) => declares?.ids?.includes(id))
  })
  if (orphans.length === 0) return []
  const text = `no living conductor declares ${listSome(orphans.map(({ id }) => id))}, and the program that did is running`
  return [warningFinding('schedules', text, 'jobboard schedule remove ID, or the option prune of its declaration')]
}

/** Conductors with other time-zone data may compute other times for the same rule. */
function zoneFindings(conductors: readonly ConductorView[]): Finding[] {
  const versions = [...new Set(conductors.flatMap(({ timeZones }) => timeZones ?? []))].sort()
  if (versions.length < 2) return []
  const text = `conductors have different time-zone data: ${versions.join(', ')}`
  return [warningFinding('time zones', text, 'run all conductors with one release of Node.js')]
}
