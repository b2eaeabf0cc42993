/**
 * A failure is the record of an error, for readers in other processes. It survives JSON and msgpack, keeps the chain of
 * causes, and can be thrown again as a {@link WrappedFailure}. TaskFlow has the same idea in `taskflow/types/failure.py`.
 */
import {
  AccessDenied,
  Cancelled,
  ClaimLost,
  InvalidArgument,
  InvalidState,
  isError,
  JobboardError,
  NonRetryable,
  OutOfMemory,
  ShuttingDown,
  Timeout,
} from './errors.ts'
import { defined } from './options.ts'
import { cutText, ILL_FORMED, oneLine, shortenText } from './texts.ts'
import { type Duration, formatDuration, toMilliseconds } from './time.ts'

/**
 * The record of an error: plain data that survives JSON and msgpack. Its `name`, `message` and `code` are the error's.
 */
export interface Failure {
  /** The name of the error's class, such as `TypeError`. */
  readonly name: string
  readonly message: string
  /** The error's `code`, if it had one: jobboard's, Node's (`ENOENT`) or a driver's. */
  readonly code?: string
  readonly stack?: string
  /** The error's `cause` and, of an AggregateError, its errors. */
  readonly causes?: readonly Failure[]
  /** Whether the error, or one of its causes, was a NonRetryable. */
  readonly nonRetryable?: true
  /** The error's `retryAfter`, in milliseconds: the time after which a refused request may be repeated. */
  readonly retryAfter?: number
  /** The key of a TooManyRequests. */
  readonly limitKey?: string
  /** Whether the error was a TooManyRequests: others may have its code. */
  readonly tooManyRequests?: true
  /**
   * The queue to which the job is moved for a further attempt: the error, or one of its causes, was an OutOfMemory of a task that says
   * so. A further attempt in the same process cannot help.
   */
  readonly nextQueue?: string
}

/** Returns whether a retry of the same flow, in the same process, cannot help. */
export function isFinal({ nonRetryable, nextQueue }: Failure): boolean {
  return nonRetryable === true || nextQueue !== undefined
}

/** The depth at which causes are cut off: a longer chain is a loop or a defect, and a failure has to fit a record. */
export const MAX_CAUSE_DEPTH = 8
/** The limit of causes on all levels together: an error may contain thousands of others, and itself among them. */
export const MAX_CAUSES = 32
export const MAX_TEXT_LENGTH = 8_192

/** The number of causes that may still be read. */
interface CauseBudget {
  causes: number
}

/**
 * Returns the record of a thrown value. Never throws, whatever the value is.
 *
 * @example failureOf(new Error('disk full', { cause })).causes
 */
export function failureOf(thrown: unknown): Failure {
  try {
    if (thrown instanceof WrappedFailure) {
      const [only] = thrown.failures
      if (only && thrown.failures.length === 1) return only
    }
    return toFailureAt(thrown, 0, { causes: MAX_CAUSES })
  } catch {
    // A Proxy can throw at every access.
    return { name: 'Error', message: 'the thrown value cannot be read' }
  }
}

function toFailureAt(thrown: unknown, depth: number, budget: CauseBudget): Failure {
  if (!isError(thrown)) return { name: 'Error', message: truncateText(toPrintable(thrown)) }
  const causes = toCausesAt(thrown, depth, budget)
  const [name, message, code, stack] = ['name', 'message', 'code', 'stack'].map((key) => readProperty(thrown, key))
  const retryAfter = readRetryAfter(readProperty(thrown, 'retryAfter'))
  const final =
    thrown instanceof NonRetryable ||
    (thrown instanceof OutOfMemory && thrown.nonRetryable) ||
    causes.some((cause) => cause.nonRetryable)
  const ownQueue = thrown instanceof OutOfMemory ? thrown.nextQueue : undefined
  return {
    name: truncateText(toPrintable(name)),
    message: truncateText(toPrintable(message)),
    ...defined({
      code: typeof code === 'string' ? truncateText(code) : undefined,
      stack: typeof stack === 'string' ? truncateText(stack) : undefined,
      causes: causes.length > 0 ? causes : undefined,
      nonRetryable: final ? (true as const) : undefined,
      retryAfter,
      limitKey: thrown instanceof TooManyRequests ? thrown.key : undefined,
      tooManyRequests: thrown instanceof TooManyRequests ? (true as const) : undefined,
      nextQueue: ownQueue ?? causes.find((cause) => cause.nextQueue !== undefined)?.nextQueue,
    }),
  }
}

