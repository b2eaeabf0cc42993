/** What a job owns while it runs: others that want the same wait, those that share it go together, everyone else passes. */
import { openBoard } from 'jobboard'

await using board = await openBoard('memory:')
const post = (name: string, resources: { exclusive?: string[]; shared?: string[] }) =>
  board.post('work', {}, { name, resources })

await post('deploy', { exclusive: ['shop'] })
const backup = await post('backup', { exclusive: ['disk'], shared: ['shop'] })
await post('report', { shared: ['shop'] })
await post('mail', { shared: ['outbox'] })

const first = await board.claimNext({ max: 4 })
console.log(first.map(({ job }) => job.name))
console.log(`backup: ${(await board.waitingFor(backup))?.kind} is busy`)

await first[0].consume()
const second = await board.claimNext({ max: 4 })
console.log(second.map(({ job }) => job.name))
