/** Removal of an interrupted demo's jobs from a board that outlives it: other conductors do not have their code. */
import type { Job, JobBoard } from '../../../board/index.ts'

/** The session's timeout for a board that does not report one. */
const DEFAULT_SESSION_MS = 4_000

/**
 * Claims and consumes the jobs that are still on the board; the claims of a dead conductor end with its session.
 *
 * @throws Timeout if a claim is held for longer than that; what the board throws
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
