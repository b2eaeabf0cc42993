/** Checks the record of a job, which a caller, another release or another program may have made: all code that reads postings relies on it. */
import { validate as validUuid } from 'uuid'
import { InvalidPosting, JobboardError } from '../../../core/errors.ts'
import { nameFault, shortenText } from '../../../core/texts.ts'
import { parseTraceContext } from '../../../core/tracing.ts'
import { MAX_ATTEMPTS, parseAttempts } from '../attempts.ts'
import { parseBackOff } from '../back-off.ts'
import { toPriority } from '../claim-order.ts'
import { parseDependencies, toStoredDependencies } from '../dependencies.ts'
import { parseLimits } from '../limits.ts'
import { queueOfStored } from '../queues.ts'
import { parseResources } from '../resources.ts'
import { isCount, isDuration } from '../stored.ts'
import { NEWEST_FORMAT, POSTING_FORMAT, type Posting } from './posting.ts'

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

/** @throws InvalidPosting */
export function toStoredLimits(option: unknown): Pick<Posting, 'limits'> {
  const limits = parseLimits(option)
  return limits ? { limits } : {}
}

/** Parses a field of a posting. @param what the job, for the error @throws InvalidPosting */
export function parseField<T>(what: string, parse: (value: unknown) => T, value: unknown): T {
  try {
    return parse(value)
  } catch (error) {
    throw error instanceof JobboardError ? new InvalidPosting(`${what}${error.message}`) : error
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
