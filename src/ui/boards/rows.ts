/** Converts jobs to rows of lists, and to what a search reads of them: jobs on the board, in the trash, and in the history. */
import type { EndedJob, Entity, Job, TrashedJob, WaitingFor } from '../../board/index.ts'
import {
  describeDeaths,
  describeMissingToken,
  isKnownToAny,
  isSuspect,
  type ListedJob,
  suspectReasonOf,
  toFlowReference,
} from '../../board/internal.ts'
import { defined } from '../../core/options.ts'
import type { Redactor } from '../../core/redaction.ts'
import { toDate } from '../../core/time.ts'
import { workView } from '../../views/index.ts'
import type { Searched } from '../search/match.ts'
import type { WireJob, WireWaitingFor } from '../wire/jobs.ts'
import { groupOf } from './trash-groups.ts'

/** The longest text in a row, in characters; the page of the job has the whole one. */
const MAX_TEXT = 500
/** The most jobs that a reason names. */
const MAX_JOBS = 10

export interface RowContext {
  readonly now: number
  readonly redaction: Redactor
  readonly conductors: readonly Entity[]
  /** The times at which limits without a token have one again, by their keys. */
  readonly nextStarts: ReadonlyMap<string, Date>
}

/** Returns the row of a job on the board. */
export function toJobRow(listed: ListedJob, context: RowContext): WireJob {
  const { job, posting, claimed, cancelRequested } = listed
  const { uuid, name, priority, size, runs, maxAttempts, key, batch } = posting
  const run = claimed ? currentRun(listed) : undefined
  const state = stateOf(listed, context.now)
  const waiting = claimed ? undefined : reasonOf(listed, context)
  return {
    ...{ uuid, name, state, cancelRequested, priority, size, runs, maxAttempts, failed: countFailed(posting) },
    ...flowOf(posting.details),
    ...defined({
      key,
      batch,
      owner: run?.who,
      runningSince: run?.at.toISOString(),
      postedAt: toIso(job.postedAt),
      delayedUntil: listed.dueAt > context.now ? toIso(toDate(listed.dueAt)) : undefined,
      reason: waiting ? context.redaction.text(waiting.text) : claimed ? undefined : deathsOf(posting),
      waitingFor: waiting && toWaitingFor(waiting, context.redaction),
    }),
  }
}

/** Returns the row of a job in the trash. */
export function toTrashRow(trashed: TrashedJob, { redaction }: RowContext): WireJob {
  const { uuid, name, key, batch, who, at, reason, priority, size, runs } = trashed
  return {
    ...{ uuid, name, state: 'TRASHED', cancelRequested: false, priority, size, runs },
    ...flowOf(trashed.details),
    owner: who,
    endedAt: at.toISOString(),
    reason: cut(redaction.text(reason)),
    ...defined({ key, batch }),
  }
}

/** Returns the row of a job that has left the board. */
export function toEndedRow(ended: EndedJob, { redaction }: RowContext): WireJob {
  const { uuid, name, flow, version, outcome, who, runs, postedAt, startedAt, endedAt, reason } = ended
  return {
    ...{ uuid, name, state: outcome === 'COMPLETE' ? 'DONE' : 'TRASHED', cancelRequested: false, runs },
    owner: who,
    postedAt: postedAt.toISOString(),
    endedAt: endedAt.toISOString(),
    ...defined({
      ...{ flow, version },
      runningSince: toIso(startedAt),
      reason: reason === undefined ? undefined : cut(redaction.text(reason)),
    }),
  }
}

/** Returns why the job waits: the reason that the board knows, or that no conductor has its flow, or that a limit has no token. */
export function reasonOf(
  listed: ListedJob,
  { conductors, nextStarts }: Pick<RowContext, 'conductors' | 'nextStarts'>,
): WaitingFor | undefined {
  const { job, claimed } = listed
  const reason = suspectReasonOf({ job, reason: listed.reason() }, conductors)
  if (reason || claimed) return reason
  const work = toFlowReference(listed.posting)
  if (work && !isKnownToAny(work, conductors))
    return { kind: 'flow', flow: work.flow, text: `no conductor has flow ${work.flow}` }
  if (nextStarts.size === 0) return undefined
  for (const { key } of job.limits) {
    const until = nextStarts.get(key)
    if (until) return { kind: 'limit', key, limit: {}, used: 0, until, text: describeMissingToken(key, until) }
  }
  return undefined
}

export function stateOf({ claimed, cancelRequested, waits, dueAt }: ListedJob, now: number): WireJob['state'] {
  if (claimed) return 'RUNNING'
  return !cancelRequested && (waits || dueAt > now) ? 'DELAYED' : 'WAITING'
}

/** Returns the run that owns the job now; undefined if its claim has not been read yet. */
function currentRun({ posting }: ListedJob): { readonly who: string; readonly at: Date } | undefined {
  const newest = posting.attempts.at(-1)
  return newest && newest.ended === undefined ? newest : undefined
}

