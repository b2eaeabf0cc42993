/** TaskFlow's five priorities. */
import { InvalidPosting } from '../../core/errors.ts'
import { shortenText } from '../../core/texts.ts'

/** All priorities, the first to be claimed first. */
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
  const found = PRIORITIES.find((priority) => typeof value === 'string' && priority === value.toUpperCase())
  if (found) return found
  const got = typeof value === 'string' ? `, got ${shortenText(value)}` : ''
  throw new InvalidPosting(`priority must be one of ${PRIORITIES.join(', ')}${got}`)
}
