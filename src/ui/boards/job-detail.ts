/** Finds one job on the board, in the trash, in its logbook or in the history, and reads all its details. */
import type { Attempt, EndedJob, Job, OmittedAttempts, TrashedJob } from '../../board/index.ts'
import { boardInternals, FIRST_ATTEMPTS } from '../../board/internal.ts'
import { findTrashedSince, type JobRecord, type Located, locate, readRecord } from '../../conductor/internal.ts'
import { NotFound } from '../../core/errors.ts'
import type { Redactor } from '../../core/redaction.ts'
import {
  currentRun,
  failureView,
  formatDuration,
  type JobSettings,
  logbookView,
  postingView,
  readJobSettings,
  readOpenJob,
  replacedOptions,
} from '../../views/index.ts'
import type { Unencoded } from '../wire/common.ts'
import type { WireAttempt, WireJobDetail, WireLogbook } from '../wire/jobs.ts'
import { commandsFor } from './commands.ts'
import { type JobRow, toEndedRow, toOpenRow, toTrashRow } from './rows.ts'
import type { ViewedBoard } from './viewed-board.ts'

/** A job that was found: with its record in the logbooks, or the entry of the history where nothing else is left of it. */
export type FoundJob = Located | { readonly place: 'history'; readonly ended: EndedJob }

/** Finds a job by its uuid. @throws NotFound; NotConnected */
export async function findJob(viewed: ViewedBoard, uuid: string): Promise<FoundJob> {
  await viewed.touch()
  const { board, persistence } = viewed
  const located = await locate(uuid, { board, persistence })
  if (located?.place === 'logbook') {
    const { record } = located
    const trashed = await findTrashedSince(record, board)
    if (trashed) return { place: 'trash', trashed, record }
  }
  if (located) return located
  const ended = await board.findEnded(uuid)
  if (ended) return { place: 'history', ended }
  throw new NotFound(
    `job ${uuid} is not on board ${viewed.name}, in its trash, in its history${persistence ? ', or in its logbooks' : ''}`,
  )
}

/** @throws NotFound, NotConnected */
export async function readJobDetail(viewed: ViewedBoard, uuid: string, redaction: Redactor): Promise<JobDetail> {
  const context: DetailContext = { viewed, redaction }
  for (;;) {
    const found = await findJob(viewed, uuid)
    switch (found.place) {
      case 'board': {
        const detail = await boardDetail(found.job, context)
        // The job may have left the board during the reads.
        if (detail) return detail
        break
      }
      case 'trash':
        return trashDetail(found.trashed, found.record, context)
      case 'logbook':
        return endedDetail({ record: found.record, ended: await viewed.board.findEnded(uuid) }, context)
      case 'history':
        return endedDetail({ ended: found.ended }, context)
    }
  }
}

type JobDetail = Unencoded<WireJobDetail>

interface DetailContext {
  readonly viewed: ViewedBoard
  readonly redaction: Redactor
}

async function boardDetail(job: Job, context: DetailContext): Promise<JobDetail | undefined> {
  const { viewed } = context
  const { board, persistence } = viewed
  const [read, settings] = await Promise.all([
    readOpenJob(job, { board, record: readRecord(job.uuid, job.book.uuid, persistence) }),
    readJobSettings(job, boardInternals(board)),
  ])
  if (!read) return undefined
  const { isClaimed, cancellation, record, dependents, waits } = read
  const isDelayed = waits?.kind === 'delay' || waits?.kind === 'job'
  const row = toOpenRow(job, {
    ...{ waits, cancelRequested: job.cancelRequested, postedAt: job.postedAt },
    failed: job.failedAttempts,
    state: isClaimed ? 'RUNNING' : isDelayed ? 'DELAYED' : 'WAITING',
    run: isClaimed ? currentRun(job) : undefined,
    delayedUntil: waits?.kind === 'delay' ? waits.until : undefined,
  })
  const { backOff = job.backOff, ...replaced } = replacedOptions(settings, job)
  return {
    ...postingView(job),
    ...row,
    ...replaced,
    ...{ resources: toResources(job), backOff: backOff && formatBackOff(backOff), cancellation },
    settings: settings && toOrigins(settings),
    progress: record && isClaimed ? progressOf(record) : undefined,
    ...{ after: job.after, dependents },
    attempts: toAttempts(job.attempts, { runs: job.runs, omitted: job.omittedAttempts, isClaimed }),
    omittedAttempts: job.omittedAttempts,
    storeKeys: Object.keys(job.details.store ?? {}),
    logbook: toLogbook(record, context),
    commands: commandsFor(row, viewed),
  }
}

function trashDetail(trashed: TrashedJob, record: JobRecord | undefined, context: DetailContext): JobDetail {
  const { who, reason, failure, after } = trashed
  const { owner: _, ...row } = toTrashRow(trashed)
  return {
    ...row,
    ...{ reason, trashedBy: who, resources: toResources(trashed), after, dependents: [] },
    failure: failure && failureView(failure, context.redaction),
    attempts: toTrashedAttempts(trashed),
    omittedAttempts: trashed.omittedAttempts,
    storeKeys: Object.keys(trashed.details.store ?? {}),
    logbook: toLogbook(record, context),
    commands: commandsFor(row, context.viewed),
  }
}

