/** The options of `post`, and the posting that is made of them. */
import { roundTrip } from '../../../core/codec.ts'
import { InvalidPosting } from '../../../core/errors.ts'
import type { KnownOptions } from '../../../core/options.ts'
import { type Duration, toMilliseconds } from '../../../core/time.ts'
import type { TraceContext } from '../../../core/tracing.ts'
import { newUuid } from '../../../core/uuid.ts'
import { makeBackOff, type PostBackOff } from '../back-off.ts'
import { type Priority, toPriority } from '../claim-order.ts'
import { type PostDependency, parseDependencies, toStoredDependencies } from '../dependencies.ts'
import { RESERVED_EXPIRES_AFTER, toExpiresAfter } from '../expiry.ts'
import { type PostKey, toKeyFields } from '../key.ts'
import type { PostLimit } from '../limits.ts'
import { type PostBatch, parsePostBatch } from '../post-batch.ts'
import { DEFAULT_QUEUE, queueOfPostOptions, type Size } from '../queues.ts'
import type { Resources } from '../resources.ts'
import { checkPosting, parseField, toStoredLimits } from './check-posting.ts'
import { type Details, type Posting, toFormat } from './posting.ts'

/** Options of `post`. */
export interface PostOptions {
  /** The name of the job for people, which need not be unique; the flow's name by default. */
  readonly name?: string
  /** Additional fields of the details, beside flow and store. */
  readonly details?: Readonly<Record<string, unknown>>
  readonly book?: { readonly uuid: string; readonly name: string }
  readonly priority?: Priority
  /** The queue of the job, from which conductors with `queues` claim; `default` by default. */
  readonly queue?: string
  /** @deprecated Post the job to a queue of this name: `queue: 'large'`. */
  readonly size?: Size
  /**
   * The names of the resources that the job owns from its claim to its end: `exclusive` alone, `shared` together with other jobs
   * that share them. A name in both lists is exclusive. Jobs that want the same resource run in the order of their posts.
   */
  readonly resources?: Resources
  /**
   * The keys of the limits that the job keeps, besides `flow/NAME`, which every job of a flow keeps: a key, or `{ key, cost }` where a start
   * takes more than one token of a rate. A key for which nothing is set limits nothing (`board.limits.set`). `none`: the job keeps no
   * limit, for work for which a person waits.
   */
  readonly limits?: readonly PostLimit[] | 'none'
  /**
   * The key of the job. At most one job with a key is on the board: posting it again resolves to the existing job. With `{ name, for }` the key
   * stays taken for that time after the post, also when the job has left the board; with `on: 'replace'` a job that was never claimed
   * gets the posting of the newest post.
   */
  readonly key?: PostKey
  /**
   * The jobs after which the job is run, at most 1,000: jobs, references or uuids. With `on: 'done'`, the default, the job goes to the trash
   * when the other one does; with `on: 'settled'` it is run then, too. A uuid that is neither on the board nor in its history is refused.
   */
  readonly after?: readonly PostDependency[]
  /** The batch that counts the job to its end: a `Batch`, or its uuid. See `board.batch`. */
  readonly batch?: PostBatch
  /** The time after the post before which the job is not claimed. */
  readonly delay?: Duration
  /**
   * The time after the post, by the board's clock, after which the job goes to the trash if it was not started; by default it waits for
   * ever. A job that has run once never expires.
   */
  readonly expiresAfter?: Duration
  /** The maximum duration of one run from its claim; a longer run is aborted and reverted, and counts as failed. */
  readonly deadline?: Duration
  /**
   * The action when the owner is lost: with `retry`, the default, another owner runs the job again; with `fail` it is trashed. An owner
   * is lost when it dies, and also when it lives and loses its session: its work may be half done in both cases.
   */
  readonly onOwnerLost?: 'retry' | 'fail'
  /** The number of failed runs after which the job is trashed; 3 by default, at most 1,000,000. A flow with `posting.retry` has 1,000,000 by default. */
  readonly maxAttempts?: number
  /** The back-off after failed runs: by default a random part of 1 s, doubled after each failure, up to 5 min. */
  readonly backOff?: PostBackOff
  /**
   * The time for which the results of the job can be read after its end. Then they expire, and conductors remove the logbook of the job.
   * By default, the flow and the conductor decide how long they are kept. With 0 the board keeps no results.
   */
  readonly resultTtl?: Duration
  /**
   * A client with an open transaction, in which the job is posted; for boards in Postgres. The job is on the board once the
   * transaction is committed; after a rollback it was never posted. The client must be connected to the board's database.
   */
  readonly client?: SqlClient
  /** The uuid of the job; generated by default (version 7). With a given one, you can find the job or post it again after an OutcomeUnknown. */
  readonly uuid?: string
}

