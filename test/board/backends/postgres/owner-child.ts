/** An owner in a process of its own: `owner-child.ts URI [NAME]`. It claims the next job, says so, and keeps the job until it is killed. */
import { openBoard } from '../../../../src/board/index.ts'

const [uri = '', who = 'owner'] = process.argv.slice(2)
const board = await openBoard(uri, { who })
const [{ lost, job }] = await board.claimNext()
lost.addEventListener('abort', () => process.stdout.write(`lost ${job.name}\n`))
process.stdout.write(`claimed ${job.name}\n`)
setInterval(() => undefined, 60_000)
