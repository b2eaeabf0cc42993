/**
 * The posting: what `post` wrote, and what travels with the job from claim to claim. On the board it is TaskFlow's
 * (`uuid`, `name`, `priority`, `details`, `book`) with fields of ours beside them; fields that neither knows are kept as
 * they are, so that two releases and TaskFlow can share a board.
 */
import { validate as validUuid } from 'uuid'
import { decodeWeighed, type Encoding, encodePlain, MAX_MEMORY_PER_BYTE, roundTrip, weigh } from '../../core/codec.ts'
import { InvalidPosting, JobboardError, PayloadTooLarge } from '../../core/errors.ts'
import type { KnownOptions } from '../../core/options.ts'
import { isTooLong, MAX_NAME_BYTES, shortenText } from '../../core/texts.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { newUuid } from '../../core/uuid.ts'
import { MAX_ATTEMPTS, parseAttempts, type RecordedAttempt } from './attempts.ts'
import { makeBackOff, type PostBackOff, parseBackOff, type StoredBackOff } from './back-off.ts'
import { type Priority, toPriority } from './priority.ts'
import { parseResources, type Resources } from './resources.ts'

/** Of the layout of a posting; a larger one was written by a newer release and is left to those who can read it. */
export const POSTING_FORMAT = 1

/** All sizes, smallest first. */
export const SIZES = ['small', 'medium', 'large'] as const
/** How much of a machine a job takes: for conductors to choose by. */
export type Size = (typeof SIZES)[number]

/** What `post` wrote, with what claims have added: the job as it lies on the board. Times are in milliseconds. */
export interface Posting {
  readonly uuid: string
  readonly name: string
  readonly details: Details
  /** The logbook; without one, the logbook bears the job's uuid and name. */
  readonly book?: { readonly uuid: string; readonly name: string }
  readonly priority: Priority
  /** A conductor's filter: how much of a machine the job takes. */
  readonly size: Size
  /** What it must own beside itself while it runs. */
  readonly resources?: Resources
  /** At most one job with this key is on the board. */
  readonly key?: string
  /** Not claimed before so many milliseconds after this was written, by the server's clock. A claim takes it away. */
  readonly delay?: number
  /** How long one run may take, in milliseconds from its claim. */
  readonly deadline?: number
  /** What becomes of it when its owner dies, or loses its session and lives: trashed. Absent: run again. */
  readonly onOwnerLost?: 'fail'
  /** How many runs may fail before the job is trashed. */
  readonly maxAttempts: number
  /** How long it rests after a run that failed, where that is not the usual. */
  readonly backOff?: StoredBackOff
  readonly format: number
  /** The number of the newest run: how often the job has been claimed. Never reset. */
  readonly runs: number
  /** The newest attempts, oldest first. */
  readonly attempts: readonly RecordedAttempt[]
}

/** What a job is about: `flow`, `version` and `store` are for conductors, the rest is yours. */
export interface Details {
  /** The name of the flow to run, and its version where that matters. */
  readonly flow?: string
  readonly version?: string
  /** The flow's inputs. */
  readonly store?: object
  readonly [key: string]: unknown
}

/** What a posting can ask for. */
export interface PostOptions {
  /** Names the job for people; need not be unique. The flow's name by default. */
  readonly name?: string
  /** Whatever else the posting should carry beside flow and store. */
  readonly details?: Readonly<Record<string, unknown>>
  readonly book?: { readonly uuid: string; readonly name: string }
  readonly priority?: Priority
  readonly size?: Size
  /**
   * Names of what it must own while it runs, held from its claim to its end: `exclusive` alone, `shared` with others who
   * share. A name in both is exclusive. Jobs that want the same run in the order in which they were posted.
   */
  readonly resources?: Resources
  /** At most one job with this key is on the board: posting it again answers with the one that is there. */
  readonly key?: string
  /** How long it rests before anybody claims it. */
  readonly delay?: Duration
  /** How long one run may take, from its claim; then it is aborted, reverted, and counts as failed. */
  readonly deadline?: Duration
  /**
   * When its owner is lost: `retry`, the default, has another run it; `fail` trashes it, with that as the reason. Lost is an
   * owner that dies, and one that lives and loses its session: what it had begun is half done either way.
   */
  readonly onOwnerLost?: 'retry' | 'fail'
  /** How many runs may fail before it is trashed; 3 by default, at most 10. */
  readonly maxAttempts?: number
  /** How long it rests after a run that failed: by default 1 s, twice as long each time, up to 5 min; a random part of it. */
  readonly backOff?: PostBackOff
  /**
   * Where the board is in Postgres: posts in the transaction that this client has open, with whatever else is in it. The
   * job is on the board when that is committed, and never was if it is rolled back. The client must be connected to the
   * board's database.
   */
  readonly client?: SqlClient
  /** Made when absent (version 7). Give one to be able to ask for the job, or post again, after an OutcomeUnknown. */
  readonly uuid?: string
}

