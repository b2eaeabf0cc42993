/**
 * Results as the logbook gives them back. A result goes through the codec once, when it is made: a later task sees in the
 * same process exactly what it would see after a crash in another. What the logbook would refuse is refused here, where
 * the task can be named.
 */
import { roundTrip } from '../core/codec.ts'
import { InvalidArgument } from '../core/errors.ts'
import { describeError } from '../core/failure.ts'

const SAFE_TYPES: ReadonlySet<string> = new Set(['string', 'number', 'boolean', 'undefined'])

/** @throws InvalidArgument for what is no plain data, naming `what` it is */
export function toPlain(value: unknown, what: () => string): unknown {
  if (value === null || SAFE_TYPES.has(typeof value)) return value
  try {
    return roundTrip(value)
  } catch (cause) {
    throw new InvalidArgument(`${what()} cannot be stored (${describeError(cause)}); return plain data, or nothing`, {
      cause,
    })
  }
}
