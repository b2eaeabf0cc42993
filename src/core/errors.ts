/**
 * Every error that jobboard throws on purpose: one class a meaning, each with a stable `code`, a message that names the
 * thing and says what to do, and the `cause` where there is one.
 *
 * `instanceof` works across two copies of the library in one process (a command line that was installed globally and a
 * flows module that brings its own): it compares the codes of an error's lineage, not constructors.
 */

const LINEAGE = Symbol.for('jobboard.error.lineage')

type ErrorClass = { readonly code: string; readonly retryable: boolean }

export interface JobboardErrorOptions extends ErrorOptions {
  /** Where this error knows better than its class. */
  readonly retryable?: boolean | undefined
}

/**
 * Base of every error that jobboard throws on purpose. Tell them apart by class, or by `code`, which stays; messages do not.
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

// --- Asking -------------------------------------------------------------------------------------------------------

/** A URI, an option or a command line that cannot mean anything. */
export class InvalidArgument extends JobboardError {
  static override readonly code = 'JOBBOARD_INVALID_ARGUMENT'
}

/** What was named is not there, or not any more. */
export class NotFound extends JobboardError {
  static override readonly code = 'JOBBOARD_NOT_FOUND'
}

/** Something with this name or uuid is there already. */
export class Duplicate extends JobboardError {
  static override readonly code = 'JOBBOARD_DUPLICATE'
}

/** A transition that the state tables do not allow, or a call that comes too early or too late. */
export class InvalidState extends JobboardError {
  static override readonly code = 'JOBBOARD_INVALID_STATE'
}

/** The time given was over first. Whatever was waited for may still come. */
export class Timeout extends JobboardError {
  static override readonly code = 'JOBBOARD_TIMEOUT'
  static override readonly retryable = true
}

// --- Talking to a backend -----------------------------------------------------------------------------------------

/** Nothing was sent: there is no connection. */
export class NotConnected extends JobboardError {
  static override readonly code: string = 'JOBBOARD_NOT_CONNECTED'
  static override readonly retryable: boolean = true
}

/** Whoever this client says it is, the servers do not let them do that: other credentials are needed, or a right. */
export class AccessDenied extends JobboardError {
  static override readonly code = 'JOBBOARD_ACCESS_DENIED'
}

/** It was sent, the connection dropped, and nobody can tell any more whether it took effect. */
export class OutcomeUnknown extends JobboardError {
  static override readonly code = 'JOBBOARD_OUTCOME_UNKNOWN'
}

/** The server is too old, or what is stored was written by a newer release. */
export class IncompatibleVersion extends JobboardError {
  static override readonly code = 'JOBBOARD_INCOMPATIBLE_VERSION'
}

/** The server is there and takes no writes now: its memory or its disk is full, say. Nothing was changed. */
export class WritesRefused extends JobboardError {
  static override readonly code = 'JOBBOARD_WRITES_REFUSED'
  static override readonly retryable = true
}

/** What this backend or driver truly cannot do; the message says what to use instead. */
export class UnsupportedCapability extends JobboardError {
  static override readonly code = 'JOBBOARD_UNSUPPORTED_CAPABILITY'
  /** The name it has among the capabilities that are declared. */
  readonly capability: string

  constructor(message: string, options: ErrorOptions & { capability: string }) {
    super(message, options)
    this.capability = options.capability
  }
}

// --- Jobs ---------------------------------------------------------------------------------------------------------

/** Base of what goes wrong with one job. */
export class JobFailure extends JobboardError {
  static override readonly code: string = 'JOBBOARD_JOB_FAILURE'
}

/** The job cannot be claimed now; the message names the owner or whatever else stands in the way. */
export class Unclaimable extends JobFailure {
  static override readonly code = 'JOBBOARD_UNCLAIMABLE'
  static override readonly retryable = true
}

/** This board object does not hold the claim of the job. */
export class NotOwner extends JobFailure {
  static override readonly code = 'JOBBOARD_NOT_OWNER'
}

/** Somebody asked for the job to be given up: undo what was done, then settle. */
export class Cancelled extends JobFailure {
  static override readonly code = 'JOBBOARD_CANCELLED'
  /** Who asked, and why, as the trash tells it: `cancelled by ada: not needed any more`. */
  readonly trashReason: string

  constructor(message: string, options: ErrorOptions & { trashReason?: string } = {}) {
    super(message, options)
    this.trashReason = options.trashReason ?? message
  }
}

/** The claim is gone and another may own the job: stop, write nothing. */
export class ClaimLost extends JobFailure {
  static override readonly code: string = 'JOBBOARD_CLAIM_LOST'
}

/** The posting makes no sense, or this release cannot read it. */
export class InvalidPosting extends JobFailure {
  static override readonly code = 'JOBBOARD_INVALID_POSTING'
}

/** The encoded posting is larger than the backend can carry through claim and trash. */
export class PayloadTooLarge extends JobFailure {
  static override readonly code = 'JOBBOARD_PAYLOAD_TOO_LARGE'
}

/** Throw it (or a subclass) from a task to say: trying again cannot help, trash the job at once. */
export class NonRetryable extends JobFailure {
  static override readonly code: string = 'JOBBOARD_NON_RETRYABLE'
}

/** Why a signal fired: the process that ran the job is shutting down. */
export class ShuttingDown extends JobboardError {
  static override readonly code = 'JOBBOARD_SHUTTING_DOWN'
}

// --- Flows and logbooks -------------------------------------------------------------------------------------------

/** What a flow's atoms need of each other does not work out: they wait for one another in a circle, say. */
export class DependencyFailure extends JobboardError {
  static override readonly code: string = 'JOBBOARD_DEPENDENCY_FAILURE'
}

/** Somebody requires what nobody provides. */
export class MissingDependencies extends DependencyFailure {
  static override readonly code = 'JOBBOARD_MISSING_DEPENDENCIES'
}

/** Somebody requires what several provide, and nothing says whose is meant. */
export class AmbiguousDependency extends DependencyFailure {
  static override readonly code = 'JOBBOARD_AMBIGUOUS_DEPENDENCY'
}

/** The logbooks cannot be read or written: away for now (`retryable`), or for good. */
export class StorageFailure extends JobboardError {
  static override readonly code: string = 'JOBBOARD_STORAGE_FAILURE'
}

/** What a task has returned or thrown was kept with a codec or a key that is not here. Whoever has it can go on. */
export class SealedLogbook extends StorageFailure {
  static override readonly code = 'JOBBOARD_SEALED_LOGBOOK'
  static override readonly retryable = true
}

/** A claim was refused by a logbook that knows of a newer or equal run. */
export class Fenced extends ClaimLost {
  static override readonly code = 'JOBBOARD_FENCED'
  /** The newest run the logbook knows of. */
  readonly newestRun: number

  constructor(message: string, options: ErrorOptions & { newestRun: number }) {
    super(message, options)
    this.newestRun = options.newestRun
  }
}

/** Returns what was thrown if it is an error, else an error with its text. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