function toCausesAt(error: Error, depth: number, budget: CauseBudget): Failure[] {
  if (depth >= MAX_CAUSE_DEPTH) return []
  const within = (cause: unknown) => toFailureAt(cause, depth + 1, budget)
  const kept = error instanceof WrappedFailure ? error.failures : []
  const known = spendBudget(kept, budget, (failure) => shortenFailure(failure, depth + 1, budget))
  return [...spendBudget(listCauses(error), budget, within), ...known]
}

/** Returns a recorded failure, cut to the depth and the number of causes that an error may have. */
function shortenFailure(failure: Failure, depth: number, budget: CauseBudget): Failure {
  const { causes = [], ...fields } = failure
  if (depth >= MAX_CAUSE_DEPTH) return fields
  const kept = spendBudget(causes, budget, (cause) => shortenFailure(cause, depth + 1, budget))
  return kept.length > 0 ? { ...fields, causes: kept } : fields
}

function spendBudget<T>(causes: readonly T[], budget: CauseBudget, keep: (cause: T) => Failure): Failure[] {
  const kept: Failure[] = []
  for (const cause of causes) {
    if (budget.causes === 0) break
    budget.causes -= 1
    kept.push(keep(cause))
  }
  return kept
}

/** Reads `retryAfter`, which may have any type: drivers have a property of this name with another meaning. */
function readRetryAfter(value: unknown): number | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined
  try {
    return toMilliseconds(value as Duration, 'retryAfter')
  } catch {
    return undefined
  }
}

/** An error that carries several failures, or a failure that was read from a logbook. */
export class WrappedFailure extends JobboardError {
  static override readonly code = 'JOBBOARD_WRAPPED_FAILURE'
  readonly failures: readonly Failure[]

  constructor(failures: readonly Failure[]) {
    super(failures.map(describeFailure).join('; '))
    this.failures = failures
  }
}

/** The job whose results were asked for is in the trash, or its flow was reverted. */
export class JobFailed extends JobboardError {
  static override readonly code = 'JOBBOARD_JOB_FAILED'
  readonly uuid: string
  /** The reason why it failed, as the trash says. */
  readonly reason: string
  /** The failures of its tasks, where logbooks were given; they may contain secrets. */
  readonly failures: readonly Failure[]
  /** Whether the job was cancelled. */
  readonly cancelled: boolean

  constructor(
    message: string,
    options: Pick<JobFailed, 'uuid' | 'reason' | 'failures'> & { readonly cancelled?: boolean },
  ) {
    super(message)
    this.uuid = options.uuid
    this.reason = options.reason
    this.failures = options.failures
    this.cancelled = options.cancelled ?? false
  }
}

/** The time for which a key is pushed back if the error does not say it. */
const DEFAULT_PUSH_BACK = '30s'

/**
 * Thrown by a task when another system refuses its request because there were too many. A conductor then gives the job back, without a
 * charge: finished tasks stay finished, and this one begins again after the time. With a key, no other job of that limit starts before.
 * Outside of conductors it is an error as any other.
 *
 * @example
 * if (response.status === 429)
 *   throw new TooManyRequests({ key: 'api/stripe', retryAfter: Number(response.headers.get('retry-after') ?? 30) * 1000 })
 */
