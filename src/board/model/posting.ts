/**
 * The posting: the record of a job that `post` writes and each claim updates. It has TaskFlow's fields (`uuid`, `name`,
 * `priority`, `details`, `book`) and fields of this library. Unknown fields are kept unchanged, so that two releases and
 * TaskFlow can share a board.
 */
import { validate as validUuid } from 'uuid'
import {
  decodeWeighed,
  type Encoding,
  encodePlain,
  MAX_MEMORY_PER_BYTE,
  roundTrip,
  toFields,
  weigh,
} from '../../core/codec.ts'
import { InvalidPosting, InvalidState, JobboardError, messageOf, PayloadTooLarge } from '../../core/errors.ts'
import { shareOfHeap } from '../../core/memory-size.ts'
import { defined, type KnownOptions } from '../../core/options.ts'
import { nameFault, shortenText } from '../../core/texts.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { parseTraceContext, type TraceContext } from '../../core/tracing.ts'
import { newUuid } from '../../core/uuid.ts'
import { MAX_ATTEMPTS, MAX_LISTED_ATTEMPTS, parseAttempts, type RecordedAttempt } from './attempts.ts'
import { makeBackOff, type PostBackOff, parseBackOff, type StoredBackOff } from './back-off.ts'
import { type Priority, toPriority } from './claim-order.ts'
import { type PostDependency, parseDependencies, type StoredDependency, toStoredDependencies } from './dependencies.ts'
import { RESERVED_EXPIRES_AFTER, toExpiresAfter } from './expiry.ts'
import { type PostKey, toKeyFields } from './key.ts'
import { type PostLimit, parseLimits, type StoredLimits } from './limits.ts'
import { type PostBatch, parsePostBatch } from './post-batch.ts'
import { DEFAULT_QUEUE, queueOfPostOptions, queueOfStored, type Size } from './queues.ts'
import { parseResources, type Resources } from './resources.ts'
import { dropFields, isDropped, isWorthSealing, sealFields } from './sealed.ts'
import { isCount, isDuration } from './stored.ts'

/** The newest version of the posting's layout. A larger one was written by a newer release, and is left to processes that can read it. */
const NEWEST_FORMAT = 6
/** The version of most postings. Postings with dependencies have the next version: a release that does not know them would run the job at once. */
export const POSTING_FORMAT = 1
const FORMAT_WITH_DEPENDENCIES = 2
/** The version of postings in batches: a release that does not know them would not count the end of the job. */
const FORMAT_WITH_BATCH = 3
/** The version of postings whose key has a window: a release that does not know windows would free the key with the end of the job. */
const FORMAT_WITH_WINDOW = 4
/** The version of postings that allow more failures than earlier releases count: to these they would be invalid. */
const FORMAT_WITH_MANY_ATTEMPTS = 5
/** The version of postings in a queue: conductors of a release that knows no queues would claim them all. */
const FORMAT_WITH_QUEUE = 6

/**
 * The maximum size of a posting when it is posted, on every board: half a frame of ZooKeeper, less the rest of the request.
 * Attempts and a failure are added later, so every job that can be posted can be claimed and trashed.
 */
export const MAX_POSTING_BYTES = 507_903

