/** Finds a job by its UUID: on the board, in the trash, or in the logbooks. */
import type { Job, JobBoard, TrashedJob } from '../board/index.ts'
import { NotFound } from '../core/errors.ts'
import { parseReference } from '../core/job-names.ts'
import type { FlowDetail, LogBook, Persistence } from '../persistence/index.ts'

/** The record of a job: its flow, and the logbook that the flow is in. */
export interface JobRecord {
  readonly book: LogBook
  readonly flow: FlowDetail
}

/** The place in which a job was found. A job that is done is found in its logbook, even if the trash has an old entry of it. */
export type Located =
  | { readonly place: 'board'; readonly job: Job }
  | { readonly place: 'trash'; readonly trashed: TrashedJob; readonly record: JobRecord | undefined }
  | { readonly place: 'logbook'; readonly record: JobRecord }

export interface LocateOptions {
  readonly board: JobBoard
  /** The persistence with the logbooks; without it, a job that is done is not found. */
  readonly persistence: Pick<Persistence, 'getBook'> | undefined
  /** The UUID of the job's logbook, if `post` was given one. Default: the UUID of the job. */
  readonly book?: string
}

/**
 * Finds a job by its UUID or its reference; returns undefined if it is in none of the places. Reads the board first. If the job is not there, reads
 * its logbook. If that does not say that the job is done, looks into the trash, and then on the board again, because the job may
 * have been restored between the reads. A job that was trashed, posted again and done is done.
 *
 * @throws the errors of board and logbooks when they are away
 */
export async function locate(
  reference: string,
  { board, persistence, book }: LocateOptions,
): Promise<Located | undefined> {
  const { uuid } = parseReference(reference)
  const onBoard = await findOnBoard(reference, board)
  if (onBoard) return onBoard
  const record = await readRecord(uuid, book ?? uuid, persistence)
  if (record?.flow.state === 'SUCCESS') return { place: 'logbook', record }
  const trashed = await board.findTrashed(reference)
  if (!trashed) {
    // A restored job has another reference.
    const restored = await findOnBoard(uuid, board)
    if (restored) return restored
    // It may have been restored and done since the logbook was read.
    const newest = record && (await readRecord(uuid, book ?? uuid, persistence))
    return newest && { place: 'logbook', record: newest }
  }
  const latest = record ?? (await readRecord(uuid, trashed.book.uuid, persistence))
  if (latest?.flow.state === 'SUCCESS') return { place: 'logbook', record: latest }
  return { place: 'trash', trashed, record: latest }
}

/** Reads the record of a job from a logbook. Returns undefined if there is none, or no logbooks are given. */
export async function readRecord(
  uuid: string,
  book: string,
  persistence: Pick<Persistence, 'getBook'> | undefined,
): Promise<JobRecord | undefined> {
  const found = await persistence?.getBook(book).catch(ignoreNotFound)
  const flow = found?.flows.find((flow) => flow.uuid === uuid)
  return found && flow && { book: found, flow }
}

/**
 * Returns the trashed job of a flow that is done: its owner died before it consumed the job, and the job was cancelled. An
 * older entry of the trash is left out: that job was posted again, and is done.
 */
export async function findTrashedSince({ flow }: JobRecord, board: JobBoard): Promise<TrashedJob | undefined> {
  const trashed = await board.findTrashed(flow.uuid)
  return trashed && trashed.at >= flow.updatedAt ? trashed : undefined
}

async function findOnBoard(uuid: string, board: JobBoard): Promise<Located | undefined> {
  const job = await board.find(uuid).catch(ignoreNotFound)
  return job && { place: 'board', job }
}

function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof NotFound)) throw error
}
