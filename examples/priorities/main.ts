/** The order of claims: the highest priority first, and among equals the job that was posted first. */
import { openBoard, type Priority } from 'jobboard'

await using board = await openBoard('memory:')

const posted: [name: string, priority?: Priority][] = [
  ['report', 'LOW'],
  ['mail to Ada'],
  ['mail to Grace'],
  ['alarm', 'VERY_HIGH'],
]
for (const [name, priority = 'NORMAL'] of posted) await board.post('send', {}, { name, priority })

for await (const claim of board.claims()) {
  await claim.perform((job) => console.log(`${job.priority}: ${job.name}`))
  if ((await board.countJobs()) === 0) break
}
