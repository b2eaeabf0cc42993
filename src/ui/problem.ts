/** Refused requests: each error of the board and of the dashboard as a status and the problem that the client receives. */
import { ZodError } from 'zod'
import {
  AccessDenied,
  Conflict,
  DependencyFailure,
  Duplicate,
  IncompatibleVersion,
  InvalidArgument,
  InvalidPosting,
  InvalidState,
  JobboardError,
  NotConnected,
  NotFound,
  NotOwner,
  OutcomeUnknown,
  PayloadTooLarge,
  ResultNotKept,
  SealedLogbook,
  StorageFailure,
  Timeout,
  Unclaimable,
  UnsupportedCapability,
  WritesRefused,
} from '../core/errors.ts'
import type { WireProblem } from './wire/common.ts'

/** The status of each code that the dashboard itself refuses requests with. */
const STATUSES = {
  BAD_REQUEST: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  TIMEOUT: 408,
  CHANGED: 409,
  BODY_TOO_LARGE: 413,
  NOT_JSON: 415,
  HOST_NOT_ALLOWED: 421,
  TOO_MANY: 429,
  NO_PAGE: 500,
  UNAVAILABLE: 503,
} as const

/** An error by which the dashboard refuses a request. */
export class Refusal extends Error {
  readonly code: keyof typeof STATUSES
  readonly headers: Readonly<Record<string, string>>

  constructor(code: keyof typeof STATUSES, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.name = 'Refusal'
    this.code = code
    this.headers = headers
  }

  get status(): number {
    return STATUSES[this.code]
  }
}

/** The statuses of the errors of boards and logbooks. The first class that fits counts. */
const BY_CLASS: readonly (readonly [new (...args: never[]) => Error, number])[] = [
  [NotFound, 404],
  [ResultNotKept, 404],
  [InvalidArgument, 400],
  [InvalidPosting, 400],
  [DependencyFailure, 400],
  [Duplicate, 409],
  [InvalidState, 409],
  [Conflict, 409],
  [Unclaimable, 409],
  [NotOwner, 409],
  [SealedLogbook, 409],
  [PayloadTooLarge, 413],
  [UnsupportedCapability, 501],
  [IncompatibleVersion, 501],
  [AccessDenied, 502],
  [OutcomeUnknown, 502],
  [NotConnected, 503],
  [WritesRefused, 503],
  [StorageFailure, 503],
  [Timeout, 504],
]

export interface Answered {
  readonly status: number
  readonly problem: WireProblem
  readonly headers: Readonly<Record<string, string>>
}

/** Returns what the client receives for an error. An unknown error is a defect: it is logged, and its text stays here. */
export function toProblem(error: unknown): Answered {
  if (error instanceof Refusal) {
    return { status: error.status, problem: { code: error.code, message: error.message }, headers: error.headers }
  }
  if (error instanceof ZodError) {
    return { status: 400, problem: { code: 'BAD_REQUEST', message: describeIssues(error) }, headers: {} }
  }
  const found = BY_CLASS.find(([type]) => error instanceof type)
  if (found && error instanceof JobboardError) {
    return { status: found[1], problem: { code: toCode(error.code), message: error.message }, headers: {} }
  }
  return { status: 500, problem: { code: 'INTERNAL', message: 'the server has failed; its log says why' }, headers: {} }
}

/** Returns the code without the prefix that the library's codes have. */
export function toCode(code: string): string {
  return code.replace(/^JOBBOARD_/, '')
}

/** Returns the first mistake in one line: `limit: expected a number`. */
function describeIssues({ issues }: ZodError): string {
  const [first] = issues
  if (!first) return 'the request is invalid'
  const path = first.path.join('.')
  return `${path === '' ? '' : `${path}: `}${first.message}${issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''}`
}