export class TooManyRequests extends JobboardError {
  static override readonly code = 'JOBBOARD_TOO_MANY_REQUESTS'
  static override readonly retryable = true
  /** The key of the limit that is pushed back. */
  readonly key: string | undefined
  /** The time after which the request may be repeated, in milliseconds. */
  readonly retryAfter: number

  /** @throws InvalidArgument for a `retryAfter` that is not a duration, and for a `key` that cannot be one */
  constructor({ key, retryAfter = DEFAULT_PUSH_BACK, ...options }: TooManyRequestsOptions = {}) {
    const ms = toMilliseconds(retryAfter, 'TooManyRequests: retryAfter')
    if (key !== undefined) assertLimitKey(key)
    super(
      `too many requests${key === undefined ? '' : ` for ${key}`}: try again in ${formatDuration(retryAfter)}`,
      options,
    )
    this.key = key
    this.retryAfter = ms
  }
}

/** Checks that the key is a text. The board checks the rest when it pushes the key back. */
function assertLimitKey(key: unknown): void {
  if (typeof key !== 'string' || key === '')
    throw new InvalidArgument(`TooManyRequests: key must be a non-empty text, got ${typeof key}`)
  if (!key.isWellFormed())
    throw new InvalidArgument(`TooManyRequests: key ${shortenText(JSON.stringify(key))} ${ILL_FORMED}`)
}

/** The options of a TooManyRequests: the limit that is pushed back, and the time. */
export interface TooManyRequestsOptions extends ErrorOptions {
  /** The limit that is pushed back for all jobs; by default only this job waits. */
  readonly key?: string | undefined
  /**
   * The time after which the request may be repeated: milliseconds as a number, or a text such as `'30s'`, which is the default. The header
   * `Retry-After` of HTTP has seconds, or a date: multiply the seconds by 1,000, and subtract the time now from the date.
   */
  readonly retryAfter?: Duration
}

/** Returns a thrown value as a TooManyRequests, if it is one, or the failure of a TooManyRequests of another process. */
export function toTooManyRequests(thrown: unknown): TooManyRequests | undefined {
  if (thrown instanceof TooManyRequests) return thrown
  if (!(thrown instanceof WrappedFailure) || thrown.failures.length !== 1) return undefined
  const [{ tooManyRequests, limitKey, retryAfter } = {} as Partial<Failure>] = thrown.failures
  if (tooManyRequests !== true) return undefined
  try {
    return new TooManyRequests({ key: limitKey, cause: thrown, ...defined({ retryAfter }) })
  } catch {
    // The other process has changed its fields: it is treated as an ordinary failure.
    return undefined
  }
}

/**
 * Returns an error for what user code has thrown, which the calling code cannot mistake for its own error. An error of this library, for example
 * of another board, becomes the cause of a plain error; a NonRetryable and a TooManyRequests are for user code to throw, and stay.
 */
export function toUserError(thrown: unknown, who: string): unknown {
  if (!(thrown instanceof JobboardError) || thrown instanceof NonRetryable || thrown instanceof TooManyRequests)
    return thrown
  return new Error(`${who} threw ${describeError(thrown)}`, { cause: thrown })
}

/** The classes of the errors with which stop signals fire. */
const STOP_REASONS = [Timeout, Cancelled, ClaimLost, ShuttingDown] as const
/** The other classes of errors by which the pool refuses what a task asks for. */
const REFUSALS = [InvalidArgument, InvalidState, AccessDenied] as const

/**
 * Returns the reason of a stop signal, or the refusal of a question, from its record: an error of the same class, so that code in another
 * process can check it by `instanceof`; a WrappedFailure for other errors.
 */
export function toErrorOfClass(failure: Failure): Error {
  const cause = new WrappedFailure([failure])
  const Known = [...STOP_REASONS, ...REFUSALS].find(({ code }) => code === failure.code)
  return Known ? new Known(failure.message, { cause }) : cause
}

/** Returns the code of a failure, or the class of its error: what a span says of it, because the message may be secret. */
export function toErrorType({ code, name }: Pick<Failure, 'code' | 'name'>): string {
  return code ?? name
}

