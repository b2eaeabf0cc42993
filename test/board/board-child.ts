/** A process of its own: opens the board, posts a job under its name, does one, and says whose it was. */
import { openBoard } from '../../src/board/index.ts'

const [uri = '', name = ''] = process.argv.slice(2)
await using board = await openBoard(uri)
await board.post('flow', {}, { name })
const [claim] = await board.claimNext()
await claim.consume()
console.log(claim.job.name)
