/** Counts the jobs that a burst leaves behind, for its exit code: a script or a pipeline has to notice that work is left. */
import { type JobBoard, type OpenBoardOptions, openBoard, type ServedQueues, type Size } from '../../../board/index.ts'
import { boardInternals, QueueChoice, queuesOfSizes } from '../../../board/internal.ts'
import { NotConnected } from '../../../core/errors.ts'

/** The maximum number of jobs that are counted. */
const MAX_COUNTED = 1_000

export interface ServedWork {
  /** The names of the flows. */
  readonly flows: ReadonlySet<string>
  /** The queues that were served; undefined for all. */
  readonly queues: ServedQueues | undefined
  /** The queues as sizes, which are deprecated. */
  readonly sizes: readonly Size[] | undefined
}

/**
 * Returns the number of jobs that a conductor could have run and did not: they wait after a failed run, for a limit, a resource, another job, or the end of
 * a pause. Jobs that were posted for later are not counted, and at most {@link MAX_COUNTED} are.
 */
export async function countLeftJobs(board: JobBoard, { flows, queues, sizes }: ServedWork): Promise<number> {
  const served = queues ?? (sizes && queuesOfSizes(sizes, 'a conductor'))
  const choice = served && QueueChoice.parse(served, 'a conductor')
  const { now } = boardInternals(board)
  let left = 0
  for await (const job of board.jobs({ onlyUnclaimed: true, ensureFresh: true })) {
    const isForLater = job.runs === 0 && (job.delayedUntil?.getTime() ?? 0) > now
    if (isForLater || !flows.has(job.details.flow ?? '') || choice?.includes(job.queue) === false) continue
    left += 1
    if (left === MAX_COUNTED) break
  }
  return left
}

/** Returns the number of jobs that are left on one of several boards, as {@link countLeftJobs}; 0 for a board that is away, for which a burst does not wait. */
export async function countLeftJobsAt(
  uri: string,
  { options, served }: { readonly options: OpenBoardOptions; readonly served: ServedWork },
): Promise<number> {
  try {
    await using board = await openBoard(uri, options)
    return await countLeftJobs(board, served)
  } catch (error) {
    if (error instanceof NotConnected) return 0
    throw error
  }
}
