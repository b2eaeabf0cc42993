/** Posts plain jobs, and claims and consumes them, as fast as one process can. */
import type { JobBoard } from '../../src/board/api/job-board.ts'
import { sideBySide } from './part-child.ts'

/** Jobs that are posted side by side, and claimed at once. */
const WIDTH = 512

export async function postJobs(board: JobBoard, count: number): Promise<void> {
  await sideBySide(count, WIDTH, () => board.post('flow', { n: 1 }))
}

export async function consumeJobs(board: JobBoard, count: number): Promise<void> {
  let taken = 0
  const settling: Promise<void>[] = []
  while (taken < count) {
    const claims = await board.claimNext({ max: Math.min(WIDTH, count - taken) })
    taken += claims.length
    for (const claim of claims) settling.push(claim.consume())
  }
  await Promise.all(settling)
}