/**
 * A client of the `pg` package, with a transaction open: `await pool.connect()`, then `BEGIN`. A pool is refused by the
 * compiler and at run time: it takes another connection for each query, so the job would be posted outside the transaction.
 */
export interface SqlClient {
  /** Pools of `pg` have it, clients do not. */
  readonly totalCount?: never
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>
}

export const POST_OPTIONS: KnownOptions<PostOptions> = {
  name: true,
  details: true,
  book: true,
  priority: true,
  size: true,
  resources: true,
  key: true,
  delay: true,
  deadline: true,
  onOwnerLost: true,
  maxAttempts: true,
  backOff: true,
  client: true,
  uuid: true,
}

/**
 * A copy of what is asked for: what the caller does to the store afterwards was not posted.
 *
 * @throws InvalidPosting naming the field that makes no sense; InvalidArgument when the details hold what is no plain data
 */
export function makePosting(request: PostOptions & { readonly details: Details; readonly name: string }): Posting {
  const { uuid = newUuid(), name, details, book, maxAttempts = 3, size = 'medium', resources, key } = request
  const posting: Posting = {
    uuid,
    name,
    details,
    ...(book ? { book: { uuid: book.uuid, name: book.name } } : {}),
    priority: toPriority(request.priority),
    size,
    ...(resources ? { resources } : {}),
    ...(key === undefined ? {} : { key }),
    ...parseDurationOption('delay', request.delay),
    ...parseDurationOption('deadline', request.deadline),
    ...toOnOwnerLost(request.onOwnerLost),
    maxAttempts,
    ...(request.backOff === undefined ? {} : { backOff: makeBackOff(request.backOff) }),
    format: POSTING_FORMAT,
    runs: 0,
    attempts: [],
  }
  return checkPosting(Object(roundTrip(posting)))
}

/** What is usual is not written down. @throws InvalidPosting */
function toOnOwnerLost(asked: PostOptions['onOwnerLost']): Pick<Posting, 'onOwnerLost'> {
  if (asked === undefined || asked === 'retry') return {}
  if (asked === 'fail') return { onOwnerLost: asked }
  throw new InvalidPosting('onOwnerLost is none of retry, fail')
}

function parseDurationOption<K extends 'delay' | 'deadline'>(
  name: K,
  asked: Duration | undefined,
): { readonly [N in K]?: number } {
  if (asked === undefined) return {}
  const ms = toMilliseconds(asked, name)
  if (name === 'deadline' && ms === 0)
    throw new InvalidPosting('deadline: 0 is no time to run in; leave it out for as long as it takes')
  return { [name]: ms } as { [N in K]: number }
}

/** The most memory that a decoded posting may take, in bytes, however large it is encoded. */
const MAX_MEMORY_BYTES = 16 * 1_024 * 1_024
/**
 * How many bytes of memory a posting may take in addition to the usual ones: 250 KB of empty objects would take 16 MB, and
 * dozens of postings are read at once.
 */
const MAX_GROWTH_BYTES = 4 * 1_024 * 1_024
/** How much more may be read than may be posted: claims add attempts, and must not make a job unreadable. */
const ATTEMPTS_MEMORY_BYTES = 1_024 * 1_024
/** How many bytes of memory count as one encoded byte: about what a usual posting takes. */
const TYPICAL_MEMORY_PER_BYTE = 8

/** @throws PayloadTooLarge */
export function encodePosting(posting: Posting, options: { encoding: Encoding; limit: number }): Uint8Array {
  const bytes = encodePlain(posting, options.encoding)
  if (bytes.length > options.limit) {
    throw new PayloadTooLarge(
      `job ${posting.uuid} (${posting.name}) is ${bytes.length} bytes, this board takes ${options.limit}; ` +
        'put large data elsewhere and post where to find it',
    )
  }
  // What nobody could read again must not be posted.
  if (bytes.length * MAX_MEMORY_PER_BYTE > maxMemory(bytes)) assertMemoryLimit(posting, bytes, options.encoding)
  return bytes
}

