/** TaskFlow's five priorities. */
import { InvalidPosting } from '../../core/errors.ts'
import { shortenText } from '../../core/texts.ts'

/** All priorities, the first to be claimed first. */
export const PRIORITIES = ['VERY_HIGH', 'HIGH', 'NORMAL', 'LOW', 'VERY_LOW'] as const

/** Whose turn it is: higher goes first; among equals, what was posted first. */
export type Priority = (typeof PRIORITIES)[number]

/** Smaller is claimed sooner. */
export function rank(priority: Priority): number {
  return PRIORITIES.indexOf(priority)
}

/** As TaskFlow reads it: any case, NORMAL when absent. @throws InvalidPosting for anything else */
export function toPriority(value: unknown): Priority {
  if (value === undefined || value === null) return 'NORMAL'
  const found = PRIORITIES.find((priority) => typeof value === 'string' && priority === value.toUpperCase())
  if (found) return found
  const what = typeof value === 'string' ? `priority ${shortenText(value)}` : 'the priority'
  throw new InvalidPosting(`${what} is none of ${PRIORITIES.join(', ')}`)
}
