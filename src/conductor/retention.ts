/**
 * Removes finished logbooks that are old. Any number of conductors may do so at once: a book that one has removed is
 * not found by the next.
 */
import type { JobBoard } from '../board/index.ts'
import { boardId } from '../board/internal.ts'
import { rejectOnAbort } from '../core/async/abort.ts'
import { IncompatibleVersion, NotConnected, NotFound, SealedLogbook, StorageFailure } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { sleep } from '../core/time.ts'
import type { Persistence } from '../persistence/index.ts'
import { isOfOtherBoard } from './runs/book-owner.ts'

export interface RetentionOptions {
  readonly board: JobBoard
  readonly persistence: Persistence
  readonly log: Logger
  /** The time in milliseconds since the last change. */
  readonly age: number
}

/** A pass over all finished, old logbooks. */
interface RetentionPass {
  readonly signal?: AbortSignal
  /** The UUIDs of the books that could not be examined; each is reported once. */
  readonly reported?: Set<string>
}

/** The longest pause between two passes: short for any sensible age, and long enough to cost nothing. */
const MAX_PERIOD_MS = 3_600_000

/**
 * Removes old logbooks again and again until the signal fires. The pauses differ, so that conductors that started
 * together do not run at once.
 */
export async function retain(retention: RetentionOptions, signal: AbortSignal): Promise<void> {
  const period = Math.max(1_000, Math.min(retention.age, MAX_PERIOD_MS))
  const reported = new Set<string>()
  while (!signal.aborted) {
    try {
      const removed = await rejectOnAbort(removeFinished(retention, { signal, reported }), signal)
      if (removed > 0) retention.log.info({ removed }, 'old logbooks removed')
    } catch (error) {
      if (signal.aborted) return
      retention.log.warn({ err: error }, 'old logbooks could not be removed; the conductor tries again later')
    }
    await sleep(period * (0.5 + Math.random() / 2), { signal }).catch(() => undefined)
  }
}

/** Removes the finished logbooks that are older than the age. @returns how many were removed */
export async function removeFinished(retention: RetentionOptions, look: RetentionPass = {}): Promise<number> {
  const { board, persistence, age } = retention
  const ownBoard = boardId(board.uri)
  const { signal } = look
  const unchangedSince = new Date(Date.now() - age)
  let removed = 0
  for await (const { uuid, meta } of persistence.listBooks({ finished: true, unchangedSince })) {
    if (signal?.aborted || !board.connected) break
    // This board cannot show whether a job of another board still needs its logbook; without it the job would start
    // over.
    if (isOfOtherBoard(meta, { boardId: ownBoard })) continue
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