/** Returns how many bytes of memory an encoded posting may take when it is posted. */
function maxMemory({ length }: Uint8Array): number {
  return Math.min(MAX_MEMORY_BYTES, TYPICAL_MEMORY_PER_BYTE * length + MAX_GROWTH_BYTES)
}

function assertMemoryLimit(posting: Posting, bytes: Uint8Array, encoding: Encoding): void {
  try {
    weigh(bytes, encoding, maxMemory(bytes))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new PayloadTooLarge(`job ${posting.uuid} (${posting.name}) ${why}`, { cause })
  }
}

/** A posting, and how large it counts in memory. */
export interface SizedPosting {
  readonly posting: Posting
  /** In bytes: its encoded size, or more for a posting that takes an unusual amount of memory once it is decoded. */
  readonly bytes: number
}

/**
 * Reads a posting.
 *
 * @param life what claims have made of it since it was posted, as {@link encodeLife} wrote it
 * @throws InvalidPosting whatever the bytes are
 */
export function readSizedPosting(bytes: Uint8Array, encoding: Encoding, life?: Uint8Array): SizedPosting {
  const { record, memory } = decodeRaw(bytes, encoding)
  const size = memorySize(bytes.length, memory)
  if (!life) return { posting: checkPosting(record), bytes: size }
  const { runs: _, attempts: __, delay: ___, ...rest } = record
  return { posting: checkPosting({ ...rest, ...decodeRaw(life, encoding).record }), bytes: size }
}

/** Reads a posting as {@link readSizedPosting} does. @throws InvalidPosting whatever the bytes are */
export function decodePosting(bytes: Uint8Array, encoding: Encoding, life?: Uint8Array): Posting {
  return readSizedPosting(bytes, encoding, life).posting
}

/** Returns how large an encoded posting counts in memory, in bytes; its own size where it is no posting. */
export function toCountedBytes(bytes: Uint8Array, encoding: Encoding): number {
  try {
    return memorySize(bytes.length, weigh(bytes, encoding, Number.POSITIVE_INFINITY))
  } catch {
    return bytes.length
  }
}

function memorySize(encoded: number, memory: number): number {
  return Math.max(encoded, Math.ceil(memory / TYPICAL_MEMORY_PER_BYTE))
}

/** What changes from claim to claim, for a board that keeps it apart from the rest. */
export function encodeLife({ runs, attempts, delay }: Posting, encoding: Encoding): Uint8Array {
  return encodePlain({ runs, attempts, ...(delay === undefined ? {} : { delay }) }, encoding)
}

function decodeRaw(bytes: Uint8Array, encoding: Encoding): { record: Record<string, unknown>; memory: number } {
  let value: unknown
  let memory: number
  try {
    ;({ value, memory } = decodeWeighed(bytes, encoding, { most: maxMemory(bytes) + ATTEMPTS_MEMORY_BYTES }))
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new InvalidPosting(`is no ${encoding} record: ${shortenText(why)}`, { cause })
  }
  // Neither a list nor a Date nor bytes.
  if (isObject(value) && Object.getPrototypeOf(value) === Object.prototype) return { record: value, memory }
  throw new InvalidPosting(`is no ${encoding} record of a job`)
}

