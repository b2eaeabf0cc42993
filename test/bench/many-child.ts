/**
 * A worker of `bench -- many`: `many-child.ts JOBS SLOTS URI`. It uses the package as it is published, prints `ready` when it is connected, and
 * does so many jobs with so many slots when it receives a line.
 */
import { openBoard } from 'jobboard'
import { whenTold } from './part-child.ts'

const [jobs = '', slots = '', uri = ''] = process.argv.slice(2)

await using board = await openBoard(uri)
await consume(1)
await whenTold(() => consume(Number(jobs)))

/** Claims as many jobs as there are free slots, and settles each on its own: a slot is free again when its job has ended. */
async function consume(count: number): Promise<void> {
  let begun = 0
  const slot = async () => {
    while (begun < count) {
      begun += 1
      const [claim] = await board.claimNext({ max: 1 })
      await claim?.consume()
    }
  }
  await Promise.all(Array.from({ length: Math.min(Number(slots), count) }, slot))
}
