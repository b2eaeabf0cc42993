/**
 * The errors that jobboard throws on purpose: one class for each meaning. Each error has a stable `code`, a message that
 * names the thing and says what to do, and its `cause` if there is one.
 *
 * `instanceof` works across two copies of the library in one process (a command line that was installed globally and a
 * flows module with its own copy): it compares the codes of an error's lineage, not constructors.
 */
const LINEAGE = Symbol.for('jobboard.error.lineage')

type ErrorClass = { readonly code: string; readonly retryable: boolean }

/** The options of an error of jobboard: its cause. */
export interface JobboardErrorOptions extends ErrorOptions {
  /** Whether this error is retryable, if that differs from its class. */
  readonly retryable?: boolean | undefined
}

/**
 * The base of every error that jobboard throws on purpose. Distinguish errors by class or by `code`: codes are stable,
 * messages are not.
 *
 * @example if (error instanceof JobboardError && error.retryable) await later()
 */
export class JobboardError extends Error {
  static readonly code: string = 'JOBBOARD_ERROR'
  static readonly retryable: boolean = false

  /** Stable across releases; messages are not. */
  readonly code: string
  /** Whether the same call may succeed later with nothing else changed. */
  readonly retryable: boolean

  constructor(message: string, options?: JobboardErrorOptions) {
    super(message, options)
    const self: ErrorClass & { name: string } = new.target
    this.name = self.name
    this.code = self.code
    this.retryable = options?.retryable ?? self.retryable
    Object.defineProperty(this, LINEAGE, { value: lineage(new.target), enumerable: false })
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (!Object.hasOwn(this, 'code')) return Function.prototype[Symbol.hasInstance].call(this, value)
    if (typeof value !== 'object' || value === null) return false
    const codes = (value as { [LINEAGE]?: readonly string[] })[LINEAGE]
    return codes?.includes(this.code) ?? false
  }
}

function lineage(leaf: unknown): readonly string[] {
  const codes: string[] = []
  for (let at = leaf; typeof at === 'function'; at = Object.getPrototypeOf(at)) {
    if (Object.hasOwn(at, 'code')) codes.push((at as unknown as ErrorClass).code)
  }
  return codes
}

// --- Calls --------------------------------------------------------------------------------------------------------

/** A URI, an option or a command line is invalid. */
export class InvalidArgument extends JobboardError {
  static override readonly code = 'JOBBOARD_INVALID_ARGUMENT'
}

/** The named thing does not exist, or no longer exists. */
export class NotFound extends JobboardError {
  static override readonly code = 'JOBBOARD_NOT_FOUND'
}

/** The results of a job that is done cannot be read: they were not kept, or they were too large. */
export class ResultNotKept extends JobboardError {
  static override readonly code = 'JOBBOARD_RESULT_NOT_KEPT'
}

/** Something with this name or uuid exists already. */
export class Duplicate extends JobboardError {
  static override readonly code = 'JOBBOARD_DUPLICATE'
}

/** The state tables do not allow a transition, or a call came too early or too late. */
export class InvalidState extends JobboardError {
  static override readonly code = 'JOBBOARD_INVALID_STATE'
}

/** The given time was over first. The event that the caller waited for may still come. */
export class Timeout extends JobboardError {
  static override readonly code = 'JOBBOARD_TIMEOUT'
  static override readonly retryable = true
}

// --- Requests to a backend ----------------------------------------------------------------------------------------

/** There is no connection, and nothing was sent. */
export class NotConnected extends JobboardError {
  static override readonly code: string = 'JOBBOARD_NOT_CONNECTED'
  static override readonly retryable: boolean = true
}

/** The servers do not permit the operation with this client's credentials: it needs other credentials, or a right. */
export class AccessDenied extends JobboardError {
  static override readonly code = 'JOBBOARD_ACCESS_DENIED'
}

/** The request was sent, then the connection was lost: it is unknown whether the request took effect. */
export class OutcomeUnknown extends JobboardError {
  static override readonly code = 'JOBBOARD_OUTCOME_UNKNOWN'
}

/** Other processes changed the same thing meanwhile, at every attempt. Nothing was changed. */
export class Conflict extends JobboardError {
  static override readonly code = 'JOBBOARD_CONFLICT'
  static override readonly retryable = true
}

/** The server is too old, or a newer release wrote the stored data. */
export class IncompatibleVersion extends JobboardError {
  static override readonly code = 'JOBBOARD_INCOMPATIBLE_VERSION'
}

