/** One job with all that is known about it, for people. */
import { describeFailure } from '../../core/failure.ts'
import type { AtomView, JobReport, JobView, LogbookView, TrashView } from '../views.ts'
import { type Facts, lined } from './facts.ts'
import type { Screen } from './jobs.ts'
import { type Column, table } from './table.ts'
import { printable } from './text.ts'

type Reported = NonNullable<JobReport['job']>
type Reading = Reported['attempts'][number]

export function reportLines(uuid: string, { job, logbook }: JobReport, screen: Screen): string[] {
  return [
    ...(job ? jobLines(job, screen) : [`job ${uuid} has left the board; this is what its logbook says`]),
    ...(logbook === undefined ? [] : ['', ...logbookLines(logbook, { ...screen, job })]),
  ]
}

function jobLines(job: Reported, screen: Screen): string[] {
  const facts: Facts = [
    ['flow', flowOf(job)],
    ['store', job.storeKeys.length > 0 ? job.storeKeys.join(', ') : 'empty'],
    ...('reason' in job ? trashFacts(job) : boardFacts(job)),
  ]
  return [printable(`job ${job.uuid}  ${job.name}  ${job.state}`), ...lined(facts), ...attemptLines(job, screen)]
}

function boardFacts({ owner, priority, size, runs, maxAttempts, postedAt }: JobView): Facts {
  return [
    ['owner', owner],
    ['priority', priority],
    ['size', size],
    ['posted', postedAt?.toISOString()],
    ['runs', `${runs}; ${maxAttempts} may fail`],
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

function attemptLines({ attempts, state }: Reported, { width }: Screen): string[] {
  if (attempts.length === 0) return []
  const newest = attempts.at(-1)
  const columns: readonly Column<Reading>[] = [
    { title: 'ATTEMPT', of: (attempt) => attempt.at.toISOString() },
    { title: 'WHO', of: ({ who }) => who, min: 8 },
    { title: 'ENDED', of: (attempt) => endOf(attempt, state === 'CLAIMED' && attempt === newest) },
    { title: 'REASON', of: ({ reason }) => reason, min: 16 },
  ]
  return ['', ...table(columns, attempts, width)]
}

/** Without an end somebody died over it, unless it is the one under way; how a trashed job's last run ended is its reason. */
function endOf({ ended }: Reading, underWay: boolean): string {
  return ended ?? (underWay ? 'running' : 'died')
}

function logbookLines(logbook: LogbookView | null, { width, job }: Screen & { job: Reported | undefined }): string[] {
  if (!logbook) return ['no logbook: no run of it has begun']
  const columns: readonly Column<AtomView>[] = [
    { title: 'TASK', of: ({ name }) => name, min: 8 },
    { title: 'STATE', of: ({ state }) => state },
    { title: 'UPDATED', of: ({ updatedAt }) => updatedAt.toISOString(), optional: true },
    { title: 'FAILURE', of: (atom) => failuresOf(atom), min: 16 },
  ]
  const { uuid, name, flow, version, state, run, createdAt, updatedAt } = logbook
  const facts: Facts = [
    ['flow', `${flow} ${version}`],
    ['run', String(run)],
    ['created', createdAt.toISOString()],
    ['updated', updatedAt.toISOString()],
  ]
  const head = [printable(`logbook ${uuid}  ${name}  ${state}`), ...lined(facts)]
  const atoms = logbook.atoms.length === 0 ? [] : ['', ...table(columns, logbook.atoms, width)]
  return [...head, ...atoms, ...restLines(logbook, job)]
}

/** What looks like work under way, and is none. */
function restLines({ state, atoms }: LogbookView, job: Reported | undefined): string[] {
  const deserted = state === 'RUNNING' && job?.state === 'UNCLAIMED'
  if (state !== 'SUSPENDED' && !deserted) return []
  const why = deserted ? 'its last owner is gone' : 'its last owner was told to stop'
  const halfDone = atoms.filter((atom) => atom.state === 'RUNNING' || atom.state === 'REVERTING')
  const again = halfDone.map((atom) => `; ${atom.name} was stopped in the middle and begins again`)
  return ['', printable(`the flow rests: ${why}. The next run goes on from here${again.join('')}`)]
}

function failuresOf({ failure, revertFailure }: AtomView): string | undefined {
  const all = [failure && describeFailure(failure), revertFailure && `in revert: ${describeFailure(revertFailure)}`]
  return all.filter((text) => text !== undefined).join('; ') || undefined
}
