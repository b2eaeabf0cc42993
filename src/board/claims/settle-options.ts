/** How a claim is to be settled, and what is said to whoever asked for nonsense. */
import { InvalidArgument } from '../../core/errors.ts'
import type { Failure } from '../../core/failure.ts'
import { assertOptions } from '../../core/options.ts'
import type { Duration } from '../../core/time.ts'
import { assertBoolean, assertText } from '../api/options.ts'

/** How a job is given back. */
export interface AbandonOptions {
  /** How long it rests before anybody claims it again, counted from now by the board's clock. */
  readonly delay?: Duration
  /** True where the work was tried and did not succeed: counts as a failed attempt. Returned otherwise, uncharged. */
  readonly failed?: boolean
  readonly reason?: string
  /** The next claim's run will be above this one: what a logbook knows of that the posting does not. */
  readonly newestRun?: number
}

/** Why a job is trashed, for people. */
export interface TrashOptions {
  readonly reason?: string
  readonly failure?: Failure
}

/** @throws InvalidArgument */
export function assertAbandonOptions(options: AbandonOptions): void {
  assertOptions(options, { reason: true, delay: true, failed: true, newestRun: true }, 'abandon')
  const { reason, failed, newestRun = 0 } = options
  assertText(reason, 'abandon: reason')
  assertBoolean(failed, 'abandon: failed')
  if (!Number.isSafeInteger(newestRun) || newestRun < 0)
    throw new InvalidArgument(`abandon: newestRun has to be the number of a run, not ${String(newestRun)}`)
}

/** @throws InvalidArgument */
export function assertTrashOptions(options: TrashOptions): void {
  assertOptions(options, { reason: true, failure: true }, 'trash')
  const { reason, failure } = options
  assertText(reason, 'trash: reason')
  if (failure === undefined) return
  const { name, message }: Partial<Failure> = Object(failure)
  if (typeof name === 'string' && typeof message === 'string' && !(failure instanceof Error)) return
  throw new InvalidArgument('trash: failure is what failureOf(error) makes of an error')
}
