/** What an interrupted demo takes from a board that outlives it: nobody else has the code of its jobs. */
import type { Job, JobBoard } from '../../../board/index.ts'

/** In milliseconds, for a board that does not say how long its sessions are. */
const DEFAULT_SESSION_MS = 4_000

/**
 * Takes those of the jobs that are on the board yet; what a dead conductor holds comes free when its session is over.
 *
 * @throws Timeout when something is held for longer than that; what the board throws
 */
export async function removeJobs(board: JobBoard, jobs: readonly Job[]): Promise<void> {
  const uuids = new Set(jobs.map(({ uuid }) => uuid))
  const timeout = 2 * (board.sessionTimeout ?? DEFAULT_SESSION_MS)
  while (true) {
    const max = filterOnBoard(jobs).length
    if (max === 0) return
    const claims = await board.claimNext({ max, timeout, accept: ({ uuid }) => uuids.has(uuid) })
    await Promise.all(claims.map((claim) => claim.consume()))
  }
}

export function filterOnBoard(jobs: readonly Job[]): readonly Job[] {
  return jobs.filter(({ state }) => state === 'CLAIMED' || state === 'UNCLAIMED')
}
