/** A process that writes to a board all the time, once it is told to, and counts its writes. */
import { openBoard } from '../../../../src/board/index.ts'

const [uri = ''] = process.argv.slice(2)
const board = await openBoard(uri)
const begun = new Promise<void>((resolve) => process.on('SIGUSR2', resolve))
console.log('ready')
await begun
for (let done = 1; ; done += 1) {
  await board.post('flow', {})
  if (done % 100 === 0) console.log(`done ${done}`)
}
