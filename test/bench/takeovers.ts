/** How soon the job of an owner that is killed with SIGKILL goes to another process of the same host. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBoard } from 'jobboard'
import { ROOT } from '../support/build.ts'
import { times } from './brief.ts'
import type { Goal } from './goals.ts'
import { startPart } from './part.ts'
import { median } from './spread.ts'

const CHILD = join(ROOT, 'test/bench/takeover-child.ts')
const ROUNDS = times(50, 3)
const GOAL_MS = 1_000
/** The time from one look for other processes to the next, and from the start of a process to its first look. */
const LOOK_MS = 500

/**
 * Measures and prints the times from the kill to the claim of the waiting process. Returns the goal.
 *
 * @param what the kind of board, for people
 */
export async function measureTakeovers(what: string, uri: string): Promise<Goal> {
  await using nextOwner = await openBoard(uri)
  const took: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const { uuid } = await nextOwner.post('flow', { round })
    await using owner = await startPart(CHILD, [uri])
    const next = nextOwner.claimNext()
    // Each start takes about as long as the others: without this pause all kills would be equally soon before a look.
    await sleep(2 * LOOK_MS + (round * LOOK_MS) / ROUNDS)
    const begin = performance.now()
    void owner.kill()
    const [claim] = await next
    took.push(performance.now() - begin)
    if (claim.job.uuid !== uuid)
      throw new Error(`the job ${claim.job.uuid} was claimed, and not that of the killed owner`)
    await claim.consume()
  }
  const p99 = took.toSorted((a, b) => a - b)[Math.ceil(took.length * 0.99) - 1]
  console.log(`\nowner of a job killed with SIGKILL, ${ROUNDS} times, on ${what}; milliseconds to the next claim`)
  console.log(`  p50 ${median(took).toFixed(0)}, p99 ${p99?.toFixed(0)}, most ${Math.max(...took).toFixed(0)}`)
  return { what: `takeover after SIGKILL p99 on ${what}, in ms:`, value: p99, goal: { atMost: GOAL_MS } }
}
