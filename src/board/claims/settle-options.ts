/** The options of settlements, and their checks. */
import { InvalidArgument, isError, UnsupportedCapability } from '../../core/errors.ts'
import type { Failure } from '../../core/failure.ts'
import { assertBoolean, assertOptions, assertText } from '../../core/options.ts'
import type { Duration } from '../../core/time.ts'
import { decodeKeptResults, encodeKeptResults } from '../model/ended-job.ts'
import { queueOfSizeOption, queueProblem, type Size } from '../model/queues.ts'

/** Options of `abandon`. */
export interface AbandonOptions {
  /** The time before which the job is not claimed again, counted from now by the board's clock. */
  readonly delay?: Duration
  /** Whether the work was tried and did not succeed, which counts as a failed attempt. By default the attempt does not count. */
  readonly failed?: boolean
  readonly reason?: string
  /** A run number that the next run has to exceed, for a run that the logbook knows and the posting does not. */
  readonly newestRun?: number
  /** The queue of the job from now on, so that other conductors claim it; by default it stays. */
  readonly queue?: string
  /** @deprecated The queue with this name: `queue: 'large'`. */
  readonly size?: Size
}

/** Options of `consume`. */
export interface ConsumeOptions {
  /** The results of the work, plain data by their names, which `board.result` returns; by default the board keeps none. */
  readonly results?: Readonly<Record<string, unknown>>
}

/** Options of `trash`. */
export interface TrashOptions {
  readonly reason?: string
  readonly failure?: Failure
}

/** @throws InvalidArgument */
export function assertAbandonOptions(options: AbandonOptions): void {
  const known = { reason: true, delay: true, failed: true, newestRun: true, queue: true, size: true } as const
  assertOptions(options, known, 'abandon')
  const { reason, failed, newestRun = 0 } = options
  assertText(reason, 'abandon: reason')
  assertBoolean(failed, 'abandon: failed')
  if (!Number.isSafeInteger(newestRun) || newestRun < 0)
    throw new InvalidArgument(`abandon: newestRun must be a whole number from 0, not ${String(newestRun)}`)
}

/** Returns the queue to which a job is moved; undefined if it stays. @throws InvalidArgument */
export function toNextQueue({ queue, size }: Pick<AbandonOptions, 'queue' | 'size'>): string | undefined {
  if (size !== undefined) return queueOfSizeOption({ queue, size }, 'abandon')
  const problem = queue === undefined ? undefined : queueProblem(queue)
  if (problem !== undefined) throw new InvalidArgument(`abandon: ${problem}`)
  return queue
}

/**
 * Encodes the results of a consume; undefined where there are none.
 *
 * @param target.keepsHistory whether the board keeps a record of what has ended
 * @throws InvalidArgument; UnsupportedCapability
 */
export function toKeptBytes(
  options: ConsumeOptions,
  { what, keepsHistory }: { readonly what: string; readonly keepsHistory: boolean },
): Uint8Array | undefined {
  assertOptions(options, { results: true }, 'consume')
  const { results } = options
  if (results === undefined) return undefined
  if (typeof results !== 'object' || results === null || Array.isArray(results))
    throw new InvalidArgument('consume: results must be an object, the values by their names')
  if (!keepsHistory)
    throw new UnsupportedCapability(`${what}: its board keeps no history, and so no results; consume it without them`, {
      capability: 'history',
    })
  const bytes = encodeKeptResults({ values: results })
  const kept = decodeKeptResults(bytes)
  if ('notKept' in kept) throw new InvalidArgument(`${what}: the results cannot be kept: ${kept.notKept}`)
  return bytes
}

/** @throws InvalidArgument */
export function assertTrashOptions(options: TrashOptions): void {
  assertOptions(options, { reason: true, failure: true }, 'trash')
  const { reason, failure } = options
  assertText(reason, 'trash: reason')
  if (failure === undefined) return
  const { name, message }: Partial<Failure> = Object(failure)
  if (typeof name === 'string' && typeof message === 'string' && !isError(failure)) return
  throw new InvalidArgument('trash: failure must be a Failure, as failureOf(error) returns it')
}
