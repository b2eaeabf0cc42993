/**
 * Search by a uuid or a part of one. Uuids that were made at one time begin alike, so the end of a uuid is accepted,
 * too.
 */
import type { Batch, Job, JobBoard, TrashedJob } from '../board/index.ts'
import type { Located } from '../conductor/internal.ts'
import { InvalidArgument, NotFound } from '../core/errors.ts'
import { parseReference } from '../core/job-names.ts'
import { isFinished } from '../core/states.ts'
import type { BookDetail } from '../persistence/index.ts'
import type { Logbooks } from './opening.ts'

const UUID_LENGTH = 36
/** The minimum length of a part: shorter ones are typing errors. */
const MIN_PART_LENGTH = 4
/**
 * The minimum length of a beginning for a change. The first 13 characters of a uuid of version 7 are the millisecond in
 * which it was made; 8 are a minute, and 4 are weeks: on a board with one job they would match that job, whichever was
 * meant.
 */
const MIN_PART_LENGTH_TO_CHANGE = 13
/** The most jobs that one read of the history returns. */
const MAX_HISTORY = 10_000
/** The most batches that one read returns. */
const MAX_BATCHES = 10_000

/** The purpose of a search: a change needs a longer part of the uuid than a look does. */
export type Purpose = 'look' | 'change'

/**
 * Finds the jobs on the board that are named by uuids or parts of them, in the order of their names. Reads the board
 * once.
 *
 * @throws NotFound; InvalidArgument for a text that is not a uuid, or matches several jobs
 */
export async function findJobs(board: JobBoard, uuids: readonly string[], purpose: Purpose): Promise<Job[]> {
  for (const uuid of uuids) assertUuidPart(uuid, purpose)
  const all: Job[] = []
  if (!uuids.every(isExact)) for await (const job of board.jobs({ ensureFresh: true })) all.push(job)
  const where = `on ${board.uri}`
  const find = (uuid: string) => {
    if (isExact(uuid)) return board.find(uuid.toLowerCase())
    return requireOne(
      all.filter((job) => matchesUuid(job, uuid, purpose)),
      { uuid, where, purpose },
    )
  }
  const found = await Promise.all(uuids.map(find))
  return [...new Map(found.map((job) => [job.uuid, job])).values()]
}

/** Returns whether the text is a whole uuid. */
function isWholeUuid(uuid: string): boolean {
  return uuid.length === UUID_LENGTH
}

/** Returns whether the text is a whole uuid or a reference, and so names one thing only. */
export function isExact(text: string): boolean {
  return isWholeUuid(parseReference(text).uuid)
}

/** Finds a job in the trash. @throws as {@link findJobs} */
export async function findTrashed(board: JobBoard, uuid: string): Promise<TrashedJob> {
  assertUuidPart(uuid, 'look')
  const found = await readTrash(board, (job) => matchesUuid(job, uuid, 'look'))
  return requireOne(found, { uuid, where: `in the trash of ${board.uri}` })
}

/** Finds a batch; lists the batches if only a part of a uuid is given. @throws as {@link findJobs} */
export async function findBatch(board: JobBoard, uuid: string, purpose: Purpose): Promise<Batch> {
  assertUuidPart(uuid, purpose, 'jobboard batch list prints the uuid of each batch')
  if (isWholeUuid(uuid)) return board.findBatch(uuid.toLowerCase())
  const found = (await board.batches({ limit: MAX_BATCHES })).filter((batch) => matchesUuid(batch, uuid, purpose))
  return board.findBatch(requireOne(found, { uuid, where: `on ${board.uri}`, what: 'batch', purpose }).uuid)
}

/** Finds a logbook; lists all logbooks if only a part of a uuid is given. @throws as {@link findJobs} */
export async function findBook({ persistence, uri }: Logbooks, uuid: string, purpose: Purpose): Promise<BookDetail> {
  assertUuidPart(uuid, purpose)
  if (isExact(uuid)) return persistence.getBook(parseReference(uuid).uuid.toLowerCase())
  const found: BookDetail[] = []
  for await (const book of persistence.listBooks()) if (matchesUuid(book, uuid, purpose)) found.push(book)
  return requireOne(found, { uuid, where: `in ${uri}`, what: 'logbook', purpose })
}

/**
 * Completes the uuid of a job, wherever the job is or was. Returns a whole uuid or a reference without a search; searches for a
 * part of a uuid on the board, in its trash and in the logbooks.
 *
 * @returns the uuid, and the text by which the board finds the job: a reference, if one was given
 * @throws as {@link findJobs}
 */
export async function wholeUuid(
  uuid: string,
  { board, logbooks }: SearchedPlaces,
): Promise<{ readonly uuid: string; readonly reference: string }> {
  assertUuidPart(uuid, 'look')
  if (isExact(uuid)) return { uuid: parseReference(uuid.toLowerCase()).uuid, reference: uuid.toLowerCase() }
  const found = new Map<string, { readonly uuid: string; readonly name: string }>()
  const note = (one: { readonly uuid: string; readonly name: string }) =>
    matchesUuid(one, uuid, 'look') && found.set(one.uuid, one)
  for await (const job of board.jobs({ ensureFresh: true })) note(job)
  for await (const job of board.trashed()) note(job)
  if (logbooks) for await (const book of logbooks.persistence.listBooks()) note(book)
  const { boardInternals } = await import('../board/internal.ts')
  const { keepsHistory } = boardInternals(board)
  if (keepsHistory) for (const ended of await board.history({ limit: MAX_HISTORY })) note(ended)
  const where = `on ${board.uri}, in its trash${keepsHistory ? ', its history' : ''}${logbooks ? ` or in ${logbooks.uri}` : ''}`
  const { uuid: whole } = requireOne([...found.values()], { uuid, where })
  return { uuid: whole, reference: whole }
}

