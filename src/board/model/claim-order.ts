/** TaskFlow's five priorities, the order in which jobs are claimed, and the order in which they were posted. */
import { InvalidPosting } from '../../core/errors.ts'
import { shortenText } from '../../core/texts.ts'

/** The priorities, the first to be claimed first. */
export const PRIORITIES = ['VERY_HIGH', 'HIGH', 'NORMAL', 'LOW', 'VERY_LOW'] as const

/** The priority of a job: higher ones are claimed first, equal ones in posting order. */
export type Priority = (typeof PRIORITIES)[number]

/** Returns the rank of the priority: jobs with a smaller one are claimed first. */
export function rank(priority: Priority): number {
  return PRIORITIES.indexOf(priority)
}

/** Parses a priority as TaskFlow does: in any case, NORMAL when absent. @throws InvalidPosting for anything else */
export function toPriority(value: unknown): Priority {
  if (value === undefined || value === null) return 'NORMAL'
  for (const priority of PRIORITIES) if (priority === value) return priority
  const found = PRIORITIES.find((priority) => typeof value === 'string' && priority === value.toUpperCase())
  if (found) return found
  const got = typeof value === 'string' ? `, got ${shortenText(value)}` : ''
  throw new InvalidPosting(`priority must be one of ${PRIORITIES.join(', ')}${got}`)
}

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

/**
 * Returns `count` random items in no particular order, so that processes with the same view do not all try to claim the same
 * jobs. `items` is not changed.
 *
 * @param options.random returns numbers from 0 to below 1
 */
export function pickAtRandom<T>(items: readonly T[], options: { count: number; random: () => number }): T[] {
  const rest = [...items]
  const picked: T[] = []
  while (picked.length < options.count && rest.length > 0) {
    const last = rest.pop() as T
    // The last item replaces the drawn one, unless it is drawn itself: this removes an item in constant time.
    const index = Math.floor(options.random() * (rest.length + 1))
    picked.push(rest[index] ?? last)
    if (index < rest.length) rest[index] = last
  }
  return picked
}
