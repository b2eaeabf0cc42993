/** Parses how long the logbooks of a flow's jobs are kept: the author of a flow knows whether its results will be needed. */
import { InvalidArgument } from '../../core/errors.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'

/** A time after the last change of a finished logbook, 0 for the next look of a conductor; or `forever`. */
export type KeepLogbooks = Duration | 'forever'

/** Checks the option of a flow. @throws InvalidArgument naming the flow */
export function checkKeepLogbooks(flow: string, value: unknown): KeepLogbooks | undefined {
  if (value === undefined || value === 'forever') return value
  if (typeof value !== 'string' && typeof value !== 'number')
    throw new InvalidArgument(`flow ${flow}: keepLogbooks must be a duration such as '7d', 0, or 'forever'`)
  toMilliseconds(value, `flow ${flow}: keepLogbooks`)
  return value as Duration
}
