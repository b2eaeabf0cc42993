/** In which order jobs are claimed, and in which they were posted. */
import { type Priority, rank } from './priority.ts'

export interface Identified {
  readonly id: string | undefined
}

export interface Ordered extends Identified {
  readonly id: string
  readonly priority: Priority
  readonly order: bigint
}

/** Priority, then posting order, then the digits of the id: postings of one batch share their posting order. */
export function compareClaimOrder(a: Ordered, b: Ordered): number {
  if (a.priority !== b.priority) return rank(a.priority) - rank(b.priority)
  if (a.order !== b.order) return a.order < b.order ? -1 : 1
  return compareIds(a, b)
}

/** The order in which the board gave its ids: by their number, which may have grown more digits. */
export function compareIds(a: Identified, b: Identified): number {
  const one = a.id ?? ''
  const other = b.id ?? ''
  if (one.length !== other.length) return one.length - other.length
  return one < other ? -1 : one > other ? 1 : 0
}
