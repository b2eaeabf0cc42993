/** Converts jobs to rows of lists, and to what a search reads of them: jobs on the board, in the trash, and in the history. */
import {
  type Attempt,
  DEFAULT_QUEUE,
  type EndedJob,
  type Job,
  type TrashedJob,
  type WaitingFor,
} from '../../board/index.ts'
import { countFailures, type ListedJob } from '../../board/internal.ts'
import type { Redactor } from '../../core/redaction.ts'
import { toDate } from '../../core/time.ts'
import { currentRun, jobFacts, waitingView, workView } from '../../views/index.ts'
import { deathsOf, type ListContext, reasonOf, stateOf } from '../../views/internal.ts'
import type { Searched } from '../search/match.ts'
import type { Unencoded } from '../wire/common.ts'
import type { WireJob, WireWaitingFor } from '../wire/jobs.ts'
import { groupOf } from './trash-groups.ts'

/** The longest text in a row, in characters; the page of the job has the whole one. */
const MAX_TEXT = 500

export type JobRow = Unencoded<WireJob>

/** Returns the row of a job on the board. */
export function toJobRow(listed: ListedJob, context: ListContext): JobRow {
  const { job, posting, claimed, cancelRequested, dueAt } = listed
  return toOpenRow(posting, {
    ...{ state: stateOf(listed, context.now), cancelRequested, postedAt: job.postedAt },
    failed: countFailures(posting.attempts),
    run: claimed ? currentRun(posting) : undefined,
    waits: claimed ? undefined : reasonOf(listed, context),
    delayedUntil: dueAt > context.now ? toDate(dueAt) : undefined,
  })
}

type OpenPosting = Parameters<typeof jobFacts>[0] & Pick<Job, 'attempts'> & Partial<Pick<Job, 'key' | 'batch'>>

interface OpenJob extends Pick<JobRow, 'state' | 'cancelRequested' | 'postedAt' | 'delayedUntil' | 'failed'> {
  /** The run that owns the job now. */
  readonly run: Attempt | undefined
  readonly waits: WaitingFor | undefined
}

/** Returns the row of a job on the board, from what is known of it. */
export function toOpenRow(posting: OpenPosting, { run, waits, ...known }: OpenJob): JobRow {
  const { schedule, ...facts } = jobFacts(posting)
  const { key, batch } = posting
  return {
    ...{ ...facts, schedule: schedule?.id, key, batch },
    ...known,
    ...{ owner: run?.who, runningSince: run?.at },
    reason: waits ? waits.text : known.state === 'RUNNING' ? undefined : deathsOf(posting),
    waitingFor: waits && toWaitingFor(waits),
  }
}

/** Returns the row of a job in the trash. */
export function toTrashRow(trashed: TrashedJob): JobRow {
  const { uuid, name, key, batch, who, at, reason, priority, queue, runs } = trashed
  const { flow, version, schedule } = workView(trashed)
  return {
    ...{ uuid, name, state: 'TRASHED', cancelRequested: false, priority, queue, runs, key, batch },
    ...{ flow, version, schedule: schedule?.id, owner: who, endedAt: at, reason: cut(reason) },
  }
}

/** Returns the row of a job that has left the board. */
export function toEndedRow(ended: EndedJob): JobRow {
  const { uuid, name, flow, version, queue, outcome, who, runs, postedAt, startedAt, endedAt, reason } = ended
  return {
    ...{ uuid, name, flow, version, queue, state: outcome === 'COMPLETE' ? 'DONE' : 'TRASHED', cancelRequested: false },
    ...{ runs, owner: who, postedAt, runningSince: startedAt, endedAt, reason: reason && cut(reason) },
  }
}

export function toWaitingFor(reason: WaitingFor): Unencoded<WireWaitingFor> {
  return { ...waitingView(reason), text: cut(reason.text) }
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text
}

/** Returns what a search reads of a job on the board. Redacted values cannot be found: otherwise they could be guessed piece by piece. */
export function searchedJob(listed: ListedJob, redaction: Redactor): Searched {
  const { posting, claimed } = listed
  const { uuid, name, key, batch, priority, queue = DEFAULT_QUEUE, runs, attempts, details, resources } = posting
  const { flow, version, schedule }: Record<string, unknown> = details
  const hide = hiding(redaction)
  return {
    ...{ uuid, name: redaction.text(name), key: hide(key), batch, priority, queue, runs },
    ...{ flow: hide(flow), version: hide(version), schedule: hide(Object(schedule).id) },
    owner: hide(claimed ? currentRun(posting)?.who : undefined),
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
  const { uuid, name, key, batch, priority, queue, who, runs, reason, failure, resources } = trashed
  const { details } = trashed
  const { flow, version, schedule }: Record<string, unknown> = details
  const hide = hiding(redaction)
  return {
    ...{ uuid, name: redaction.text(name), key: hide(key), batch, priority, queue, runs, owner: hide(who) },
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
export function searchedEnded({ uuid, name, flow, queue, who, runs, reason }: EndedJob, redaction: Redactor): Searched {
  const hide = hiding(redaction)
  const reasons = reason === undefined ? [] : [redaction.text(reason)]
  return { uuid, name: redaction.text(name), flow: hide(flow), queue, owner: hide(who), runs, reasons }
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
