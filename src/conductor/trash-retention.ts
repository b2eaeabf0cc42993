/**
 * Removes old jobs from the trash. Any number of conductors may do so at once: an entry that one has removed is not found by the next, and
 * an entry that was restored meanwhile is another job.
 */
import type { JobBoard, TrashedJob } from '../board/index.ts'
import { boardInternals } from '../board/internal.ts'
import { NotFound } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { removePeriodically } from './periodic-removal.ts'

export interface TrashRetentionOptions {
  readonly board: JobBoard
  readonly log: Logger
  /** The time in the trash in milliseconds of jobs whose flow has no `removeTrashAfter`; undefined if they stay. */
  readonly age: number | undefined
}

/** The number of entries that are removed at once. */
const MAX_BATCH = 50

/** Removes old entries again and again until the signal fires. */
export async function retainTrash(retention: TrashRetentionOptions, signal: AbortSignal): Promise<void> {
  const { log } = retention
  const age = () => shortestAge(retention)
  const pass = (stopped: AbortSignal) => removeOldTrash(retention, { signal: stopped })
  await removePeriodically({ age, what: 'jobs in the trash', log, pass }, signal)
}

/** Returns the shortest of the ages, infinite if there is none. */
function shortestAge({ board, age = Number.POSITIVE_INFINITY }: Omit<TrashRetentionOptions, 'log'>): number {
  return Math.min(age, ...boardInternals(board).flowRules.valuesOf('removeTrashAfter'))
}

/**
 * Removes the entries that are older than the age of their flow, or else of the conductor. The trash is read page by page from its oldest entry, and no further than to the first one
 * that is not old enough.
 *
 * @returns how many were removed
 */
export async function removeOldTrash(
  { board, age }: Omit<TrashRetentionOptions, 'log'>,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<number> {
  if (!board.connected) return 0
  const shortest = shortestAge({ board, age })
  const { flowRules } = boardInternals(board)
  const now = await boardInternals(board).readClock()
  let removed = 0
  let batch: TrashedJob[] = []
  const removeBatch = async () => {
    const results = await Promise.all(batch.map((trashed) => purge(board, trashed)))
    removed += results.filter(Boolean).length
    batch = []
  }
  for await (const trashed of board.trashed()) {
    if (signal?.aborted || !board.connected) break
    const at = trashed.at.getTime()
    // An entry from the future was written by a process whose clock is ahead: it must not hide the later ones.
    if (at > now - shortest && at <= now) break
    const own = flowRules.valueOf(trashed.details.flow, 'removeTrashAfter') ?? age ?? Number.POSITIVE_INFINITY
    if (at > now - own) continue
    batch.push(trashed)
    if (batch.length >= MAX_BATCH) await removeBatch()
  }
  await removeBatch()
  return removed
}

/** Removes one entry; returns false if it is no longer in the trash. */
async function purge(board: JobBoard, trashed: TrashedJob): Promise<boolean> {
  try {
    await board.purge(trashed)
    return true
  } catch (error) {
    if (error instanceof NotFound) return false
    throw error
  }
}