export function toWaitingFor(reason: WaitingFor, redaction: Redactor): WireWaitingFor {
  const { kind } = reason
  const text = cut(redaction.text(reason.text))
  switch (reason.kind) {
    case 'delay':
      return { kind, text, until: reason.until.toISOString() }
    case 'job':
      return { kind, text, jobs: reason.jobs.slice(0, MAX_JOBS).map(({ uuid }) => uuid) }
    case 'resource':
      return { kind, text, key: reason.resource, ...(reason.job ? { jobs: [reason.job.uuid] } : {}) }
    case 'limit':
      return {
        ...{ kind, text, key: reason.key },
        ...defined({ until: toIso(reason.until), jobs: reason.job && [reason.job.uuid] }),
      }
    case 'flow':
      return { kind, text, flow: reason.flow }
    case 'suspect':
      return { kind, text, jobs: reason.holders.slice(0, MAX_JOBS).map(({ uuid }) => uuid) }
    case 'pause':
    case 'refusal':
      return { kind, text }
  }
}

/** Returns a sentence that says that the last owners of an unclaimed job died; undefined unless the job is a suspect. */
export function deathsOf(job: Pick<Job, 'uuid' | 'attempts'>): string | undefined {
  return isSuspect(job) ? `${describeDeaths(job)}; nothing else is in its way` : undefined
}

/** Returns the number of runs that failed. */
export function countFailed({ attempts }: Pick<Job, 'attempts'>): number {
  return attempts.filter(({ ended }) => ended === 'failed').length
}

/** Returns the flow, the version and the schedule of a job. Any client may have written them. */
function flowOf(details: Job['details']): Pick<WireJob, 'flow' | 'version' | 'schedule'> {
  const { flow, version, schedule } = workView({ details })
  return defined({ flow, version, schedule: schedule?.id })
}

export function toIso(date: Date | undefined): string | undefined {
  return date === undefined || Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text
}

/** Returns what a search reads of a job on the board. Redacted values cannot be found: otherwise they could be guessed piece by piece. */
export function searchedJob(listed: ListedJob, redaction: Redactor): Searched {
  const { posting, claimed } = listed
  const { uuid, name, key, batch, priority, size, runs, attempts, details, resources } = posting
  const { flow, version, schedule }: Record<string, unknown> = details
  const hide = hiding(redaction)
  return {
    ...{ uuid, name: redaction.text(name), key: hide(key), batch, priority, size, runs },
    ...{ flow: hide(flow), version: hide(version), schedule: hide(Object(schedule).id) },
    owner: hide(claimed ? currentRun(listed)?.who : undefined),
    resources: [...(resources?.exclusive ?? []), ...(resources?.shared ?? [])].map((text) => redaction.text(text)),
    // Getters, because few searches ask for them.
    get store() {
      return redaction.isEmpty ? details.store : redaction.value(details.store)
    },
    get limits() {
      return listed.job.limits.map((limit) => redaction.text(limit.key))
    },
    get reasons() {
      const waiting = listed.reason()
      const ends = attempts.flatMap(({ reason }) => reason ?? [])
      return (waiting ? [...ends, waiting.text] : ends).map((text) => redaction.text(text))
    },
  }
}

/** Returns what a search reads of a job in the trash. */
export function searchedTrash(trashed: TrashedJob, redaction: Redactor): Searched {
  const { uuid, name, key, batch, priority, size, who, runs, reason, failure, resources } = trashed
  const { details } = trashed
  const { flow, version, schedule }: Record<string, unknown> = details
  const hide = hiding(redaction)
  return {
    ...{ uuid, name: redaction.text(name), key: hide(key), batch, priority, size, runs, owner: hide(who) },
    ...{ flow: hide(flow), version: hide(version), schedule: hide(Object(schedule).id) },
    resources: [...(resources.exclusive ?? []), ...(resources.shared ?? [])].map((text) => redaction.text(text)),
    get store() {
      return redaction.isEmpty ? details.store : redaction.value(details.store)
    },
    get group() {
      return groupOf(trashed, redaction)
    },
    get reasons() {
      return [reason, ...(failure ? [String(failure.message)] : [])].map((text) => redaction.text(text))
    },
  }
}

/** Returns what a search reads of a job of the history. */
export function searchedEnded({ uuid, name, flow, who, runs, reason }: EndedJob, redaction: Redactor): Searched {
  const hide = hiding(redaction)
  const reasons = reason === undefined ? [] : [redaction.text(reason)]
  return { uuid, name: redaction.text(name), flow: hide(flow), owner: hide(who), runs, reasons }
}

/** Returns a function that makes the searchable text of a value, without hidden values: a search could otherwise reveal them. */
function hiding(redaction: Redactor): (value: unknown) => string | undefined {
  return (value) => {
    const text = textOf(value)
    return text === undefined ? undefined : redaction.text(text)
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