/** The record of a job on the board: written by `post`, updated by claims. Times are in milliseconds. */
export interface Posting {
  readonly uuid: string
  readonly name: string
  readonly details: Details
  /** The logbook; by default the logbook has the job's uuid and name. */
  readonly book?: { readonly uuid: string; readonly name: string }
  readonly priority: Priority
  /** The queue; absent for the default one, unless the job was moved there. */
  readonly queue?: string
  /** The resources that the job owns while it runs. */
  readonly resources?: Resources
  /** The limits that the job keeps, besides the limit of its flow. */
  readonly limits?: StoredLimits
  /** The number of times that resources or limits were added, because a conductor claimed the job without what its flow declares. */
  readonly amended?: number
  /** The key: at most one job with it is on the board. */
  readonly key?: string
  /** The window of the key: milliseconds after the post, by the server's clock, for which it stays taken. See `key.ts`. */
  readonly keyFor?: number
  /** The name of the board object that posted the job, for people. */
  readonly postedBy?: string
  /** The span that has posted the job, in the form of W3C Trace Context; absent where its poster traces nothing. */
  readonly traceparent?: string
  readonly tracestate?: string
  /** The jobs after which the job is run. */
  readonly after?: readonly StoredDependency[]
  /** The uuid of the batch that counts the job. */
  readonly batch?: string
  /** Milliseconds after the last write, by the server's clock, before which the job is not claimed. A claim removes the delay. */
  readonly delay?: number
  /** Milliseconds after the post, by the server's clock, after which a job that was never claimed goes to the trash: see `expiry.ts`. */
  readonly expiresAfter?: number
  /**
   * Milliseconds from the post to the post that has replaced it, which `keyFor` and `expiresAfter` contain: see `taken-key.ts`. 0 for a
   * job that was restored since.
   */
  readonly replacedAfter?: number
  /** The incarnation of the owner that claims its own post: while it lives, the job does not expire. See `claims/incarnation.ts`. */
  readonly reservedFor?: string
  /** Whether its poster claims the job itself: then no other post replaces it. */
  readonly reserved?: true
  /** The maximum duration of one run, in milliseconds from its claim. */
  readonly deadline?: number
  /** The handling of the job when its owner dies, or loses its session and lives: with `fail` it is trashed; if absent, it is run again. */
  readonly onOwnerLost?: 'fail'
  /** The number of failed runs after which the job is trashed. */
  readonly maxAttempts: number
  /** The back-off after failed runs; absent for the default. */
  readonly backOff?: StoredBackOff
  /** The milliseconds after the end of the job for which its results can be read; absent for as long as they are kept. */
  readonly resultTtl?: number
  /** The options that the caller of `post` has given, among those that settings of the flow replace later; absent for none. */
  readonly explicit?: readonly string[]
  readonly format: number
  /** The number of the newest run, which is the number of claims of the job. It is never reset. */
  readonly runs: number
  /** The first and the newest attempts, oldest first; the others are counted: see `attempts.ts`. */
  readonly attempts: readonly RecordedAttempt[]
}

/** The details of a job: conductors use `flow`, `version` and `store`, the application may add other fields. */
export interface Details {
  /** The name of the flow to run, and its version where that matters. */
  readonly flow?: string
  readonly version?: string
  /** The flow's inputs. */
  readonly store?: object
  readonly [key: string]: unknown
}

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
   * The time after the end of the job for which its results can be read: those that the board keeps, and its logbook, which conductors remove then.
   * By default, the flow and the conductor say for how long they are kept. With 0 the board keeps none.
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
    readonly explicit?: readonly string[]
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

/** Returns the version of a posting's layout: the oldest one whose releases keep all that it says. */
export function toFormat({
  after,
  batch,
  keyFor,
  maxAttempts = 0,
  queue,
}: {
  readonly after?: unknown
  readonly batch?: unknown
  readonly keyFor?: unknown
  readonly maxAttempts?: unknown
  readonly queue?: unknown
}): number {
  if (queue !== undefined) return FORMAT_WITH_QUEUE
  if (Number(maxAttempts) > MAX_LISTED_ATTEMPTS) return FORMAT_WITH_MANY_ATTEMPTS
  if (keyFor !== undefined) return FORMAT_WITH_WINDOW
  if (batch) return FORMAT_WITH_BATCH
  return after ? FORMAT_WITH_DEPENDENCIES : POSTING_FORMAT
}

/** Returns the posting of a job that is moved to a queue. The default one is named, too: the posting as it was posted may have another. */
export function moveTo(posting: Posting, queue: string): Posting {
  return { ...posting, queue, format: Math.max(posting.format, FORMAT_WITH_QUEUE) }
}

