/**
 * Removes finished logbooks that are old. Any number of conductors may do so at once: a book that one has removed is
 * not found by the next.
 *
 * The age of a book is what its flow has written into it (`keepLogbooks`), else what the conductor says. A listing contains the books that
 * have not changed for the shortest of the ages that are known here; each of its books is judged by its own age. Once a day, and in the
 * first pass, all finished books are listed: so a conductor learns the ages of flows that it does not know.
 */
import type { JobBoard } from '../board/index.ts'
import { boardId, isOfOtherBoard } from '../board/internal.ts'
import { IncompatibleVersion, NotConnected, NotFound, SealedLogbook, StorageFailure } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { monotonic } from '../core/time.ts'
import type { Persistence } from '../persistence/index.ts'
import { removePeriodically } from './periodic-removal.ts'
import { ownAgeOf } from './runs/book-owner.ts'

export interface RetentionOptions {
  readonly board: JobBoard
  readonly persistence: Persistence
  readonly log: Logger
  /** The time in milliseconds since the last change; undefined if only books are removed whose flows say so. */
  readonly age?: number | undefined
  /** Returns the ages in milliseconds that flows have for their books, by the code of this conductor or by settings. */
  readonly flowAges?: () => readonly number[]
}

/** A pass over finished, old logbooks. */
interface RetentionPass {
  readonly signal?: AbortSignal
  /** The UUIDs of the books that could not be examined; each is reported once. */
  readonly reported?: Set<string>
  /** The age in milliseconds from which books are listed; by default all finished books are. */
  readonly from?: number
  /** Receives the age that a book has of its own. */
  readonly onOwnAge?: (age: number) => void
}

/** The shortest period for the sake of books whose flow has an age: each pass lists all books that are as old as the shortest of these ages. */
const MIN_FLOW_PERIOD_MS = 300_000
/** The time between two passes over all finished books. */
const FULL_PASS_PERIOD_MS = 86_400_000

/** Removes old logbooks again and again until the signal fires. */
export async function retain(retention: RetentionOptions, signal: AbortSignal): Promise<void> {
  const { age = Number.POSITIVE_INFINITY, flowAges = () => [], log } = retention
  const known = () => Math.min(age, ...flowAges())
  const reported = new Set<string>()
  let shortest = Number.POSITIVE_INFINITY
  let nextFullPass = Number.NEGATIVE_INFINITY
  const onOwnAge = (own: number) => {
    shortest = Math.min(shortest, own)
  }
  const pass = async (stopped: AbortSignal) => {
    const isFull = monotonic() >= nextFullPass
    const from = isFull ? 0 : Math.min(shortest, known())
    if (isFull) shortest = Number.POSITIVE_INFINITY
    const removed = await removeFinished(retention, { signal: stopped, reported, from, onOwnAge })
    if (isFull) nextFullPass = monotonic() + FULL_PASS_PERIOD_MS
    return removed
  }
  const period = () => Math.min(age, ...flowAges().map((each) => Math.max(MIN_FLOW_PERIOD_MS, each)))
  await removePeriodically({ age: period, what: 'logbooks', log, pass }, signal)
}

/** Removes the finished logbooks that are older than their age. @returns how many were removed */
export async function removeFinished(retention: RetentionOptions, look: RetentionPass = {}): Promise<number> {
  const { board, persistence, age = Number.POSITIVE_INFINITY } = retention
  const ownBoard = boardId(board.uri)
  const { signal, from = 0, onOwnAge } = look
  const now = Date.now()
  let removed = 0
  for await (const { uuid, meta, updatedAt } of persistence.listBooks({
    finished: true,
    unchangedSince: toInstant(now, Math.min(from, age)),
  })) {
    if (signal?.aborted || !board.connected) break
    // This board cannot show whether a job of another board still needs its logbook; without it the job would start
    // over.
    if (isOfOtherBoard(meta, { boardId: ownBoard })) continue
    const own = ownAgeOf(meta)
    if (own !== undefined) onOwnAge?.(own)
    // A book that is younger need not be read.
    const unchangedSince = toInstant(now, own ?? age)
    if (updatedAt > unchangedSince) continue
    try {
      if (await isNeeded(uuid, retention)) continue
      if (await persistence.destroyBook(uuid, { unchangedSince }).catch(ignoreNotFound)) removed += 1
    } catch (error) {
      if (signal?.aborted || isSharedFailure(error)) throw error
      reportOnce(uuid, error, { log: retention.log, ...look })
    }
  }
  return removed
}

/** Returns the time that is so long ago; the beginning of 1970 for an age of more than all time since. */
function toInstant(now: number, age: number): Date {
  return new Date(Math.max(0, now - age))
}

/** Returns whether the other books would fail as this one did: the storage or the board is away. */
function isSharedFailure(error: unknown): boolean {
  return error instanceof NotConnected || (error instanceof StorageFailure && error.retryable)
}

/** Reports a damaged book. It is kept, and must not prevent the removal of the others. */
function reportOnce(
  book: string,
  error: unknown,
  { log, reported }: RetentionPass & Pick<RetentionOptions, 'log'>,
): void {
  if (reported?.has(book)) return
  reported?.add(book)
  log.warn({ err: error, book }, 'a finished logbook cannot be read and is kept; examine it with logbook show')
}

/**
 * Returns whether a job of the book is still on the board, for example because its owner died before it consumed the
 * job: without the logbook the next owner would run everything again.
 */
async function isNeeded(book: string, { board, persistence }: RetentionOptions): Promise<boolean> {
  const found = await persistence.getBook(book).catch(ignoreMissingOrUnreadable)
  if (found === 'unreadable') return true
  for (const { uuid } of found?.flows ?? []) {
    if (await board.find(uuid).catch(ignoreNotFound)) return true
  }
  return false
}

/**
 * Treats logbooks that are encrypted with another key, or written by a newer release, as needed: others can read them.
 */
function ignoreMissingOrUnreadable(error: unknown): 'unreadable' | undefined {
  if (error instanceof SealedLogbook || error instanceof IncompatibleVersion) return 'unreadable'
  return ignoreNotFound(error)
}

function ignoreNotFound(error: unknown): undefined {
  if (!(error instanceof NotFound)) throw error
}