/**
 * Describes a failure in one line: `TypeError: x is not a function, because of Error: …`. Omits a cause that adds nothing
 * new, and a class name that repeats the previous one.
 */
export function describeFailure(failure: Failure): string {
  let fields = ''
  let above: string | undefined
  for (let at: Failure | undefined = failure; at; at = at.causes?.[0]) {
    // The fields may have any type: other programs write to logbooks and to the trash, too.
    const name = truncateText(toPrintable(at.name))
    const message = oneLine(truncateText(toPrintable(at.message)))
    if (above !== undefined && fields.includes(message || name)) continue
    const text = name === above ? message : `${name}: ${message}`
    fields += above === undefined ? text : `, because of ${text}`
    above = name
  }
  return fields
}

/** Describes any thrown value in one line. */
export function describeError(thrown: unknown): string {
  return describeFailure(failureOf(thrown))
}

function listCauses(error: Error): unknown[] {
  const cause = readProperty(error, 'cause')
  const causes = cause === undefined ? [] : [cause]
  const errors = readProperty(error, 'name') === 'AggregateError' ? readProperty(error, 'errors') : []
  return Array.isArray(errors) ? [...causes, ...errors] : causes
}

/** Reads a property of an error of any origin. The property may have any type, and reading it may throw. */
function readProperty(error: Error, key: string): unknown {
  try {
    return (error as unknown as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}

function toPrintable(value: unknown): string {
  try {
    return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)
  } catch {
    return 'a value that cannot be printed'
  }
}

function truncateText(text: string): string {
  return text.length > MAX_TEXT_LENGTH ? `${cutText(text, MAX_TEXT_LENGTH)}…` : text.toWellFormed()
}

/**
 * Reads a failure from the trash or a logbook, where other programs write, too, and cuts it to the limits of `failureOf`. Never throws: for another
 * value, the result says so.
 *
 * @returns undefined if the value is undefined or null
 */
export function parseFailure(value: unknown): Failure | undefined {
  if (value === undefined || value === null) return undefined
  return parseFailureAt(value, 0, { causes: MAX_CAUSES })
}

function parseFailureAt(value: unknown, depth: number, budget: { causes: number }): Failure {
  if (typeof value === 'string') return { name: 'Error', message: truncateStored(value) }
  const fields: Readonly<Record<string, unknown>> = isObject(value)
    ? value
    : { message: 'a failure that cannot be read' }
  const { name, message, code, stack, causes, nonRetryable, retryAfter, limitKey, tooManyRequests } = fields
  const kept: Failure[] = []
  for (const cause of Array.isArray(causes) && depth < MAX_CAUSE_DEPTH ? causes : []) {
    if (budget.causes === 0) break
    budget.causes -= 1
    kept.push(parseFailureAt(cause, depth + 1, budget))
  }
  return {
    name: typeof name === 'string' ? truncateStored(name) : 'Error',
    message: typeof message === 'string' ? truncateStored(message) : 'a message that cannot be read',
    ...defined({
      code: typeof code === 'string' ? truncateStored(code) : undefined,
      stack: typeof stack === 'string' ? truncateStored(stack) : undefined,
      causes: Array.isArray(causes) ? kept : undefined,
      nonRetryable: nonRetryable === true ? (true as const) : undefined,
      retryAfter: isDuration(retryAfter) ? retryAfter : undefined,
      limitKey: typeof limitKey === 'string' ? truncateStored(limitKey) : undefined,
      tooManyRequests: tooManyRequests === true ? (true as const) : undefined,
    }),
  }
}

function isDuration(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Cuts a text. A text that `failureOf` has cut is one character longer (`…`), and stays as it is. */
function truncateStored(text: string): string {
  return text.length > MAX_TEXT_LENGTH + 1 ? `${cutText(text, MAX_TEXT_LENGTH)}…` : text.toWellFormed()
}
