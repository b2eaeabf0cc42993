/** Requests, as far as all backends treat them alike: the checks that come first, the retries, and the errors of refusals. */
import type { RetryOptions } from '../core/async/retry.ts'
import { ClaimLost, Fenced, InvalidArgument, NotFound, StorageFailure } from '../core/errors.ts'
import type { Emitter } from '../core/events.ts'
import type { AcquireRequest, FlowRequest } from './persistence.ts'

/**
 * The retries of a request to a storage that is away; `limitMs` and `signal` are added. Closing makes the present try the
 * last one, or a last one at once instead of a pause.
 */
const STORAGE_RETRIES: RetryOptions = {
  firstPauseMs: 50,
  maxPauseMs: 2_000,
  triesWhenAborted: true,
  isRetryable: (error) => error instanceof StorageFailure && error.retryable,
}

/** The events of a storage whose requests are repeated. */
export interface StorageEvents {
  readonly retry: Error
}

/**
 * Returns the retry options of a storage. Before a request is repeated because the storage is away, they emit `retry`. The failure of such
 * a request has a cause; the failure of a conflict between two requests has none, and is not reported.
 */
export function reportedRetries(
  events: Emitter<StorageEvents>,
  own: Pick<RetryOptions, 'limitMs' | 'signal'>,
): RetryOptions {
  const onRetry = (error: unknown) => {
    if (error instanceof StorageFailure && error.cause !== undefined) events.emit('retry', error)
  }
  return { ...STORAGE_RETRIES, ...own, onRetry }
}

/** Checks the request of an acquire. @throws InvalidArgument for values that no backend could store or find again */
export function assertAcquireRequest({ book, flow, run, claim }: AcquireRequest): void {
  assertFlowRequest({ book, flow })
  if (!Number.isSafeInteger(run) || run < 1) throw new InvalidArgument(`run must be a whole number from 1, got ${run}`)
  if (typeof claim !== 'string' || claim === '' || !claim.isWellFormed())
    throw new InvalidArgument('claim must be a non-empty string')
}

/** Checks the UUIDs of a request. @throws InvalidArgument for values that no backend could store or find again */
export function assertFlowRequest({ book, flow }: FlowRequest): void {
  assertUuid(book.uuid, "a book's uuid")
  assertUuid(flow.uuid, "a flow's uuid")
}

/** The limit in UTF-8 for which every backend has room in an index or a path. */
const MAX_UUID_BYTES = 1_000

/**
 * Checks a UUID. @throws InvalidArgument for a text that is empty, is not well-formed Unicode, or has more than
 * 1,000 bytes
 */
export function assertUuid(uuid: string, what: string): void {
  if (typeof uuid !== 'string' || uuid === '' || !uuid.isWellFormed())
    throw new InvalidArgument(`${what} must be a non-empty string of valid Unicode, got ${JSON.stringify(uuid)}`)
  if (Buffer.byteLength(uuid) > MAX_UUID_BYTES)
    throw new InvalidArgument(
      `${what} must have at most ${MAX_UUID_BYTES} bytes; this one begins with ${uuid.slice(0, 40)}…`,
    )
}

/** Returns the error of an acquire: the run of another claim is stored already. */
export function fencedError(request: AcquireRequest, newestRun: number): Fenced {
  const { flow, run } = request
  const known = newestRun === run ? `another claim has the same run` : `run ${newestRun} has acquired it`
  return new Fenced(`run ${run} cannot acquire flow ${flow.uuid}: ${known}`, { newestRun })
}

/** Returns the error of a write: run `by` owns the flow now; undefined when the flow was removed. */
export function supersededError({ flow, run }: AcquireRequest, by: number | undefined): ClaimLost {
  const other = by === run ? 'the same claim has acquired it once more' : `run ${by} has acquired it`
  const why = by === undefined ? 'its logbook was removed' : other
  return new ClaimLost(`run ${run} can no longer write to flow ${flow.uuid}: ${why}`)
}

/** Returns the error for a location without logbooks. */
export function noLogbooksError(uri: string, why: string): NotFound {
  return new NotFound(
    `there are no logbooks in ${uri}: ${why}; the first conductor that uses this location creates them`,
  )
}
