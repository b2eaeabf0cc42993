/** Finds one job on the board, in the trash, in its logbook or in the history, and reads all its details. */
import type { Attempt, EndedJob, Job, TrashedJob } from '../../board/index.ts'
import { boardInternals } from '../../board/internal.ts'
import { type JobRecord, type Located, locate, readRecord } from '../../conductor/internal.ts'
import { NotFound } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import type { Redactor } from '../../core/redaction.ts'
import {
  type AtomView,
  cancellationView,
  failureView,
  formatDuration,
  logbookView,
  workView,
} from '../../views/index.ts'
import type { WireAtom, WireAttempt, WireJob, WireJobDetail, WireLogbook } from '../wire/jobs.ts'
import { commandsFor } from './commands.ts'
import { countFailed, deathsOf, toEndedRow, toIso, toWaitingFor } from './rows.ts'
import type { ViewedBoard } from './viewed-board.ts'

/** A job that was found: with its record in the logbooks, or the entry of the history where nothing else is left of it. */
export type FoundJob = Located | { readonly place: 'history'; readonly ended: EndedJob }

/** Finds a job by its uuid. @throws NotFound; NotConnected */
export async function findJob(viewed: ViewedBoard, uuid: string): Promise<FoundJob> {
  await viewed.touch()
  const { board, persistence } = viewed
  const located = await locate(uuid, { board, persistence })
  if (located) return located
  const ended = await findEnded(viewed, uuid)
  if (ended) return { place: 'history', ended }
  throw new NotFound(
    `job ${uuid} is not on board ${viewed.name}, in its trash, in its history${persistence ? ', or in its logbooks' : ''}`,
  )
}

async function findEnded({ board }: ViewedBoard, uuid: string): Promise<EndedJob | undefined> {
  return boardInternals(board).capabilities.history ? board.findEnded(uuid) : undefined
}

/** @throws NotFound, NotConnected */
export async function readJobDetail(viewed: ViewedBoard, uuid: string, redaction: Redactor): Promise<WireJobDetail> {
  for (;;) {
    const found = await findJob(viewed, uuid)
    switch (found.place) {
      case 'board': {
        const detail = await boardDetail(found.job, viewed, redaction)
        // The job may have left the board during the reads.
        if (detail) return detail
        break
      }
      case 'trash':
        return trashDetail(found.trashed, found.record, { viewed, redaction })
      case 'logbook':
        return endedDetail({ record: found.record, ended: await findEnded(viewed, uuid) }, { viewed, redaction })
      case 'history':
        return endedDetail({ ended: found.ended }, { viewed, redaction })
    }
  }
}

interface DetailContext {
  readonly viewed: ViewedBoard
  readonly redaction: Redactor
}

async function boardDetail(job: Job, viewed: ViewedBoard, redaction: Redactor): Promise<WireJobDetail | undefined> {
  const { board, persistence } = viewed
  const [cancellation, record, dependents] = await Promise.all([
    job.cancelRequested ? board.cancellation(job) : undefined,
    readRecord(job.uuid, job.book.uuid, persistence),
    board.dependencies(job).then(
      (found) => found.dependents.map(({ uuid }) => uuid),
      () => [],
    ),
  ])
  if (job.state !== 'UNCLAIMED' && job.state !== 'CLAIMED') return undefined
  const isRunning = job.state === 'CLAIMED'
  const waits = isRunning ? undefined : await board.waitingFor(job).catch(() => undefined)
  const { uuid, name, ref, priority, size, runs, maxAttempts, key, batch, postedBy, deadline } = job
  const newest = job.attempts.at(-1)
  const run = isRunning && newest?.ended === undefined ? newest : undefined
  const limits = job.limits.filter((limit) => limit.key !== `flow/${job.details.flow}`)
  const isDelayed = waits?.kind === 'delay' || waits?.kind === 'job'
  const state = isRunning ? 'RUNNING' : isDelayed ? 'DELAYED' : 'WAITING'
  const { exclusive = [], shared = [] } = job.resources
  return {
    ...{ uuid, name, ref, state, cancelRequested: job.cancelRequested, priority, size, runs, maxAttempts },
    failed: countFailed(job),
    ...flowOf(job),
    ...defined({
      ...{ key, batch, postedBy, deadline },
      owner: run?.who,
      runningSince: toIso(run?.at),
      postedAt: toIso(job.postedAt),
      delayedUntil: waits?.kind === 'delay' ? toIso(waits.until) : undefined,
      keyTakenUntil: toIso(job.keyTakenUntil),
      expiresAt: toIso(job.expiresAt),
      reason: waits ? redaction.text(waits.text) : isRunning ? undefined : deathsOf(job),
      waitingFor: waits && toWaitingFor(waits, redaction),
      resources: exclusive.length + shared.length > 0 ? { exclusive: [...exclusive], shared: [...shared] } : undefined,
      limits: limits.length > 0 ? limits.map((limit) => ({ ...limit })) : undefined,
      backOff: job.backOff && formatBackOff(job.backOff),
      cancellation: cancellation && cancellationView(cancellation, redaction),
      progress: record && isRunning ? progressOf(record) : undefined,
    }),
    after: job.after.map((one) => ({ ...one })),
    dependents,
    attempts: toAttempts(job.attempts, { runs, isRunning, redaction }),
    storeKeys: Object.keys(job.details.store ?? {}),
    ...logbookOf(record, { viewed, redaction }),
    commands: commandsFor({ uuid, state }, viewed),
  }
}

