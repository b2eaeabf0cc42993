/** Schedules for people: a table, a report of one, and the times of a preview. */

import type { ScheduleView } from '../../../board/index.ts'
import { isDate } from '../../../core/errors.ts'
import type { Occurrence } from '../../../schedule/index.ts'
import { describeDeclaration, formatAge, formatDuration } from '../../../views/index.ts'
import { type Screen, stateTone } from './paint.ts'
import { type Column, type Facts, factLines, renderTable } from './table.ts'
import { escapeUnprintable, toPrintableJson } from './text.ts'

export function schedulesTable(schedules: readonly ScheduleView[], screen: Screen): string[] {
  const columns: readonly Column<ScheduleView>[] = [
    { title: 'ID', value: ({ id }) => id, min: 12 },
    { title: 'STATE', value: formatStateInList, tone: ({ state }) => stateTone(state) },
    { title: 'RULE', value: ({ rule }) => rule, min: 16 },
    { title: 'FLOW', value: ({ flow }) => flow, min: 8 },
    { title: 'NEXT', value: ({ next }) => next?.toISOString().replace('.000Z', 'Z') },
    {
      title: 'FAILED',
      value: ({ failuresInRow = 0 }) => (failuresInRow > 0 ? `${failuresInRow} in a row` : undefined),
    },
    { title: 'FIRED', value: ({ counts }) => counts && String(counts.fired), optional: true },
    { title: 'SKIPPED', value: (each) => formatSkipped(each), optional: true },
  ]
  return renderTable(columns, schedules, screen)
}

/** Returns the lines of one schedule. */
export function scheduleLines(
  schedule: ScheduleView,
  { words, times }: { readonly words: string | undefined; readonly times: readonly Occurrence[] },
  screen: Screen,
): string[] {
  const { paused, counts, declared, store = {}, recent = [], error } = schedule
  const facts = factLines([
    ['schedule', schedule.id],
    ['state', formatScheduleState(schedule)],
    ['rule', schedule.rule],
    ['in words', words],
    ['flow', [schedule.flow, schedule.version].filter(Boolean).join(' ')],
    ['inputs', Object.keys(store).join(', ') || undefined],
    ['tenant', schedule.tenant],
    ['overlap', schedule.overlap],
    ['catch-up', schedule.catchUp],
    ...policyFacts(schedule),
    ...postFacts(schedule),
    ['paused', paused && `${formatAge(paused.since, screen.now)} ago by ${paused.by}${because(paused.reason)}`],
    ['waits for', schedule.awaits && `the end of job ${schedule.awaits}`],
    ['declared', declared && `by ${describeDeclaration(schedule)}`],
    [
      'fired',
      counts &&
        `${counts.fired}, of these late ${counts.late}; by hand ${counts.manual}, backfilled ${counts.backfilled}`,
    ],
    ['skipped', formatSkipped(schedule)],
    ['failed', schedule.failuresInRow ? `the last ${schedule.failuresInRow} jobs` : undefined],
    ['error', error?.message],
  ])
  const firings = recent.map(({ nominal, why, uuid, skipped, count = 1, error: refusal }) => {
    const what = skipped ? `${count === 1 ? 'skipped' : `${count} skipped`}: ${skipped}${because(refusal)}` : uuid
    return `  ${nominal.toISOString()}  ${why === 'time' ? '' : `${why} `}${escapeUnprintable(String(what))}`
  })
  return [
    ...facts,
    ...(times.length > 0 ? ['next', ...occurrenceLines(times)] : []),
    ...(firings.length > 0 ? ['recent', ...firings] : []),
  ]
}

function policyFacts({ spec, policies = {} }: ScheduleView): Facts {
  const { windowMs, max, jitterMs, times, pauseAfterFailures } = policies
  const { start, end, exclude } = spec ?? {}
  const excluded = (Array.isArray(exclude) ? exclude : exclude === undefined ? [] : [exclude]).map(formatBound)
  return [
    ['window', windowMs === undefined ? undefined : formatDuration(windowMs)],
    ['at most', max === undefined ? undefined : `${max} are caught up at once`],
    ['jitter', jitterMs === undefined ? undefined : `up to ${formatDuration(jitterMs)}`],
    ['start', start === undefined ? undefined : formatBound(start)],
    ['end', end === undefined ? undefined : formatBound(end)],
    ['excluded', excluded.join(', ') || undefined],
    ['times', times === undefined ? undefined : `it ends after ${times} jobs`],
    ['pauses', pauseAfterFailures === undefined ? undefined : `after ${pauseAfterFailures} failures in a row`],
  ]
}

function postFacts({ flow, post }: ScheduleView): Facts {
  if (!post) return []
  const { name, priority, queue, maxAttempts, expiresAfter, deadline, onOwnerLost } = post
  return [
    ['job name', name === flow ? undefined : name],
    ['priority', priority === 'NORMAL' ? undefined : priority],
    ['queue', queue],
    ['attempts', maxAttempts === DEFAULT_MAX_ATTEMPTS ? undefined : String(maxAttempts)],
    [
      'expires',
      expiresAfter === undefined ? undefined : `after ${formatDuration(expiresAfter)}, if nobody has started it`,
    ],
    ['deadline', deadline === undefined ? undefined : formatDuration(deadline)],
    ['on loss', onOwnerLost],
  ]
}

const DEFAULT_MAX_ATTEMPTS = 3

function formatBound(bound: unknown): string {
  return isDate(bound) ? bound.toISOString() : typeof bound === 'string' ? bound : toPrintableJson(bound)
}

/** Returns a line for each time of a preview. */
export function occurrenceLines(times: readonly Occurrence[]): string[] {
  return times.map(({ local, note }) => `  ${local}${note === undefined ? '' : `  ${note}`}`)
}

function formatScheduleState({ state, lateMs = 0 }: ScheduleView): string {
  return lateMs > LATE_MS ? `${state}, late` : state
}

/** Returns the state with who has paused the schedule: the list has no other place for it. */
function formatStateInList(schedule: ScheduleView): string {
  const { state, paused } = schedule
  return state === 'paused' && paused ? `paused by ${paused.by}` : formatScheduleState(schedule)
}

/** A schedule that is due for longer than this has no conductor that fires it. */
const LATE_MS = 5_000

function formatSkipped({ counts }: ScheduleView): string | undefined {
  const skipped = Object.entries(counts?.skipped ?? {}).filter(([, count]) => count > 0)
  return skipped.map(([reason, count]) => `${count} ${reason}`).join(', ') || undefined
}

function because(reason: string | undefined): string {
  return reason === undefined ? '' : `: ${reason}`
}
