/** Resources: jobs that want the same one wait, jobs that share it run together, and other jobs overtake them. */
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
