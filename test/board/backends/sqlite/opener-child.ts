/** A process that opens a board and closes it, many times, once it is told to. */
import { openBoard } from '../../../../src/board/index.ts'

const [uri = '', times = '1'] = process.argv.slice(2)
const begun = new Promise<void>((resolve) => process.on('SIGUSR2', resolve))
const keepAlive = setInterval(() => undefined, 1_000)
console.log('ready')
await begun
clearInterval(keepAlive)
for (let time = 0; time < Number(times); time += 1) {
  await using board = await openBoard(uri, { who: `opener-${process.pid}` })
  await board.post('flow', {})
}
