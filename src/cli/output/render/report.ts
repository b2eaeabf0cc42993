/** The report of one job for people. */
import { describeFailure } from '../../../core/failure.ts'
import {
  describeJobSettings,
  formatDuration,
  type JobReport,
  type JobView,
  type PostingView,
  replacedOptions,
  type TrashView,
} from '../../../views/index.ts'
import { displayWidth } from './columns.ts'
import { formatState } from './lists.ts'
import { logbookLines } from './logbook.ts'
import { type Screen, stateTone } from './paint.ts'
import { type Column, type Facts, factLines, formatCancellation, renderTable } from './table.ts'
import { escapeUnprintable, toPrintableJson } from './text.ts'

type ReportedJob = NonNullable<JobReport['job']>
type ReportedAttempt = ReportedJob['attempts'][number]

export function reportLines(uuid: string, { job, logbook }: JobReport, screen: Screen): string[] {
  return [
    ...(job ? jobLines(job, screen) : [`job ${uuid} has left the board; this is what its logbook says`]),
    ...(logbook === undefined ? [] : ['', ...logbookLines(logbook, { screen, jobState: job?.state })]),
  ]
}

function jobLines(job: ReportedJob, screen: Screen): string[] {
  const facts: Facts = [
    ['flow', formatFlow(job)],
    ['schedule', formatSchedule(job)],
    ['store', job.storeKeys.length > 0 ? job.storeKeys.join(', ') : 'empty'],
    ...('reason' in job ? trashFacts(job) : boardFacts(job)),
    ['cancel', formatCancellation(job.cancellation)],
  ]
  const head = `${escapeUnprintable(`job ${job.uuid}  ${job.name}`)}  ${screen.paint(formatState(job), stateTone(job.state))}`
  return [head, ...factLines(facts), ...attemptLines(job, screen)]
}

function boardFacts(job: JobView & PostingView & Pick<ReportedJob, 'failedAttempts'>): Facts {
  const {
    owner,
    priority,
    queue,
    runs,
    maxAttempts,
    postedAt,
    postedBy,
    ref,
    key,
    keyTakenUntil,
    deadline,
    resultTtl,
    delayedUntil,
    expiresAt,
    waitingFor,
    onOwnerLost,
    backOff,
    settings,
  } = { ...job, ...replacedOptions(job.settings, job) }
  return [
    ['owner', owner],
    ['because', waitingFor?.text],
    ['priority', priority],
    ['queue', queue],
    ['key', keyTakenUntil ? `${key}, taken until ${keyTakenUntil.toISOString()} or its end, whichever is later` : key],
    ...resourceFacts(job),
    ['limits', job.limits?.map(({ key: limit, cost }) => (cost === 1 ? limit : `${limit} (${cost})`)).join(', ')],
    ['after', job.after?.map(({ uuid, on }) => (on === 'done' ? uuid : `${uuid} (${on})`)).join(', ')],
    ['batch', job.batch],
    ['before', job.dependents && nameSome(job.dependents)],
    ['posted', [postedAt?.toISOString(), postedBy && `by ${postedBy}`].filter(Boolean).join(' ') || undefined],
    ['reference', ref],
    ['delayed', delayedUntil && `until ${delayedUntil.toISOString()}`],
    ['expires', expiresAt && `${expiresAt.toISOString()}, if nobody has started it`],
    ['deadline', deadline === undefined ? undefined : formatDuration(deadline)],
    ['results', resultTtl === undefined ? undefined : `for ${formatDuration(resultTtl)} after its end`],
    ['back-off', backOff && formatBackOff(backOff)],
    [
      'runs',
      `${runs}; ${job.failedAttempts} failed, trashed at ${maxAttempts} failures${onOwnerLost === 'fail' ? ', or when its owner is lost' : ''}`,
    ],
    ['settings', settings && describeJobSettings(settings)],
  ]
}

/** The number of jobs that are named in one line. */
const MAX_NAMED = 10

function nameSome(uuids: readonly string[]): string {
  const others = uuids.length - MAX_NAMED
  return [...uuids.slice(0, MAX_NAMED), ...(others > 0 ? [`${others} more`] : [])].join(', ')
}

function resourceFacts({ resources: { exclusive, shared } = {} }: PostingView): Facts {
  return [
    ['exclusive', exclusive?.join(', ')],
    ['shared', shared?.join(', ')],
  ]
}

function formatBackOff({ first, factor, max, jitter }: NonNullable<PostingView['backOff']>): string {
  const parts = [
    first === undefined ? undefined : `first ${formatDuration(first)}`,
    factor === undefined ? undefined : `× ${factor}`,
    max === undefined ? undefined : `at most ${formatDuration(max)}`,
    jitter === 'none' ? 'no jitter' : undefined,
  ]
  return parts.filter((part) => part !== undefined).join(', ')
}

function trashFacts({ queue, by, at, reason, failure }: TrashView): Facts {
  return [
    ['trashed', `${at.toISOString()} by ${by}`],
    ['reason', reason],
    ['queue', queue],
    ['failure', failure && describeFailure(failure)],
  ]
}

function formatSchedule({ schedule }: ReportedJob): string | undefined {
  if (!schedule) return undefined
  const how = schedule.why === 'time' ? '' : ` (${schedule.why})`
  return `${schedule.id}, for ${schedule.nominal.toISOString()}${how}`
}

function formatFlow({ flow, version }: { flow?: string; version?: string }): string {
  return [flow ?? 'none named', version].filter((part) => part !== undefined).join(' ')
}

function attemptLines({ attempts, omittedAttempts, state }: ReportedJob, screen: Screen): string[] {
  if (attempts.length === 0) return []
  const newest = attempts.at(-1)
  const ending = (attempt: ReportedAttempt) => formatEnd(attempt, state === 'CLAIMED' && attempt === newest)
  const columns: readonly Column<ReportedAttempt>[] = [
    { title: 'ATTEMPT', value: (attempt) => attempt.at.toISOString() },
    { title: 'WHO', value: ({ who }) => who, min: 8 },
    { title: 'ENDED', value: ending, tone: (attempt) => stateTone(ending(attempt)) },
    { title: 'REASON', value: ({ reason }) => reason, min: 16 },
  ]
  const lines = ['', ...renderTable(columns, attempts, screen)]
  if (!omittedAttempts) return lines
  const { failed, returned, lost } = omittedAttempts
  const between = `${failed + returned + lost} attempts after the second are not listed: ${failed} failed, ${returned} returned, ${lost} lost their owner`
  return [...lines, between]
}

/**
 * Formats the end of an attempt. One without an end is a death, unless it is running; the end of a trashed job's last
 * attempt is its reason.
 */
function formatEnd({ ended }: ReportedAttempt, underWay: boolean): string {
  return ended ?? (underWay ? 'running' : 'died')
}

export function resultLines(results: Readonly<Record<string, unknown>>): string[] {
  const entries = Object.entries(results).filter(([, value]) => value !== undefined)
  const width = Math.max(0, ...entries.map(([name]) => displayWidth(escapeUnprintable(name))))
  return entries.map(([name, value]) => {
    const shown = escapeUnprintable(name)
    return `${shown}${' '.repeat(width - displayWidth(shown))}  ${toPrintableJson(value)}`
  })
}