/** The server can be reached, but accepts no writes now: its memory or its disk is full, say. Nothing was changed. */
export class WritesRefused extends JobboardError {
  static override readonly code = 'JOBBOARD_WRITES_REFUSED'
  static override readonly retryable = true
}

/** A capability that this backend does not have; the message says what to use instead. */
export class UnsupportedCapability extends JobboardError {
  static override readonly code = 'JOBBOARD_UNSUPPORTED_CAPABILITY'
  /** The name of the declared capability. */
  readonly capability: string

  constructor(message: string, options: ErrorOptions & { capability: string }) {
    super(message, options)
    this.capability = options.capability
  }
}

// --- Jobs ---------------------------------------------------------------------------------------------------------

/** The base of the errors about one job. */
export class JobFailure extends JobboardError {
  static override readonly code: string = 'JOBBOARD_JOB_FAILURE'
}

/** The job cannot be claimed now; the message names its owner, or what else prevents the claim. */
export class Unclaimable extends JobFailure {
  static override readonly code: string = 'JOBBOARD_UNCLAIMABLE'
  static override readonly retryable = true
}

/** A limit of the job has no free slot, or no token is due: the job stays where it is in the queue. */
export class LimitReached extends Unclaimable {
  static override readonly code = 'JOBBOARD_LIMIT_REACHED'
  /** The key of the limit. */
  readonly key: string
  /** The time from which the job can be claimed as far as this limit is concerned, if it is known. */
  readonly until: Date | undefined
  /** @internal The same time in milliseconds since 1970, not rounded up to a whole millisecond. */
  readonly untilMs: number | undefined

  constructor(
    message: string,
    options: JobboardErrorOptions & {
      readonly key: string
      readonly until?: Date | undefined
      readonly untilMs?: number | undefined
    },
  ) {
    super(message, options)
    this.key = options.key
    this.until = options.until
    this.untilMs = options.untilMs ?? options.until?.getTime()
  }
}

/** The limits of the board were changed after this claim was chosen: it is tried again with what is set now. */
export class LimitsChanged extends Unclaimable {
  static override readonly code = 'JOBBOARD_LIMITS_CHANGED'
}

/**
 * A resource of the job is locked in the database of the board: by another program, or by another board of the same database. The job stays
 * where it is in the queue.
 */
export class ResourceLocked extends Unclaimable {
  static override readonly code = 'JOBBOARD_RESOURCE_LOCKED'
  readonly resource: string
  /** The process of the server that holds the lock, and its application; absent where another session of this board holds it for a moment. */
  readonly holder: { readonly pid: number; readonly application: string } | undefined

  constructor(
    message: string,
    options: JobboardErrorOptions & {
      readonly resource: string
      readonly holder?: { readonly pid: number; readonly application: string }
    },
  ) {
    super(message, options)
    this.resource = options.resource
    this.holder = options.holder
  }
}

/** This board object does not hold the claim of the job. */
export class NotOwner extends JobFailure {
  static override readonly code = 'JOBBOARD_NOT_OWNER'
}

/** The job was cancelled: undo what was done, then settle it. */
export class Cancelled extends JobFailure {
  static override readonly code = 'JOBBOARD_CANCELLED'
  /** The requester and the reason, as the trash shows them: `cancelled by ada: not needed any more`. */
  readonly trashReason: string

  constructor(message: string, options: ErrorOptions & { trashReason?: string } = {}) {
    super(message, options)
    this.trashReason = options.trashReason ?? message
  }
}

/** The claim is lost, and another owner may have the job: stop, and write nothing. */
export class ClaimLost extends JobFailure {
  static override readonly code: string = 'JOBBOARD_CLAIM_LOST'
}

/** The posting is invalid, or this release cannot read it. */
export class InvalidPosting extends JobFailure {
  static override readonly code = 'JOBBOARD_INVALID_POSTING'
}

/** The encoded posting is larger than the backend can carry through claim and trash, or a checkpoint larger than a logbook keeps. */
export class PayloadTooLarge extends JobFailure {
  static override readonly code = 'JOBBOARD_PAYLOAD_TOO_LARGE'
}

/** A failure that another attempt cannot change. A task throws it (or a subclass) to have its job trashed at once. */
export class NonRetryable extends JobFailure {
  static override readonly code: string = 'JOBBOARD_NON_RETRYABLE'
}

/** The reason of a stop signal: the process that ran the job is shutting down. */
export class ShuttingDown extends JobboardError {
  static override readonly code = 'JOBBOARD_SHUTTING_DOWN'
}