/** Returns the details of a job that has left the board, from the history and its logbook: the posting and its store are gone. */
function endedDetail(
  { record, ended }: { readonly record?: JobRecord; readonly ended: EndedJob | undefined },
  context: DetailContext,
): JobDetail {
  const logged = record && toLoggedRow(record)
  const row = ended ? { ...logged, ...toEndedRow(ended) } : logged
  if (!row) throw new NotFound(`neither the history nor a logbook has the job`)
  const attempts = ended ? toEndedAttempts(ended) : []
  const details = { ...row, after: [], dependents: [], attempts, logbook: toLogbook(record, context) }
  return { ...details, commands: commandsFor(row, context.viewed) }
}

/** Returns the row of a job that only its logbook knows. Logbooks do not contain the time of the post. */
function toLoggedRow({ book, flow }: JobRecord): JobRow {
  const { uuid, name, version, run, updatedAt, state } = flow
  return {
    ...{ uuid, name: book.name, flow: name, version, state: 'DONE', cancelRequested: false },
    ...{ runs: run, endedAt: updatedAt, reason: state === 'SUCCESS' ? undefined : `its flow ended in ${state}` },
  }
}

/** Returns the resources of a job; undefined for a job without any. */
function toResources({ resources: { exclusive = [], shared = [] } }: Job | TrashedJob): JobDetail['resources'] {
  return exclusive.length + shared.length > 0 ? { exclusive, shared } : undefined
}

type AttemptRow = Unencoded<WireAttempt>

function toEndedAttempts(ended: EndedJob): AttemptRow[] {
  const { earlierRuns, runs, who, startedAt, endedAt, outcome, reason } = ended
  const earlier = toAttempts(earlierRuns, { runs: runs - 1 })
  if (!startedAt) return earlier
  const tookMs = Math.max(0, endedAt.getTime() - startedAt.getTime())
  return [
    ...earlier,
    { run: runs, who, at: startedAt, outcome: outcome === 'COMPLETE' ? 'done' : 'trashed', reason, tookMs },
  ]
}

/** Returns the attempts of a job in the trash. Its last run took until it was moved there, if that run was the cause. */
function toTrashedAttempts({ attempts, omittedAttempts, runs, at, reason }: TrashedJob): AttemptRow[] {
  const shown = toAttempts(attempts, { runs, omitted: omittedAttempts })
  const [last, newest] = [attempts.at(-1), shown.at(-1)]
  if (!last || !newest || last.ended !== 'failed' || last.reason !== reason) return shown
  return [...shown.slice(0, -1), { ...newest, tookMs: Math.max(0, at.getTime() - last.at.getTime()) }]
}

function toAttempts(
  attempts: readonly Attempt[],
  {
    runs,
    omitted,
    isClaimed = false,
  }: { readonly runs: number; readonly omitted?: OmittedAttempts | undefined; readonly isClaimed?: boolean },
): AttemptRow[] {
  const between = omitted ? omitted.failed + omitted.returned + omitted.lost : 0
  return attempts.map(({ who, at, ended, reason }, index) => {
    const isCurrent = isClaimed && index === attempts.length - 1
    const outcome = ended ?? (isCurrent ? undefined : 'lost')
    const after = attempts.length - 1 - index + (index < FIRST_ATTEMPTS ? between : 0)
    return { run: Math.max(1, runs - after), who, at, outcome, reason }
  })
}

/** Returns the logbook of a job: null if no run has begun, undefined where the dashboard has no logbooks. */
function toLogbook(
  record: JobRecord | undefined,
  { viewed, redaction }: DetailContext,
): Unencoded<WireLogbook> | null | undefined {
  if (!viewed.persistence) return undefined
  return record ? toLogbookRow(record, redaction) : null
}

export function toLogbookRow({ book, flow }: JobRecord, redaction: Redactor): Unencoded<WireLogbook> {
  const { milliseconds: tookMs, atoms, ...view } = logbookView(book, flow, redaction)
  return { ...view, tookMs, atoms: atoms.map(({ milliseconds, ...atom }) => ({ ...atom, tookMs: milliseconds })) }
}

/** Returns the progress that one task of the job reports. */
function progressOf({ flow }: JobRecord): number | undefined {
  const reported = flow.atoms.flatMap(({ state, meta: { progress } }) => {
    return state === 'RUNNING' && typeof progress === 'number' ? [progress] : []
  })
  return reported.length === 1 ? reported[0] : undefined
}

/** Returns for which flow or pattern each of the settings is set. */
function toOrigins(settings: JobSettings): JobDetail['settings'] {
  return Object.fromEntries(Object.entries(settings).map(([key, { from }]) => [key, from]))
}

/** Formats a back-off: `1s to 5m, factor 2`. */
function formatBackOff({ first = 1_000, factor = 2, max = 300_000, jitter }: NonNullable<Job['backOff']>): string {
  const range = `${formatDuration(first)} to ${formatDuration(max)}, factor ${factor}`
  return jitter === 'none' ? `${range}, no jitter` : range
}
