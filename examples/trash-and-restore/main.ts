/** A job that fails is kept in the trash with its reason, and restored when the cause is corrected. */
import { input, linear, NonRetryable, openBoard, openPersistence, startConductor, task, track } from 'jobboard'

const printer = { paper: 0 }

const print = task('print', {
  requires: ['text'],
  execute: ({ text }: { text: string }) => {
    if (printer.paper === 0) throw new NonRetryable('out of paper')
    printer.paper -= 1
    console.log(`printed: ${text}`)
    return 'one page'
  },
})
const letter = linear('letter', input<{ text: string }>(), print)

await using board = await openBoard('memory:')
await using persistence = await openPersistence('memory:')
await using _conductor = await startConductor({ board, persistence, flows: [letter] })

const { uuid } = await board.post(letter, { text: 'Dear Ada' })
const ended = async () => console.log(await (await board.find(uuid)).wait())
await ended()

printer.paper = 500
for await (const trashed of board.trashed()) {
  console.log(`${trashed.name}: ${trashed.reason}`)
  await board.restore(trashed)
}
// It is the same job, with the uuid that its poster knows.
await ended()
const standing = await track(uuid, { board, persistence })
console.log(standing.status === 'done' && standing.results)