/** @throws InvalidPosting */
function toStoredLimits(option: unknown): Pick<Posting, 'limits'> {
  const limits = parseLimits(option)
  return limits ? { limits } : {}
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

/** The maximum memory of a decoded posting, in bytes, independent of its encoded size. */
const MAX_MEMORY_BYTES = 16 * 1_024 * 1_024
/**
 * The memory that a posting may take in addition to the typical amount for its size, in bytes: 250 KB of empty objects would
 * take 16 MB, and dozens of postings are read at once.
 */
const MAX_GROWTH_BYTES = 4 * 1_024 * 1_024
/** The memory that reading allows in addition to posting, in bytes: claims add attempts, and must not make a job unreadable. */
const ATTEMPTS_MEMORY_BYTES = 1_024 * 1_024
/** The bytes of memory that an encoded byte of a typical posting takes. */
const TYPICAL_MEMORY_PER_BYTE = 8
/** The details that a view always keeps: processes read them also for jobs that they neither claim nor show. */
const KEPT_DETAILS = ['flow', 'version', 'schedule', 'endedBatch'] as const
/** The memory that a posting without its details takes, in bytes: most take less. */
const DROPPED_BYTES = 2_048

/** The postings in a view may take the heap divided by this number, by default. */
const WINDOW_PARTS = 8

/** Returns how much memory the postings in a view may take by default, in bytes. */
export function defaultWindowBytes(): number {
  return shareOfHeap(WINDOW_PARTS)
}

/** The maximum size of an encoded posting. */
export interface PostingLimit {
  readonly limit: number
  /** The settings on which the limit depends, for errors. */
  readonly setting?: string
}

/** Encodes a posting. @throws PayloadTooLarge */
export function encodePosting(posting: Posting, options: PostingLimit & { readonly encoding: Encoding }): Uint8Array {
  if (isDropped(posting.details))
    throw new InvalidState(`job ${posting.uuid} (${posting.name}): a posting without its details must not be written`)
  const bytes = encodePlain(posting, options.encoding)
  if (bytes.length > options.limit) {
    const setting = options.setting === undefined ? '' : ` (${options.setting})`
    throw new PayloadTooLarge(
      `job ${posting.uuid} (${posting.name}) has ${bytes.length} bytes, at most ${options.limit} are allowed on this board${setting}; ` +
        'store large data elsewhere and post a reference to it',
    )
  }
  // A posting that could not be decoded again must not be posted.
  if (bytes.length * MAX_MEMORY_PER_BYTE > maxMemory(bytes)) assertMemoryLimit(posting, bytes, options.encoding)
  return bytes
}

/** Returns the maximum memory of an encoded posting when it is posted, in bytes. */
function maxMemory({ length }: Uint8Array): number {
  return Math.min(MAX_MEMORY_BYTES, TYPICAL_MEMORY_PER_BYTE * length + MAX_GROWTH_BYTES)
}

function assertMemoryLimit(posting: Posting, bytes: Uint8Array, encoding: Encoding): void {
  try {
    weigh(bytes, encoding, maxMemory(bytes))
  } catch (cause) {
    const why = messageOf(cause)
    throw new PayloadTooLarge(`job ${posting.uuid} (${posting.name}) ${why}`, { cause })
  }
}

/** A posting and its counted size. */
export interface SizedPosting {
  readonly posting: Posting
  /** The memory that the posting takes, in bytes. */
  readonly bytes: number
}

/**
 * Reads a posting.
 *
 * @param life the fields that claims have changed since the post, as {@link encodeLife} wrote them
 * @throws InvalidPosting whatever the bytes are
 */
export function readSizedPosting(bytes: Uint8Array, encoding: Encoding, life?: Uint8Array): SizedPosting {
  const { record, memory } = decodeRaw(bytes, encoding)
  const size = { memory, bytes: bytes.length }
  if (!life) return toSized(checkPosting(record), size)
  const { runs: _, attempts: __, delay: ___, ...rest } = record
  return toSized(checkPosting({ ...rest, ...decodeRaw(life, encoding).record }), size)
}

/** Keeps the details encoded where they take much memory. */
function toSized(posting: Posting, size: { readonly memory: number; readonly bytes: number }): SizedPosting {
  if (!isWorthSealing(size)) return { posting, bytes: Math.max(size.bytes, size.memory) }
  const { details, ...others } = posting
  const memory = weigh(encodePlain(others, 'msgpack'), 'msgpack', Number.POSITIVE_INFINITY)
  const { sealed, bytes } = sealFields(details, { kept: KEPT_DETAILS })
  return { posting: { ...posting, details: sealed }, bytes: memory + bytes }
}

/**
 * Returns the job without its details, for a view that has no room for them: a caller that needs the details reads the posting again.
 * Returns the job itself if this would save no memory.
 */
export function dropDetails<T extends SizedPosting>(job: T): T {
  const { posting, bytes } = job
  if (bytes <= DROPPED_BYTES || isDropped(posting.details)) return job
  return { ...job, posting: { ...posting, details: dropFields(posting.details, { kept: KEPT_DETAILS }) } }
}

/** Returns whether the details of a job were dropped, because the view had no room for them. */
export function hasDroppedDetails({ posting, bytes }: SizedPosting): boolean {
  return bytes > DROPPED_BYTES && isDropped(posting.details)
}

/** Returns the memory that a job takes in a view, in bytes. */
export function toKeptBytes(job: SizedPosting): number {
  return hasDroppedDetails(job) ? DROPPED_BYTES : job.bytes
}

/** Reads a posting as {@link readSizedPosting} does. @throws InvalidPosting whatever the bytes are */
export function decodePosting(bytes: Uint8Array, encoding: Encoding, life?: Uint8Array): Posting {
  return readSizedPosting(bytes, encoding, life).posting
}

/** Returns the memory that an encoded posting takes once it is decoded, in bytes; the encoded size where the bytes are not a posting. */
export function toCountedBytes(bytes: Uint8Array, encoding: Encoding): number {
  try {
    return Math.max(bytes.length, weigh(bytes, encoding, Number.POSITIVE_INFINITY))
  } catch {
    return bytes.length
  }
}

/** Encodes the fields that change with each claim, for a board that stores them separately. */
export function encodeLife(posting: Posting, encoding: Encoding): Uint8Array {
  const { runs, attempts, delay, queue, amended, resources, limits, replacedAfter, keyFor, expiresAfter } = posting
  // The resources and limits differ from the posted ones only where some were added.
  const added = amended === undefined ? {} : defined({ amended, resources, limits })
  // A restoration changes them, where another post had replaced the first one.
  const times = replacedAfter === undefined ? {} : defined({ replacedAfter, keyFor, expiresAfter })
  // The field `runs` must be the first one: functions of Postgres boards read it there.
  return encodePlain({ runs, attempts, ...defined({ queue, delay }), ...added, ...times }, encoding)
}

/**
 * Returns whether {@link encodeLife} returns the same bytes for two postings: jobs that are claimed together share their first attempt. Compares no contents, so
 * it may return false although the bytes are the same.
 */
export function haveSameLife(one: Posting, other: Posting): boolean {
  const isFirst = ({ attempts, delay, amended, replacedAfter }: Posting) =>
    attempts.length === 1 && delay === undefined && amended === undefined && replacedAfter === undefined
  const isSame = one.attempts[0] === other.attempts[0] && one.runs === other.runs && one.queue === other.queue
  return isSame && isFirst(one) && isFirst(other)
}

function decodeRaw(bytes: Uint8Array, encoding: Encoding): { record: Record<string, unknown>; memory: number } {
  let value: unknown
  let memory: number
  try {
    ;({ value, memory } = decodeWeighed(bytes, encoding, { most: maxMemory(bytes) + ATTEMPTS_MEMORY_BYTES }))
  } catch (cause) {
    const why = messageOf(cause)
    throw new InvalidPosting(`is not a ${encoding} record: ${shortenText(why)}`, { cause })
  }
  const record = toFields(value)
  if (record) return { record, memory }
  throw new InvalidPosting(`is not a ${encoding} record of a job`)
}

/** Checks a record that a caller or another release has made. @throws InvalidPosting */
export function checkPosting(record: Partial<Record<keyof Posting | 'size', unknown>>): Posting {
  const {
    uuid,
    name,
    details = {},
    priority,
    queue,
    size,
    maxAttempts = 3,
    format,
    runs = 0,
    attempts,
    resources,
    limits,
    backOff,
    book,
    after,
    traceparent,
    tracestate,
    explicit,
    ...rest
  } = record
  // An own field of this name would become the prototype below, and its contents would not be checked.
  if (Object.hasOwn(rest, '__proto__')) throw new InvalidPosting('must not have a field __proto__')
  const readable = format ?? POSTING_FORMAT
  if (!isCount(readable)) throw new InvalidPosting('format must be a whole number from 0')
  if (readable > NEWEST_FORMAT) {
    throw new InvalidPosting(
      `has format ${readable}, this release reads formats up to ${NEWEST_FORMAT}; upgrade jobboard`,
    )
  }
  if (typeof uuid !== 'string' || !validUuid(uuid)) {
    throw new InvalidPosting(
      typeof uuid === 'string' ? `uuid must be a UUID, got ${shortenText(uuid)}` : 'uuid must be a UUID',
    )
  }
  const what = `job ${uuid}: `
  if (typeof name !== 'string' || name === '') throw new InvalidPosting(`${what}name must be a non-empty string`)
  assertName(what, 'name', name)
  if (!isObject(details)) throw new InvalidPosting(`${what}details must be an object`)
  if (details['store'] !== undefined && !isObject(details['store'])) {
    throw new InvalidPosting(`${what}store must be an object with the flow's inputs`)
  }
  for (const field of ['flow', 'version'] as const) {
    const work = details[field]
    if (work !== undefined && typeof work !== 'string')
      throw new InvalidPosting(`${what}details.${field} must be a string`)
    assertName(what, `details.${field}`, work)
  }
  // The number of the next run must be a safe integer, too.
  if (!isCount(runs) || runs >= Number.MAX_SAFE_INTEGER)
    throw new InvalidPosting(`${what}runs must be a whole number from 0`)
  if (!isCount(maxAttempts) || maxAttempts < 1 || maxAttempts > MAX_ATTEMPTS) {
    throw new InvalidPosting(`${what}maxAttempts must be a whole number from 1 to ${MAX_ATTEMPTS}`)
  }
  assertOptional(what, rest)
  const wanted = parseField(what, parseResources, resources)
  const kept = limits === undefined ? undefined : parseField(what, toStoredLimits, limits)
  const pauses = parseField(what, parseBackOff, backOff)
  const dependencies =
    after === undefined ? undefined : parseField(what, (value) => parseDependencies(value, { uuid }), after)
  const logbook = parseBook(what, book)
  const inQueue =
    queue === undefined && size === undefined
      ? undefined
      : parseField(what, () => queueOfStored(queue, size), undefined)
  // An object literal: a changed copy of the record would take 50 % more memory for every job on the board.
  const posting: Posting = Object.assign(
    {
      uuid: detachText(uuid),
      name,
      details,
      priority: parseField(what, toPriority, priority),
      maxAttempts,
      format: readable,
      runs,
      attempts: parseField(what, parseAttempts, attempts),
    },
    rest,
  )
  // What is invalid is left out: it must not make a job unreadable.
  const trace = traceparent === undefined ? undefined : parseTraceContext({ traceparent, tracestate })
  const given = Array.isArray(explicit) ? explicit.filter((key) => typeof key === 'string') : undefined
  if (!trace && !given && !logbook && !wanted && !kept && !pauses && !dependencies && inQueue === undefined)
    return posting
  return Object.assign(
    posting,
    trace,
    given && { explicit: given },
    inQueue !== undefined && { queue: inQueue },
    logbook && { book: logbook },
    wanted && { resources: wanted },
    kept,
    pauses && { backOff: pauses },
    dependencies && { after: toStoredDependencies(dependencies) },
  )
}

type OptionalPostingKey =
  | 'key'
  | 'keyFor'
  | 'batch'
  | 'delay'
  | 'expiresAfter'
  | 'replacedAfter'
  | 'reservedFor'
  | 'postedBy'
  | 'deadline'
  | 'onOwnerLost'
  | 'resultTtl'
  | 'amended'

function assertOptional(
  what: string,
  fields: { readonly [K in OptionalPostingKey]?: unknown },
): asserts fields is Pick<Posting, OptionalPostingKey> {
  const {
    key,
    keyFor,
    batch,
    delay,
    expiresAfter,
    replacedAfter,
    reservedFor,
    postedBy,
    deadline,
    onOwnerLost,
    resultTtl,
    amended,
  } = fields
  if (batch !== undefined && !(typeof batch === 'string' && validUuid(batch)))
    throw new InvalidPosting(`${what}batch must be a UUID`)
  if (amended !== undefined && !isCount(amended))
    throw new InvalidPosting(`${what}amended must be a whole number from 0`)
  if (delay !== undefined && !isDuration(delay))
    throw new InvalidPosting(`${what}delay must be a number of milliseconds from 0`)
  if (expiresAfter !== undefined && !(isDuration(expiresAfter) && expiresAfter !== 0))
    throw new InvalidPosting(`${what}expiresAfter must be a number of milliseconds above 0`)
  if (replacedAfter !== undefined && !isDuration(replacedAfter))
    throw new InvalidPosting(`${what}replacedAfter must be a number of milliseconds from 0`)
  if (reservedFor !== undefined && typeof reservedFor !== 'string')
    throw new InvalidPosting(`${what}reservedFor must be a string`)
  assertName(what, 'reservedFor', reservedFor)
  if (postedBy !== undefined && typeof postedBy !== 'string')
    throw new InvalidPosting(`${what}postedBy must be a string`)
  assertName(what, 'postedBy', postedBy)
  if (deadline !== undefined && !isDuration(deadline))
    throw new InvalidPosting(`${what}deadline must be a number of milliseconds from 0`)
  if (resultTtl !== undefined && !isDuration(resultTtl))
    throw new InvalidPosting(`${what}resultTtl must be a number of milliseconds from 0`)
  if (onOwnerLost !== undefined && onOwnerLost !== 'fail')
    throw new InvalidPosting(`${what}onOwnerLost must be 'fail' or absent`)
  if (key !== undefined && (typeof key !== 'string' || key === ''))
    throw new InvalidPosting(`${what}key must be a non-empty string`)
  assertName(what, 'key', key)
  if (keyFor !== undefined && !(isDuration(keyFor) && keyFor !== 0))
    throw new InvalidPosting(`${what}keyFor must be a number of milliseconds above 0`)
}

/** Parses the known fields of the book; other fields are not checked and not kept. @throws InvalidPosting */
function parseBook(what: string, book: unknown): Posting['book'] {
  if (book === undefined) return undefined
  const { uuid, name }: { readonly uuid?: unknown; readonly name?: unknown } = isObject(book) ? book : {}
  if (typeof uuid !== 'string' || !validUuid(uuid) || typeof name !== 'string')
    throw new InvalidPosting(`${what}book must be { uuid, name }`)
  assertName(what, 'book.name', name)
  return { uuid, name }
}

/** Checks a name. @throws InvalidPosting for a name that is too long, or not well-formed Unicode */
function assertName(what: string, field: string, name: string | undefined): void {
  const fault = name === undefined ? undefined : nameFault(name)
  if (fault !== undefined) throw new InvalidPosting(`${what}${field} ${fault}`)
}

/** Returns a copy of the text: a slice of a record would keep the whole text of the record in memory. */
function detachText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

/** Parses a field of a posting. @param what the job, for the error @throws InvalidPosting */
function parseField<T>(what: string, parse: (value: unknown) => T, value: unknown): T {
  try {
    return parse(value)
  } catch (error) {
    throw error instanceof JobboardError ? new InvalidPosting(`${what}${error.message}`) : error
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
