/** The arguments and the answer of the function `post`, for posts alone, together with records, and in a transaction of the caller. */
import type { CommitResult } from '../../../../core/async/group-commit.ts'
import { decodeText, encodeText } from '../../../../postgres/index.ts'
import type { Posted, PostRequest } from '../../../contract/index.ts'
import type { Dependency } from '../../../model/dependencies.ts'
import { closedBatchError, duplicateMemberError, unknownBatchError } from '../../../model/post-batch.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import { encodePosting, MAX_POSTING_BYTES, toCountedBytes } from '../../../model/posting/posting-codec.ts'
import { DEFAULT_QUEUE } from '../../../model/queues.ts'
import type { PostgresBoard } from '../store/board.ts'
import { jobId, jobNumbers, textDigest } from '../store/rows.ts'
import { type Encoded, joinBytes } from './grouping.ts'

/** A post with its encoded posting. */
export type EncodedPost = Encoded<PostRequest>

type TakenKey = readonly [uuid: string | null, job: number | null, isInWindow?: true]

/** The reason why a batch refuses a post, as the function `post` returns it. */
export type BatchRefusal = readonly [why: 'unknown' | 'cancelled' | 'sealed' | 'duplicate', reason?: string]

/** The status of jobs that have left the board, by their numbers. */
export type LeftStatuses = ReadonlyMap<number, 'gone' | 'trashed'>

export const NONE_LEFT: LeftStatuses = new Map()

/** The answer of the function `post`. */
export interface PostAnswer {
  readonly ids: readonly number[]
  /** The uuid and number of the job that has the key, and whether it is in a window, by the index of the request. Absent for plain jobs, as what follows. */
  readonly taken?: Readonly<Record<string, TakenKey>> | null
  /** The numbers of the jobs on which a job would depend and which are not on the board, by the index of the request. */
  readonly gone?: Readonly<Record<string, readonly number[]>> | null
  /** The reason why the batch of a job refuses it, by the index of the request. */
  readonly barred?: Readonly<Record<string, BatchRefusal>> | null
}

/** Encodes the posting of a post. @throws PayloadTooLarge */
export function encodePost(request: PostRequest): EncodedPost {
  return { request, bytes: encodePosting(request.posting, { encoding: 'msgpack', limit: MAX_POSTING_BYTES }) }
}

/** Returns the arguments of the function `post` after the board. The list of a feature is empty if no job uses the feature, as the function expects. */
export function toPostParameters(items: readonly EncodedPost[]): unknown[] {
  const postings = items.map(({ request }) => request.posting)
  return [
    ...joinBytes(items),
    postings.map(({ uuid }) => uuid),
    postings.map(({ name }) => encodeText(name)),
    postings.some(({ priority, queue }) => priority !== 'NORMAL' || queue !== undefined)
      ? postings.map(toPlaceText)
      : [],
    emptyIfNone(postings.map(toKeyDigest)),
    emptyIfNone(postings.map(({ onOwnerLost = null }) => onOwnerLost)),
    emptyIfNone(postings.map(({ delay = null }) => delay)),
    ...toDependencyParameters(items.map(({ request }) => request)),
    emptyIfNone(postings.map(({ keyFor = null }) => keyFor)),
    ...toBatchParameters(items.map(({ request }) => request)),
  ]
}

function emptyIfNone<T>(values: readonly (T | null)[]): readonly (T | null)[] {
  return values.some((value) => value !== null) ? values : []
}

/** Returns the place of a job as functions of the database have it: its priority, with its queue after a space unless that is the default one. */
export function toPlaceText({ priority, queue = DEFAULT_QUEUE }: Pick<Posting, 'priority' | 'queue'>): string {
  return queue === DEFAULT_QUEUE ? priority : `${priority} ${encodeText(queue)}`
}

/** Returns the digest of the posting's key, by which the database finds it; null without a key. */
export function toKeyDigest({ key }: Posting): Buffer | null {
  return key === undefined ? null : textDigest(key)
}