/**
 * A client of the `pg` package, with a transaction open: `await pool.connect()`, then `BEGIN`. A pool is refused by the
 * compiler and at run time: it takes another connection for each query, so the job would be posted outside the transaction.
 */
export interface SqlClient {
  /** A property that pools of `pg` have and clients do not. */
  readonly totalCount?: never
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>
}

export const POST_OPTIONS: KnownOptions<PostOptions> = {
  name: true,
  details: true,
  book: true,
  priority: true,
  queue: true,
  size: true,
  resources: true,
  limits: true,
  key: true,
  after: true,
  batch: true,
  delay: true,
  expiresAfter: true,
  deadline: true,
  onOwnerLost: true,
  maxAttempts: true,
  backOff: true,
  resultTtl: true,
  client: true,
  uuid: true,
}

/** The reservation of a job for its poster, which claims it in spite of its delay. */
export interface Reservation {
  /** The delay after which others can claim the job. */
  readonly delay: Duration
  /** The incarnation of the poster: the job expires soon after the poster has died. Ignored if the job has its own `expiresAfter`. */
  readonly reservedFor: string
}

/**
 * Makes a posting from a copy of the request: later changes of the store by the caller are not posted.
 *
 * @throws InvalidPosting naming the invalid field; InvalidArgument when the details contain other than plain data
 */
export function makePosting(
  request: PostOptions & {
    readonly details: Details
    readonly name: string
    readonly postedBy?: string
    readonly trace?: TraceContext | undefined
    readonly explicit?: readonly string[] | undefined
  },
  reservation?: Reservation,
): Posting {
  const { uuid = newUuid(), name, details, book, maxAttempts = 3 } = request
  const { resources, limits, postedBy, trace, deadline, onOwnerLost, backOff, resultTtl } = request
  // Fields are added one by one: most jobs have none of them, and each conditional spread would make an object.
  const posting: { -readonly [K in keyof Posting]?: unknown } = { uuid, name, details }
  if (book) posting.book = { uuid: book.uuid, name: book.name }
  posting.priority = toPriority(request.priority)
  const queue = queueOfPostOptions(request)
  if (queue !== DEFAULT_QUEUE) posting.queue = queue
  if (resources) posting.resources = resources
  if (limits !== undefined) Object.assign(posting, parseField('', toStoredLimits, limits))
  if (request.key !== undefined) Object.assign(posting, toKeyFields(request.key))
  if (postedBy !== undefined) posting.postedBy = postedBy
  if (trace) Object.assign(posting, trace)
  const after = request.after === undefined ? undefined : parseDependencies(request.after, { uuid })
  if (after) posting.after = toStoredDependencies(after)
  const batch = parsePostBatch(request.batch)
  if (batch) posting.batch = batch.uuid
  const delay = toDuration('delay', reservation?.delay ?? request.delay)
  if (delay !== undefined) posting.delay = delay
  const reservedFor = request.expiresAfter === undefined ? reservation?.reservedFor : undefined
  const expiresAfter = reservedFor === undefined ? request.expiresAfter : RESERVED_EXPIRES_AFTER
  // The delay of a reservation is for other owners: its poster claims the job at once.
  if (expiresAfter !== undefined)
    Object.assign(posting, toExpiresAfter(expiresAfter, { delay: reservation ? undefined : delay }))
  if (reservedFor !== undefined) posting.reservedFor = reservedFor
  if (reservation) posting.reserved = true
  if (deadline !== undefined) posting.deadline = toDuration('deadline', deadline)
  if (onOwnerLost !== undefined) Object.assign(posting, toOnOwnerLost(onOwnerLost))
  posting.maxAttempts = maxAttempts
  if (backOff !== undefined) posting.backOff = makeBackOff(backOff)
  if (resultTtl !== undefined) posting.resultTtl = toDuration('resultTtl', resultTtl)
  if (request.explicit !== undefined && request.explicit.length > 0) posting.explicit = request.explicit
  posting.format = toFormat(posting)
  posting.runs = 0
  posting.attempts = []
  return checkPosting(Object(roundTrip(posting)))
}

/** Returns the field of the posting; none for the default. @throws InvalidPosting */
function toOnOwnerLost(option: PostOptions['onOwnerLost']): Pick<Posting, 'onOwnerLost'> {
  if (option === undefined || option === 'retry') return {}
  if (option === 'fail') return { onOwnerLost: option }
  throw new InvalidPosting("onOwnerLost must be 'retry' or 'fail'")
}

/** Returns the milliseconds of an option; undefined where it is absent. @throws InvalidPosting, InvalidArgument */
function toDuration(name: 'delay' | 'deadline' | 'resultTtl', value: Duration | undefined): number | undefined {
  if (value === undefined) return undefined
  const ms = toMilliseconds(value, name)
  if (name === 'deadline' && ms === 0)
    throw new InvalidPosting('deadline must be longer than 0; omit it for no deadline')
  return ms
}