function trashDetail(trashed: TrashedJob, record: JobRecord | undefined, context: DetailContext): WireJobDetail {
  const { viewed, redaction } = context
  const { uuid, name, key, batch, priority, size, runs, who, at, reason, failure } = trashed
  const { exclusive = [], shared = [] } = trashed.resources
  return {
    ...{ uuid, name, state: 'TRASHED', cancelRequested: false, priority, size, runs },
    ...flowOf(trashed),
    ...{ trashedBy: who, endedAt: at.toISOString(), reason: redaction.text(reason) },
    ...defined({
      ...{ key, batch },
      failure: failure && toWireFailure(failure, redaction),
      resources: exclusive.length + shared.length > 0 ? { exclusive: [...exclusive], shared: [...shared] } : undefined,
    }),
    after: trashed.after.map((one) => ({ ...one })),
    dependents: [],
    attempts: toTrashedAttempts(trashed, redaction),
    storeKeys: Object.keys(trashed.details.store ?? {}),
    ...logbookOf(record, context),
    commands: commandsFor({ uuid, state: 'TRASHED' }, viewed),
  }
}

/** Returns the details of a job that has left the board, from the history and its logbook: the posting and its store are gone. */
function endedDetail(
  { record, ended }: { readonly record?: JobRecord; readonly ended: EndedJob | undefined },
  context: DetailContext,
): WireJobDetail {
  const { viewed, redaction } = context
  const known = ended && toEndedRow(ended, { now: 0, redaction, conductors: [], nextStarts: new Map() })
  const logged = record && toLoggedRow(record)
  const row = known ? { ...logged, ...known } : logged
  if (!row) throw new NotFound(`neither the history nor a logbook has the job`)
  const attempts = ended ? toEndedAttempts(ended, redaction) : []
  const details = { ...row, after: [], dependents: [], attempts, ...logbookOf(record, context) }
  return { ...details, commands: commandsFor(row, viewed) }
}

/** Returns the row of a job that only its logbook knows. Logbooks do not contain the time of the post. */
function toLoggedRow({ book, flow }: JobRecord): WireJob {
  const { uuid, name, version, run, updatedAt, state } = flow
  return {
    ...{ uuid, name: book.name, flow: name, version, state: 'DONE', cancelRequested: false },
    ...{ runs: run, endedAt: updatedAt.toISOString() },
    ...(state === 'SUCCESS' ? {} : { reason: `its flow ended in ${state}` }),
  }
}

function toEndedAttempts(ended: EndedJob, redaction: Redactor): WireAttempt[] {
  const { earlierRuns, runs, who, startedAt, endedAt, outcome, reason } = ended
  const earlier = toAttempts(earlierRuns, { runs: runs - 1, isRunning: false, redaction })
  if (!startedAt) return earlier
  const last: WireAttempt = {
    ...{ run: runs, who, at: startedAt.toISOString(), outcome: outcome === 'COMPLETE' ? 'done' : 'trashed' },
    ...defined({ reason: reason === undefined ? undefined : redaction.text(reason) }),
    tookMs: Math.max(0, endedAt.getTime() - startedAt.getTime()),
  }
  return [...earlier, last]
}

