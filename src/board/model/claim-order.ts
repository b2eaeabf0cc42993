/** The order in which jobs are claimed, and the order in which they were posted. */
import { type Priority, rank } from './priority.ts'

export interface HasId {
  readonly id: string | undefined
}

export interface ClaimOrderKey extends HasId {
  readonly id: string
  readonly priority: Priority
  readonly order: bigint
}

/** Compares by priority, then posting order, then id, because postings of one transaction share their posting order. */
export function compareClaimOrder(a: ClaimOrderKey, b: ClaimOrderKey): number {
  if (a.priority !== b.priority) return rank(a.priority) - rank(b.priority)
  if (a.order !== b.order) return a.order < b.order ? -1 : 1
  return compareIds(a, b)
}

/** Compares ids in the order in which the board assigned them: by their number, whose count of digits may have grown. */
export function compareIds(a: HasId, b: HasId): number {
  const one = a.id ?? ''
  const other = b.id ?? ''
  if (one.length !== other.length) return one.length - other.length
  return one < other ? -1 : one > other ? 1 : 0
}
