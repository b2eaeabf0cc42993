/** Lists the batches and the entities of a board in a process with a small heap. */
import { openBoard } from '../../../src/index.ts'

const [uri = ''] = process.argv.slice(2)
await using board = await openBoard(uri)
const batches = await board.batches({ limit: 1_000 })
const [newest] = batches
console.log(`${batches.length} batches, the newest with ${Object(newest?.meta).list.length} items`)
const entities = await board.entities('worker')
console.log(
  `${entities.length} entities, ${entities.filter(({ metadata }) => 'leftOut' in metadata).length} without metadata`,
)