/** Returns the attempts of a job in the trash. Its last run took until it was moved there, if that run was the cause. */
function toTrashedAttempts({ attempts, runs, at, reason }: TrashedJob, redaction: Redactor): WireAttempt[] {
  const shown = toAttempts(attempts, { runs, isRunning: false, redaction })
  const [last, newest] = [attempts.at(-1), shown.at(-1)]
  if (!last || !newest || last.ended !== 'failed' || last.reason !== reason) return shown
  return [...shown.slice(0, -1), { ...newest, tookMs: Math.max(0, at.getTime() - last.at.getTime()) }]
}

function flowOf(job: Job | TrashedJob): Pick<WireJobDetail, 'flow' | 'version' | 'schedule'> {
  const { flow, version, schedule } = workView(job)
  return defined({ flow, version, schedule: schedule?.id })
}

function toAttempts(
  attempts: readonly Attempt[],
  options: { readonly runs: number; readonly isRunning: boolean; readonly redaction: Redactor },
): WireAttempt[] {
  const { runs, isRunning, redaction } = options
  return attempts.map(({ who, at, ended, reason }, index) => {
    const isCurrent = isRunning && index === attempts.length - 1
    const outcome = ended ?? (isCurrent ? undefined : 'lost')
    const run = Math.max(1, runs - attempts.length + 1 + index)
    const text = reason === undefined ? undefined : redaction.text(reason)
    return { run, who, at: at.toISOString(), ...defined({ outcome, reason: text }) }
  })
}

function logbookOf(
  record: JobRecord | undefined,
  { viewed, redaction }: DetailContext,
): { logbook?: WireLogbook | null } {
  if (!viewed.persistence) return {}
  return { logbook: record ? toWireLogbook(record, redaction) : null }
}

export function toWireLogbook({ book, flow }: JobRecord, redaction: Redactor): WireLogbook {
  const view = logbookView(book, flow, redaction)
  return {
    ...{ uuid: view.uuid, name: view.name, flow: view.flow, version: view.version, state: view.state, run: view.run },
    createdAt: view.createdAt.toISOString(),
    updatedAt: view.updatedAt.toISOString(),
    atoms: view.atoms.map(toWireAtom),
  }
}

function toWireAtom(atom: AtomView): WireAtom {
  const { name, kind, state, updatedAt } = atom
  return {
    ...{ name, kind, state, updatedAt: updatedAt.toISOString() },
    ...defined({
      progress: atom.progress,
      message: atom.message,
      startedAt: toIso(atom.startedAt),
      tookMs: atom.milliseconds,
      failure: atom.failure && toMutable(atom.failure),
      revertFailure: atom.revertFailure && toMutable(atom.revertFailure),
    }),
  }
}

function toWireFailure(
  failure: Parameters<typeof failureView>[0],
  redaction: Redactor,
): NonNullable<WireJobDetail['failure']> {
  return toMutable(failureView(failure, redaction))
}

function toMutable({
  name,
  message,
  code,
  causes,
}: ReturnType<typeof failureView>): NonNullable<WireJobDetail['failure']> {
  return { name, message, ...defined({ code, causes: causes?.map(toMutable) }) }
}

/** Returns the progress that one task of the job reports. */
function progressOf({ flow }: JobRecord): number | undefined {
  const reported = flow.atoms.flatMap(({ state, meta: { progress } }) => {
    return state === 'RUNNING' && typeof progress === 'number' ? [progress] : []
  })
  return reported.length === 1 ? reported[0] : undefined
}

/** Formats a back-off: `1s to 5m, factor 2`. */
function formatBackOff({ first = 1_000, factor = 2, max = 300_000, jitter }: NonNullable<Job['backOff']>): string {
  const range = `${formatDuration(first)} to ${formatDuration(max)}, factor ${factor}`
  return jitter === 'none' ? `${range}, no jitter` : range
}
