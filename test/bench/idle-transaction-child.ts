/**
 * One process of `bench -- idle-transaction`: `idle-transaction-child.ts ROLE URI COUNT`. In each round it posts so many jobs, or claims and consumes them.
 */
import { openBoard } from '../../src/board/open.ts'
import { eachTimeTold, sideBySide } from './part-child.ts'

/** Jobs that are posted side by side, and claimed at once. */
const WIDTH = 512

const [role = '', uri = '', jobs = ''] = process.argv.slice(2)
const count = Number(jobs)

await using board = await openBoard(uri, { who: `${role} ${process.pid}` })

async function work(): Promise<void> {
  let taken = 0
  const settling: Promise<void>[] = []
  while (taken < count) {
    const claims = await board.claimNext({ max: Math.min(WIDTH, count - taken) })
    taken += claims.length
    for (const claim of claims) settling.push(claim.consume())
  }
  await Promise.all(settling)
}

await eachTimeTold(() => (role === 'work' ? work() : sideBySide(count, WIDTH, () => board.post('flow', { n: 1 }))))