/** Returns the wanted jobs in the trash; the others do not stay in memory. */
export async function readTrash(board: JobBoard, wanted: (job: TrashedJob) => boolean): Promise<TrashedJob[]> {
  const trashed: TrashedJob[] = []
  for await (const job of board.trashed()) if (wanted(job)) trashed.push(job)
  return trashed
}

/** Returns whether the text names the job: as a uuid, or a part of one. */
export function matchesUuid(job: { readonly uuid: string }, uuid: string, purpose: Purpose): boolean {
  const part = parseReference(uuid.toLowerCase()).uuid
  const beginning = purpose === 'look' || part.length >= MIN_PART_LENGTH_TO_CHANGE
  return (beginning && job.uuid.startsWith(part)) || job.uuid.endsWith(part)
}

/**
 * Returns the only match; the newest, if one uuid is there several times: a trashed job can be posted again, and
 * trashed again.
 *
 * @throws NotFound if there is none, InvalidArgument if there are several
 */
export function requireOne<T extends { readonly uuid: string; readonly name: string }>(
  found: readonly T[],
  {
    uuid,
    where,
    what = 'job',
    purpose = 'look',
  }: { readonly uuid: string; readonly where: string; readonly what?: string; readonly purpose?: Purpose },
): T {
  const newest = found.at(-1)
  if (!newest)
    throw new NotFound(`there is no ${what} ${uuid} ${where}${purpose === 'change' ? uuidPrefixHint(uuid) : ''}`)
  const uuids = [...new Set(found.map((one) => one.uuid))]
  if (uuids.length === 1) return newest
  const two = uuids.slice(0, 2).join(' and ')
  throw new InvalidArgument(
    `${uuid} matches ${uuids.length} ${what === 'batch' ? 'batches' : `${what}s`} ${where}, ${two} among them; give more of the uuid, or its end`,
  )
}

/** Returns the hint for a part that may have been meant as a beginning. */
function uuidPrefixHint(uuid: string): string {
  if (isExact(uuid) || uuid.length >= MIN_PART_LENGTH_TO_CHANGE) return ''
  return `; a change needs at least ${MIN_PART_LENGTH_TO_CHANGE} characters of a beginning, or ${MIN_PART_LENGTH} of an end`
}

/** Checks the form of a uuid or a part of one. @param hint the command that prints such uuids @throws InvalidArgument */
export function assertUuidPart(
  text: string,
  purpose: Purpose,
  hint = 'jobboard jobs prints the uuid of each job',
): void {
  const { uuid, id } = parseReference(text)
  if (id !== undefined && isWholeUuid(uuid)) return
  const looksLikeOne = /^-?[0-9a-f]+(-[0-9a-f]*)*$/i.test(uuid) && uuid.length <= UUID_LENGTH
  if (looksLikeOne && uuid.length >= MIN_PART_LENGTH) return
  const how =
    purpose === 'change'
      ? `give a uuid, its first ${MIN_PART_LENGTH_TO_CHANGE} characters or more, or its last ${MIN_PART_LENGTH} or more`
      : 'give a uuid, or four characters or more of its beginning or end'
  throw new InvalidArgument(`${text === '' ? 'an empty text' : text} is not a uuid; ${how}; ${hint}`)
}

/** The places in which a job is searched. */
export interface SearchedPlaces {
  readonly board: JobBoard
  readonly logbooks: Logbooks | undefined
}

/** Finds a job by its whole uuid or its reference, wherever it is; returns undefined if it is nowhere. */
export async function locateJob(reference: string, { board, logbooks }: SearchedPlaces): Promise<Located | undefined> {
  const { locate } = await import('../conductor/internal.ts')
  return locate(reference, { board, persistence: logbooks?.persistence })
}

/** Returns the error for a job that is in none of the places, or whose logbook alone is there, and does not say that it is done. */
export async function unknownJobError(
  uuid: string,
  { board, logbooks, book = uuid }: SearchedPlaces & { readonly book?: string | undefined },
): Promise<NotFound> {
  const searched = `job ${uuid} is not on ${board.uri} nor in its trash`
  const { readRecord } = await import('../conductor/internal.ts')
  const record = await readRecord(uuid, book, logbooks?.persistence)
  if (record) {
    const { boardId, isOfOtherBoard, toLogbookText } = await import('../board/internal.ts')
    const { meta } = record.book
    const { state } = record.flow
    const more = isFinished(state) ? `track ${uuid}` : `logbook show ${record.book.uuid}`
    const isElsewhere = isOfOtherBoard(meta, { boardId: boardId(board.uri) })
    const advice = isElsewhere ? '' : `: jobboard ${more} shows more`
    return new NotFound(`${searched}; ${toLogbookText({ meta, state }, board.uri)}${advice}`)
  }
  return new NotFound(
    logbooks
      ? `${searched}, and ${logbooks.uri} has no logbook of it; check the uuid, --board and --persistence`
      : `${searched}; if it is done, its logbook shows it: add --persistence URI`,
  )
}
