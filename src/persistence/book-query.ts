/** Which books a listing is about. */
import { IncompatibleVersion, InvalidArgument, StorageFailure } from '../core/errors.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import type { FlowState } from '../core/states.ts'
import type { BookDetail, FlowDetail } from './models.ts'

/** What is asked of several things at once holds for all of them. */
export interface BookQuery {
  readonly name?: string
  /** With a flow in this state, or in one of these. */
  readonly state?: FlowState | readonly FlowState[]
  /** True: with flows, and all of them over (SUCCESS, REVERTED, FAILURE). False: the others. */
  readonly finished?: boolean
  /** Of which nothing has changed after this: not the meta, not a flow. */
  readonly unchangedSince?: Date
  /** Behind the book of this uuid, whether that is still there or not: the last one of the page before. */
  readonly after?: string
  /** At most so many. */
  readonly limit?: number
}

const KNOWN_OPTIONS: KnownOptions<BookQuery> = {
  name: true,
  state: true,
  finished: true,
  unchangedSince: true,
  after: true,
  limit: true,
}

/** The states in which a flow stays until somebody runs it once more. */
export const FINISHED_STATES: readonly FlowState[] = ['SUCCESS', 'REVERTED', 'FAILURE']

/** @throws InvalidArgument */
export function assertBookQuery(query: BookQuery): void {
  assertOptions(query, KNOWN_OPTIONS, 'listBooks')
  const { limit, unchangedSince } = query
  if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 1))
    throw new InvalidArgument(`listBooks: limit has to be a whole number from 1, not ${limit}`)
  assertInstant(unchangedSince, 'listBooks')
}

/** @throws InvalidArgument */
export function assertInstant(unchangedSince: Date | undefined, where: string): void {
  if (unchangedSince === undefined) return
  if (unchangedSince instanceof Date && !Number.isNaN(unchangedSince.getTime())) return
  throw new InvalidArgument(`${where}: unchangedSince has to be a Date`)
}

export function listQueryStates({ state }: BookQuery): readonly FlowState[] | undefined {
  return typeof state === 'string' ? [state] : state
}

/** Whether the flows have to be looked at to know; a listing without is much cheaper where each lies in a file. */
export function asksForFlows(query: BookQuery): boolean {
  return query.state !== undefined || query.finished !== undefined || query.unchangedSince !== undefined
}

/**
 * The book, or undefined where it is damaged or a newer release has written it: one such book must not hide all the others.
 * Whoever gets it is told what is wrong.
 */
export async function ignoreUnreadable<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof IncompatibleVersion || (error instanceof StorageFailure && !error.retryable)) return undefined
    throw error
  }
}

/** What can be told without the flows. */
export function matchesBookQuery(query: BookQuery, book: BookDetail): boolean {
  return query.name === undefined || book.name === query.name
}

export function matchesFlowQuery(
  query: BookQuery,
  book: BookDetail,
  flows: readonly Pick<FlowDetail, 'state' | 'updatedAt'>[],
): boolean {
  const states = listQueryStates(query)
  if (states && !flows.some(({ state }) => states.includes(state))) return false
  const finished = flows.length > 0 && flows.every(({ state }) => FINISHED_STATES.includes(state))
  if (query.finished !== undefined && query.finished !== finished) return false
  return query.unchangedSince === undefined || isUnchanged(query.unchangedSince, book, flows)
}

export function isUnchanged(since: Date, book: BookDetail, flows: readonly Pick<FlowDetail, 'updatedAt'>[]): boolean {
  return [book, ...flows].every(({ updatedAt }) => updatedAt <= since)
}
