/** One job with all that is known about it, for people. */
import { describeFailure } from '../../core/failure.ts'
import type { JobReport, JobView, TrashView } from '../views.ts'
import { cancelledBy, type Facts, lined } from './facts.ts'
import { standing } from './jobs.ts'
import { logbookLines } from './logbook.ts'
import { toneOf } from './paint.ts'
import type { Screen } from './screen.ts'
import { type Column, table } from './table.ts'
import { printable } from './text.ts'

type Reported = NonNullable<JobReport['job']>
type Reading = Reported['attempts'][number]

export function reportLines(uuid: string, { job, logbook }: JobReport, screen: Screen): string[] {
  return [
    ...(job ? jobLines(job, screen) : [`job ${uuid} has left the board; this is what its logbook says`]),
    ...(logbook === undefined ? [] : ['', ...logbookLines(logbook, { screen, jobState: job?.state })]),
  ]
}

function jobLines(job: Reported, screen: Screen): string[] {
  const facts: Facts = [
    ['flow', flowOf(job)],
    ['store', job.storeKeys.length > 0 ? job.storeKeys.join(', ') : 'empty'],
    ...('reason' in job ? trashFacts(job) : boardFacts(job)),
    ['cancel', cancelledBy(job.cancellation)],
  ]
  const head = `${printable(`job ${job.uuid}  ${job.name}`)}  ${screen.paint(standing(job), toneOf(job.state))}`
  return [head, ...lined(facts), ...attemptLines(job, screen)]
}

function boardFacts({
  owner,
  priority,
  size,
  runs,
  maxAttempts,
  postedAt,
  attempts,
}: JobView & Pick<Reported, 'attempts'>): Facts {
  const failed = attempts.filter(({ ended }) => ended === 'failed').length
  return [
    ['owner', owner],
    ['priority', priority],
    ['size', size],
    ['posted', postedAt?.toISOString()],
    ['runs', `${runs}; ${failed} failed, trashed at ${maxAttempts} failures`],
  ]
}

function trashFacts({ by, at, reason, failure }: TrashView): Facts {
  return [
    ['trashed', `${at.toISOString()} by ${by}`],
    ['reason', reason],
    ['failure', failure && describeFailure(failure)],
  ]
}

function flowOf({ flow, version }: { flow?: string; version?: string }): string {
  return [flow ?? 'none named', version].filter((part) => part !== undefined).join(' ')
}

function attemptLines({ attempts, state }: Reported, screen: Screen): string[] {
  if (attempts.length === 0) return []
  const newest = attempts.at(-1)
  const ending = (attempt: Reading) => endOf(attempt, state === 'CLAIMED' && attempt === newest)
  const columns: readonly Column<Reading>[] = [
    { title: 'ATTEMPT', of: (attempt) => attempt.at.toISOString() },
    { title: 'WHO', of: ({ who }) => who, min: 8 },
    { title: 'ENDED', of: ending, tone: (attempt) => toneOf(ending(attempt)) },
    { title: 'REASON', of: ({ reason }) => reason, min: 16 },
  ]
  return ['', ...table(columns, attempts, screen)]
}

/** Without an end somebody died over it, unless it is the one under way; how a trashed job's last run ended is its reason. */
function endOf({ ended }: Reading, underWay: boolean): string {
  return ended ?? (underWay ? 'running' : 'died')
}