// --- Flows and logbooks -------------------------------------------------------------------------------------------

/** The dependencies between a flow's atoms cannot be satisfied: atoms wait for each other in a circle, say. */
export class DependencyFailure extends JobboardError {
  static override readonly code: string = 'JOBBOARD_DEPENDENCY_FAILURE'
}

/** An atom requires a value that neither the store nor another atom provides. */
export class MissingDependencies extends DependencyFailure {
  static override readonly code = 'JOBBOARD_MISSING_DEPENDENCIES'
}

/** A part of a flow requires a value that several parts provide, and the flow does not say which one is meant. */
export class AmbiguousDependency extends DependencyFailure {
  static override readonly code = 'JOBBOARD_AMBIGUOUS_DEPENDENCY'
}

/** The logbooks cannot be read or written, for now (`retryable`) or permanently. */
export class StorageFailure extends JobboardError {
  static override readonly code: string = 'JOBBOARD_STORAGE_FAILURE'
}

/** A result or a failure was stored with a codec or a key that this process lacks. A process that has it can continue. */
export class SealedLogbook extends StorageFailure {
  static override readonly code = 'JOBBOARD_SEALED_LOGBOOK'
  static override readonly retryable = true
}

/** A logbook refused a run, because it knows a run with the same or a higher number. */
export class Fenced extends ClaimLost {
  static override readonly code = 'JOBBOARD_FENCED'
  /** The newest run that the logbook knows. */
  readonly newestRun: number

  constructor(message: string, options: ErrorOptions & { newestRun: number }) {
    super(message, options)
    this.newestRun = options.newestRun
  }
}

/**
 * The outcome of a task is not known, because its process ended or was stopped while it ran; its `onInterrupted` says that it may not
 * simply run again.
 */
export class Interrupted extends JobboardError {
  static override readonly code = 'JOBBOARD_INTERRUPTED'
}

// --- Child processes ----------------------------------------------------------------------------------------------

/** The child process that did the work has ended without an answer. The message has its exit code, signal and memory. */
export class ChildDied extends JobboardError {
  static override readonly code: string = 'JOBBOARD_CHILD_DIED'
}

/** The consequences of a failure for want of memory, as the task defines them. */
export interface OutOfMemoryOptions extends ErrorOptions {
  /** Whether the job is trashed at once, because a further attempt would need the same memory. */
  readonly nonRetryable?: boolean
  /** The queue to which the job is moved, so that a conductor with more memory claims it. */
  readonly nextQueue?: string | undefined
}

/** The child process that did the work needed more memory than it may have. */
export class OutOfMemory extends ChildDied {
  static override readonly code = 'JOBBOARD_OUT_OF_MEMORY'
  /** @internal Read by `failureOf`. */
  readonly nonRetryable: boolean
  /** @internal Read by `failureOf`. */
  readonly nextQueue: OutOfMemoryOptions['nextQueue']

  constructor(message: string, { nonRetryable = false, nextQueue, ...options }: OutOfMemoryOptions = {}) {
    super(message, options)
    this.nonRetryable = nonRetryable
    this.nextQueue = nextQueue
  }
}

/** No child process can be started now; the message has the reason. Nothing was begun. */
export class ChildUnavailable extends JobboardError {
  static override readonly code = 'JOBBOARD_CHILD_UNAVAILABLE'
  static override readonly retryable = true
}

/** The arguments or the result of a task are too large to be sent to or from a child process. */
export class MessageTooLarge extends JobboardError {
  static override readonly code = 'JOBBOARD_MESSAGE_TOO_LARGE'
}

/**
 * Returns whether the value is an error, also one of another realm: of `node:vm`, or of Node itself where the test runner Jest runs this code.
 * `instanceof Error` is false for such errors.
 */
export function isError(value: unknown): value is Error {
  return value instanceof Error || /^\[object (Error|DOMException)\]$/.test(Object.prototype.toString.call(value))
}

/** Returns whether the value is a Date, also one of another realm. */
export function isDate(value: unknown): value is Date {
  return value instanceof Date || Object.prototype.toString.call(value) === '[object Date]'
}

/** Returns the thrown value if it is an error, else an error with its text. */
export function asError(thrown: unknown): Error {
  return isError(thrown) ? thrown : new Error(String(thrown))
}

/** Returns the message of an error, or the text of any other thrown value. */
export function messageOf(thrown: unknown): string {
  return isError(thrown) ? thrown.message : String(thrown)
}
