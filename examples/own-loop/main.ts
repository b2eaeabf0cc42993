/** A loop without flows and logbooks: claim, work, settle. A failed job is retried, then trashed. */
import { NonRetryable, openBoard } from 'jobboard'

await using board = await openBoard('memory:')
await board.post('resize', { path: 'cat.png' })
await board.post('resize', { path: 'dog.png' }, { backOff: { first: '1ms' } })
await board.post('resize', { path: 'notes.txt' })

async function resize(path: string, { run }: { run: number }): Promise<void> {
  if (path.endsWith('.txt')) throw new NonRetryable(`${path} is no picture`)
  if (path === 'dog.png' && run === 1) throw new Error('out of memory')
  console.log(`run ${run}: ${path} is small now`)
}

for await (const claim of board.claims()) {
  const ended = await claim.perform(async (job, { run }) => {
    const { path } = job.details.store as { path: string }
    await resize(path, { run })
  })
  if (ended !== 'consumed') console.log(`run ${claim.run}: ${ended}`)
  if (board.jobCount === 0) break
}
for await (const { reason } of board.trashed()) console.log(`in the trash: ${reason}`)
