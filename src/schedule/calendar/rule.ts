/** The interface of all rules of schedules: the instants that they name. */
import type { Work } from './work.ts'

/**
 * Computes the times of a rule. An occurrence is an instant in milliseconds since 1970. The same rule always gives the same occurrences:
 * they do not depend on the time at which they are computed.
 *
 * Each call has its own budget, unless `work` is given: a caller that makes many calls at once passes the same budget to all of them.
 */
export interface Rule {
  /** Returns the first occurrence after the instant; undefined if there is none. @throws InvalidArgument if it takes too long to compute */
  next(after: number, work?: Work): number | undefined
  /** Returns the last occurrence before the instant or at it; undefined if there is none. @throws InvalidArgument as {@link next} */
  last(until: number, work?: Work): number | undefined
}
