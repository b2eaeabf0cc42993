/**
 * One process of `bench -- schedule`: `schedule-child.ts CONDUCTORS URI NAME`. Starts so many conductors, each on a board of its own, that fire
 * schedules and know none of their flows. At its end it says how many jobs it has posted, and with how many transactions.
 */
import { input, linear, openBoard, openPersistence, startConductor, task } from 'jobboard'
import { whenTold } from './part-child.ts'

const other = linear('other', input(), task('none', { execute: () => undefined }))
const [count = '', uri = '', name = ''] = process.argv.slice(2)

await using persistence = await openPersistence('memory:')
const boards = await Promise.all(Array.from({ length: Number(count) }, () => openBoard(uri)))
let transactions = 0
let fired = 0
countWrites(boards[0])
const conductors = await Promise.all(
  boards.map((board, index) => startConductor({ board, persistence, flows: [other], name: `${name}-${index}` })),
)
for (const conductor of conductors) conductor.on('fired', () => void (fired += 1))
await whenTold(async (end) => {
  // What was done at the start is none of it.
  transactions = fired = 0
  await end()
  return { transactions, fired }
})
await Promise.all(conductors.map((conductor) => conductor.stop()))
await Promise.all(boards.map((board) => board.close()))

/** Counts the writes of records, refused ones, too. Records are internal, so this is on their class as it runs. */
function countWrites(board: unknown): void {
  const store = Object(board).records.of({ name: 'schedule', format: 1, parse: (value: unknown) => value })
  const stores: { write(...args: unknown[]): unknown } = Object.getPrototypeOf(store)
  const { write } = stores
  stores.write = function (...args) {
    transactions += 1
    return write.apply(this, args)
  }
}
