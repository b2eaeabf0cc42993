/** Finding what somebody has named by a uuid, or by a part of one: uuids made at one time begin alike, so its end will do. */
import type { Job, JobBoard, TrashedJob } from '../board/index.ts'
import { InvalidArgument, NotFound } from '../core/errors.ts'
import type { BookDetail } from '../persistence/index.ts'
import type { Logbooks } from './opening.ts'

const UUID_LENGTH = 36
/** Of a beginning: shorter ones are slips of the keyboard. */
const SHORTEST = 4

/** @throws NotFound; InvalidArgument for what is no uuid, or part of several */
export async function findJob(board: JobBoard, uuid: string): Promise<Job> {
  assertBeginning(uuid)
  if (uuid.length === UUID_LENGTH) return board.find(uuid.toLowerCase())
  const found: Job[] = []
  for await (const job of board.jobs({ ensureFresh: true })) if (fits(job, uuid)) found.push(job)
  return theOnly(found, { uuid, where: `on ${board.uri}` })
}

/** @throws as {@link findJob} */
export async function findTrashed(board: JobBoard, uuid: string): Promise<TrashedJob> {
  return theOnly(among(await trashOf(board), uuid), { uuid, where: `in the trash of ${board.uri}` })
}

/** Reads the names of all logbooks, where only the beginning of a uuid is given. @throws as {@link findJob} */
export async function findBook({ persistence, uri }: Logbooks, uuid: string): Promise<BookDetail> {
  assertBeginning(uuid)
  if (uuid.length === UUID_LENGTH) return persistence.getBook(uuid.toLowerCase())
  const found: BookDetail[] = []
  for await (const book of persistence.listBooks()) if (fits(book, uuid)) found.push(book)
  return theOnly(found, { uuid, where: `in ${uri}`, what: 'logbook' })
}

/**
 * The uuid of a job that somebody means, wherever the job is or was. Of a whole one nothing is asked; with the beginning of
 * one the board, its trash and the logbooks are read.
 *
 * @throws as {@link findJob}
 */
export async function wholeUuid(
  uuid: string,
  { board, logbooks }: { readonly board: JobBoard; readonly logbooks: Logbooks | undefined },
): Promise<string> {
  assertBeginning(uuid)
  if (uuid.length === UUID_LENGTH) return uuid.toLowerCase()
  const found = new Map<string, { readonly uuid: string; readonly name: string }>()
  const note = (one: { readonly uuid: string; readonly name: string }) => fits(one, uuid) && found.set(one.uuid, one)
  for await (const job of board.jobs({ ensureFresh: true })) note(job)
  for (const job of await trashOf(board)) note(job)
  if (logbooks) for await (const book of logbooks.persistence.listBooks()) note(book)
  const where = `on ${board.uri}, in its trash${logbooks ? `, or in ${logbooks.uri}` : ''}`
  return theOnly([...found.values()], { uuid, where }).uuid
}

export async function trashOf(board: JobBoard): Promise<TrashedJob[]> {
  const trashed: TrashedJob[] = []
  for await (const job of board.trashed()) trashed.push(job)
  return trashed
}

/** @throws InvalidArgument for what is no uuid, nor the beginning of one */
export function among<T extends { readonly uuid: string }>(jobs: readonly T[], uuid: string): T[] {
  assertBeginning(uuid)
  return jobs.filter((job) => fits(job, uuid))
}

function fits(job: { readonly uuid: string }, uuid: string): boolean {
  const part = uuid.toLowerCase()
  return job.uuid.startsWith(part) || job.uuid.endsWith(part)
}

/**
 * The newest, where one uuid is there several times: a job that was trashed can be posted again, and trashed again.
 *
 * @throws NotFound where there is none, InvalidArgument where there are several
 */
export function theOnly<T extends { readonly uuid: string; readonly name: string }>(
  found: readonly T[],
  { uuid, where, what = 'job' }: { readonly uuid: string; readonly where: string; readonly what?: string },
): T {
  const newest = found.at(-1)
  if (!newest) throw new NotFound(`there is no ${what} ${uuid} ${where}`)
  const uuids = [...new Set(found.map((one) => one.uuid))]
  if (uuids.length === 1) return newest
  const two = uuids.slice(0, 2).join(' and ')
  throw new InvalidArgument(
    `${uuid} is part of the uuids of ${uuids.length} ${what}s ${where}, such as ${two}; write more of it, or the end of it`,
  )
}

/** @throws InvalidArgument */
export function assertBeginning(uuid: string): void {
  const looksLikeOne = /^[0-9a-f]+(-[0-9a-f]*)*$/i.test(uuid) && uuid.length <= UUID_LENGTH
  if (looksLikeOne && uuid.length >= SHORTEST) return
  const how =
    'give a uuid, or four characters or more of its beginning or end; jobboard jobs prints the uuid of each job'
  throw new InvalidArgument(`${uuid} is no uuid; ${how}`)
}