/** Judges what came from outside, be it a caller or another release. */
function checkPosting(record: Partial<Record<keyof Posting, unknown>>): Posting {
  const {
    uuid,
    name,
    details = {},
    priority,
    size,
    maxAttempts = 3,
    format,
    runs = 0,
    attempts,
    resources,
    backOff,
    book,
    ...rest
  } = record
  // As a field of its own it would become the prototype below, and what it holds would have been checked by nobody.
  if (Object.hasOwn(rest, '__proto__')) throw new InvalidPosting('has a field __proto__')
  const readable = format ?? POSTING_FORMAT
  if (!isCount(readable)) throw new InvalidPosting('has a format that is no number')
  if (readable > POSTING_FORMAT) {
    throw new InvalidPosting(`is of format ${readable}, this release reads up to ${POSTING_FORMAT}; upgrade it`)
  }
  if (typeof uuid !== 'string' || !validUuid(uuid)) {
    throw new InvalidPosting(typeof uuid === 'string' ? `uuid ${shortenText(uuid)} is no uuid` : 'has no uuid')
  }
  const what = `job ${uuid}: `
  if (typeof name !== 'string' || name === '')
    throw new InvalidPosting(`${what}the name has to be a text that is not empty`)
  assertNameLength(what, 'name', name)
  if (!isObject(details)) throw new InvalidPosting(`${what}the details have to be an object`)
  if (details['store'] !== undefined && !isObject(details['store'])) {
    throw new InvalidPosting(`${what}the store has to be an object of the flow's inputs`)
  }
  for (const field of ['flow', 'version'] as const) {
    const work = details[field]
    if (work !== undefined && typeof work !== 'string')
      throw new InvalidPosting(`${what}details.${field} has to be a text`)
    assertNameLength(what, `details.${field}`, work)
  }
  // The next run must be countable, too.
  if (!isCount(runs) || runs >= Number.MAX_SAFE_INTEGER) throw new InvalidPosting(`${what}runs is no count`)
  if (!isCount(maxAttempts) || maxAttempts < 1 || maxAttempts > MAX_ATTEMPTS) {
    throw new InvalidPosting(`${what}maxAttempts has to be a whole number from 1 to ${MAX_ATTEMPTS}`)
  }
  assertOptional(what, rest)
  const wanted = parseField(what, () => parseResources(resources))
  const pauses = parseField(what, () => parseBackOff(backOff))
  const kept = parseBook(what, book)
  // A literal: a copy of the record with changes takes half as much memory again, of every job on the board.
  const known = {
    uuid: detachText(uuid),
    name,
    details,
    priority: parseField(what, () => toPriority(priority)),
    size: parseField(what, () => toSize(size)),
    maxAttempts,
    format: readable,
    runs,
    attempts: parseField(what, () => parseAttempts(attempts)),
  }
  return Object.assign(
    known,
    rest,
    kept && { book: kept },
    wanted && { resources: wanted },
    pauses && { backOff: pauses },
  )
}

/** `medium` when absent. @throws InvalidPosting */
export function toSize(value: unknown): Size {
  const size = SIZES.find((known) => known === (value === undefined ? 'medium' : value))
  if (size) return size
  throw new InvalidPosting(`size is none of ${SIZES.join(', ')}`)
}

type OptionalPostingKey = 'key' | 'delay' | 'deadline' | 'onOwnerLost'

function assertOptional(
  what: string,
  fields: { readonly [K in OptionalPostingKey]?: unknown },
): asserts fields is Pick<Posting, OptionalPostingKey> {
  const { key, delay, deadline, onOwnerLost } = fields
  if (delay !== undefined && !isDuration(delay)) throw new InvalidPosting(`${what}delay has to be milliseconds`)
  if (deadline !== undefined && !isDuration(deadline))
    throw new InvalidPosting(`${what}deadline has to be milliseconds`)
  if (onOwnerLost !== undefined && onOwnerLost !== 'fail')
    throw new InvalidPosting(`${what}onOwnerLost has to be fail, or absent`)
  if (key !== undefined && (typeof key !== 'string' || key === ''))
    throw new InvalidPosting(`${what}the key has to be a text that is not empty`)
  assertNameLength(what, 'key', key)
}

/** Reads the book field by field: whatever else is in it was checked by nobody. @throws InvalidPosting */
function parseBook(what: string, book: unknown): Posting['book'] {
  if (book === undefined) return undefined
  const { uuid, name }: { readonly uuid?: unknown; readonly name?: unknown } = isObject(book) ? book : {}
  if (typeof uuid !== 'string' || !validUuid(uuid) || typeof name !== 'string')
    throw new InvalidPosting(`${what}the book has to be { uuid, name }`)
  assertNameLength(what, "book's name", name)
  return { uuid, name }
}

/** @throws InvalidPosting for a text that is too long to be a name */
function assertNameLength(what: string, field: string, name: string | undefined): void {
  if (name !== undefined && isTooLong(name))
    throw new InvalidPosting(`${what}the ${field} has more than ${MAX_NAME_BYTES} bytes; use a shorter one`)
}

/** A text that was cut out of a record keeps all of the record's text in memory. */
function detachText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

function parseField<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof JobboardError ? new InvalidPosting(`${what}${error.message}`) : error
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function isDuration(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