/**
 * Returns the dependencies of jobs as arguments, as lists: the index of the job from 1, the number of the other job, and whether an end in
 * the trash meets the dependency.
 */
function toDependencyParameters(posts: readonly PostRequest[]): [number[], number[], boolean[]] {
  const all = posts.flatMap(({ after = [] }, index) => after.map((dependency) => ({ ...dependency, index })))
  return [all.map(({ index }) => index + 1), ...toAfterParameters(all)]
}

/** Returns the dependencies of one job as arguments. */
export function toAfterParameters(after: readonly Dependency[]): [number[], boolean[]] {
  return [jobNumbers(after.map(({ id }) => id)), after.map(({ on }) => on === 'settled')]
}

/** Returns the batches of jobs, and the jobs on whose behalf they are posted; nothing where no job is in a batch. */
function toBatchParameters(posts: readonly PostRequest[]): [(string | null)[], (string | null)[]] {
  const isCounted = posts.some(({ posting }) => posting.batch !== undefined)
  if (!isCounted) return [[], []]
  return [
    posts.map(({ posting: { batch } }) => (batch === undefined ? null : encodeText(batch))),
    posts.map(({ member = null }) => member),
  ]
}

/** Returns what became of each post. @param statuses the status of jobs that have left the board since */
export function toPostResults(
  posts: readonly EncodedPost[],
  { ids, taken, gone, barred }: PostAnswer,
  statuses: LeftStatuses,
): CommitResult<Posted>[] {
  return posts.map(({ bytes, request: { posting } }, index) => {
    const number = ids[index] ?? 0
    const [holder, missing, why] = [taken?.[index], gone?.[index], barred?.[index]]
    if (missing !== undefined) return { value: { created: false, gone: missing.map(jobId) } }
    if (why) return { error: toBatchRefusalError(why, posting) }
    if (holder) return { value: toKeyTaken(holder) }
    return { value: toPosted(number, { bytes: toCountedBytes(bytes, 'msgpack'), status: statuses.get(number) }) }
  })
}

function toPosted(
  number: number,
  { bytes, status }: { bytes: number; status: 'gone' | 'trashed' | undefined },
): Posted {
  const created = { created: true, revision: 0, order: BigInt(number), bytes } as const
  if (status) return { ...created, trashed: status === 'trashed' }
  return { ...created, id: jobId(number) }
}

function toKeyTaken([uuid, job, isInWindow]: TakenKey): Posted {
  const window = isInWindow && job !== null ? { inWindowOf: jobId(job) } : {}
  return { created: false, ...(uuid === null ? {} : { uuid }), revision: job ?? 0, ...window }
}

/** Returns the error of a post that its batch has refused. */
export function toBatchRefusalError([why, reason = '']: BatchRefusal, posting: Posting): Error {
  const { batch = '' } = posting
  if (why === 'unknown') return unknownBatchError(batch, posting)
  if (why === 'duplicate') return duplicateMemberError(batch, posting)
  return closedBatchError(batch, why === 'cancelled' ? { cancelled: { reason: decodeText(reason) } } : {}, posting)
}

/** Returns the status of the jobs that are no longer on the board. Errors are the driver's own. */
export async function readLeftStatuses(board: PostgresBoard, jobs: readonly number[]): Promise<LeftStatuses> {
  const rows = await board.query(
    `SELECT a.id, t.id IS NOT NULL AS trashed FROM pg_catalog.unnest($2::bigint[]) AS a(id)
LEFT JOIN @.trash t ON t.board = $1 AND t.id = a.id
WHERE NOT EXISTS (SELECT FROM @.jobs j WHERE j.board = $1 AND j.id = a.id)`,
    [jobs],
  )
  return new Map(rows.map((row) => [Number(row['id']), row['trashed'] === true ? 'trashed' : 'gone']))
}
