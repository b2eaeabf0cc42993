/** In which order jobs are claimed, and in which they were posted. */
import { type Priority, rank } from './priority.ts'

export interface HasId {
  readonly id: string | undefined
}

export interface ClaimOrderKey extends HasId {
  readonly id: string
  readonly priority: Priority
  readonly order: bigint
}

/** Priority, then posting order, then the digits of the id: postings of one batch share their posting order. */
export function compareClaimOrder(a: ClaimOrderKey, b: ClaimOrderKey): number {
  if (a.priority !== b.priority) return rank(a.priority) - rank(b.priority)
  if (a.order !== b.order) return a.order < b.order ? -1 : 1
  return compareIds(a, b)
}

/** The order in which the board gave its ids: by their number, which may have grown more digits. */
export function compareIds(a: HasId, b: HasId): number {
  const one = a.id ?? ''
  const other = b.id ?? ''
  if (one.length !== other.length) return one.length - other.length
  return one < other ? -1 : one > other ? 1 : 0
}
