/** What the rules of schedules have in common: which instants they name. */

/**
 * Computes the times of a rule. An occurrence is an instant in milliseconds since 1970. The same rule always gives the same occurrences:
 * they do not depend on the time at which they are computed.
 */
export interface Rule {
  /** Returns the first occurrence after the instant; undefined if there is none. */
  next(after: number): number | undefined
  /** Returns the last occurrence before the instant or at it; undefined if there is none. */
  last(until: number): number | undefined
}
