/** The warnings for operators about jobs and the slots of conductors. The doctor and the dashboard show the same sentences. */
import type { Entity, Job } from '../board/index.ts'
import { countTrailingDeaths, describeDeaths, isSuspect, suspectReasonOf } from '../board/internal.ts'
import type { ConductorView } from './conductor-view.ts'
import { formatDuration } from './duration.ts'

/** A job as it was listed: the posting of a claimed job has the attempt of its present owner. */
interface ListedState {
  readonly job: Job
  readonly posting: Pick<Job, 'uuid' | 'attempts'> & { readonly deadline?: number | undefined }
  readonly claimed: boolean
  readonly cancelRequested: boolean
}

export interface JobWarning {
  /** A `poison` job is a suspect that keeps no place and waits for none. */
  readonly about: 'unheeded' | 'suspect' | 'poison'
  readonly uuid: string
  readonly text: string
  readonly advice: string
}

interface JobWarningContext {
  readonly conductors: readonly Entity[]
  /** The time of the servers' clock. */
  readonly now: number
}

/** The tolerated difference between the clock of an owner and this machine's. */
const CLOCK_TOLERANCE_MS = 2_000
/** The number of deaths in a row from which on a job itself is more probable as their cause than its machine. */
const MANY_DEATHS = 5

/** Returns warnings about jobs that ignore a stop, then about suspects that run, then about suspects that are not claimed. */
export function jobWarnings(jobs: readonly ListedState[], context: JobWarningContext): JobWarning[] {
  const waiting = jobs.filter(({ claimed, posting }) => !claimed && isSuspect(posting))
  const found = waiting.map((listed) => ({ listed, reason: suspectReasonOf(toOwnReason(listed), context.conductors) }))
  /** The number of suspects that wait for a job, by its uuid. */
  const behind = new Map<string, number>()
  for (const { reason } of found)
    for (const { uuid } of reason?.kind === 'suspect' ? reason.holders : [])
      behind.set(uuid, (behind.get(uuid) ?? 0) + 1)
  const claimed = jobs.filter(({ claimed }) => claimed)
  return [
    ...claimed.flatMap((listed) => ignoredStop(listed, context)),
    ...claimed.flatMap((listed) => runningSuspect(listed, { ...context, behind })),
    ...found.map(({ listed: { posting }, reason }) => waitingSuspect(posting, reason?.text)),
  ]
}

/** Returns the warning that tasks of jobs which the conductor has given back or lost still keep slots. */
export function describeKeptSlots({ name, unended = [], concurrency }: ConductorView): string | undefined {
  if (unended.length === 0) return undefined
  const all = concurrency === undefined ? '' : ` of ${concurrency}`
  const jobs = unended.slice(0, 3).join(', ')
  return `${name}: tasks of jobs that it has given back or lost ignore ctx.signal, and keep ${unended.length}${all} slots: ${jobs}`
}

/** Returns the job without its known reason to wait, so that a suspect which also waits for a resource is found. */
function toOwnReason({ job }: ListedState): Parameters<typeof suspectReasonOf>[0] {
  return { job, reason: undefined }
}

function ignoredStop({ job, posting, cancelRequested }: ListedState, { now }: JobWarningContext): JobWarning[] {
  const { uuid, deadline, attempts } = posting
  const newest = attempts.at(-1)
  const late = deadline === undefined || !newest ? 0 : now - newest.at.getTime() - deadline
  const lines = [
    ...(late > CLOCK_TOLERANCE_MS ? [`its deadline passed ${formatDuration(late)} ago`] : []),
    ...(cancelRequested ? ['its cancellation was requested'] : []),
  ]
  if (lines.length === 0) return []
  const text = `${job}: ${lines.join(', and ')}, and ${newest?.who ?? 'its owner'} still runs it`
  const advice = `it may be reverting: jobboard track ${uuid}; a task that ignores ctx.signal ends with its process only`
  return [{ about: 'unheeded', uuid, text, advice }]
}

function runningSuspect(
  { posting: { uuid, attempts } }: ListedState,
  { conductors, now, behind }: JobWarningContext & { readonly behind: ReadonlyMap<string, number> },
): JobWarning[] {
  // The last attempt of a claimed job is still running.
  const [earlier, newest] = [attempts.slice(0, -1), attempts.at(-1)]
  if (!newest || !isSuspect({ attempts: earlier })) return []
  const ran = `${newest.who} has run it for ${formatDuration(now - newest.at.getTime())}`
  const here = behind.get(uuid) ?? 0
  const others = here > 0 ? `${here} of this board` : isWaitedFor(uuid, conductors) ? 'of another board' : undefined
  const waits =
    others === undefined ? '' : `; other suspects (${others}) wait for it, at most 10 minutes from its start`
  const text = `${describeDeaths({ uuid, attempts: earlier })}; ${ran}${waits}`
  const advice = `jobboard track ${uuid} shows its progress: it may be healthy`
  return [{ about: 'suspect', uuid, text, advice }]
}

/** Returns whether the conductor that runs the suspect reports that others wait for it. */
function isWaitedFor(uuid: string, conductors: readonly Entity[]): boolean {
  return conductors.some(({ metadata }) => {
    const { job, othersWait }: Readonly<Record<string, unknown>> = Object(metadata['suspect'])
    return job === uuid && othersWait === true
  })
}

function waitingSuspect({ uuid, attempts }: ListedState['posting'], waits: string | undefined): JobWarning {
  const cancel =
    countTrailingDeaths(attempts) < MANY_DEATHS
      ? ''
      : `. After 10 in a row it goes to the trash; jobboard cancel ${uuid} reverts it before that`
  if (waits !== undefined) {
    const advice = `it is claimed when a process has no other such job, or after 10 minutes: it may be healthy${cancel}`
    return { about: 'suspect', uuid, text: waits, advice }
  }
  const advice = `jobboard show ${uuid} names them: read their last log lines, for example for lack of memory${cancel}`
  return { about: 'poison', uuid, text: describeDeaths({ uuid, attempts }), advice }
}
