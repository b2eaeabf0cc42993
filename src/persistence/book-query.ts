/** The query of a listing: which books it selects. */
import { IncompatibleVersion, InvalidArgument, isDate, StorageFailure } from '../core/errors.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import { type FlowState, isFinished } from '../core/states.ts'
import type { BookDetail, FlowDetail } from './models.ts'

/** The conditions of a listing; a book must meet all of them. */
export interface BookQuery {
  readonly name?: string
  /** The state, or one of the states, that at least one flow must have. */
  readonly state?: FlowState | readonly FlowState[]
  /**
   * Whether the book must have flows that are all finished (SUCCESS, REVERTED, FAILURE); false selects the other books.
   */
  readonly finished?: boolean
  /** The time after which nothing may have changed: neither the meta nor a flow. */
  readonly unchangedSince?: Date
  /**
   * The UUID of the last book of the previous page: the listing begins after it, whether that book still exists or not.
   */
  readonly after?: string
  /** The maximum number of books. */
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

/** Checks a query. @throws InvalidArgument */
export function assertBookQuery(query: BookQuery): void {
  assertOptions(query, KNOWN_OPTIONS, 'listBooks')
  const { limit, unchangedSince } = query
  if (limit !== undefined && (!Number.isSafeInteger(limit) || limit < 1))
    throw new InvalidArgument(`listBooks: limit must be a whole number from 1, got ${limit}`)
  assertInstant(unchangedSince, 'listBooks')
}

/** Checks the option `unchangedSince`. @throws InvalidArgument */
export function assertInstant(unchangedSince: Date | undefined, where: string): void {
  if (unchangedSince === undefined) return
  if (isDate(unchangedSince) && !Number.isNaN(unchangedSince.getTime())) return
  throw new InvalidArgument(`${where}: unchangedSince must be a valid Date`)
}

export function listQueryStates({ state }: BookQuery): readonly FlowState[] | undefined {
  return typeof state === 'string' ? [state] : state
}

/**
 * Returns whether the query must read the flows; a listing without them is much cheaper where each flow has its own
 * file.
 */
export function asksForFlows(query: BookQuery): boolean {
  return query.state !== undefined || query.finished !== undefined || query.unchangedSince !== undefined
}

/**
 * Resolves to the book, or to undefined where it is damaged or a newer release has written it: one such book must not
 * hide all the others. Reading that book by its UUID reports the error.
 */
export async function ignoreUnreadable<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof IncompatibleVersion || (error instanceof StorageFailure && !error.retryable)) return undefined
    throw error
  }
}

/** Returns whether the book meets the conditions that need no flows. */
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
  const finished = flows.length > 0 && flows.every(({ state }) => isFinished(state))
  if (query.finished !== undefined && query.finished !== finished) return false
  return query.unchangedSince === undefined || isUnchanged(query.unchangedSince, book, flows)
}

export function isUnchanged(since: Date, book: BookDetail, flows: readonly Pick<FlowDetail, 'updatedAt'>[]): boolean {
  return [book, ...flows].every(({ updatedAt }) => updatedAt <= since)
}
