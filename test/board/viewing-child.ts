/** A process that views a board until it is killed. */
import { openBoard } from '../../src/board/index.ts'

const [uri = '', who = ''] = process.argv.slice(2)
const board = await openBoard(uri, { who })
await board.view()
