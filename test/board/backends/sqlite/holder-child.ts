/** A process that claims a job, says so, and holds it; it says when the claim is lost. With `die` it ends itself at once. */
import { openBoard } from '../../../../src/board/index.ts'

const [uri = '', way = 'hold'] = process.argv.slice(2)
const board = await openBoard(uri, { who: `holder-${process.pid}` })
process.on('SIGTERM', () => void board.close())
const [claim] = await board.claimNext()
claim.lost.addEventListener('abort', () => console.log('lost'))
console.log(`holding ${claim.job.uuid}`)
if (way === 'die') process.kill(process.pid, 'SIGKILL')
