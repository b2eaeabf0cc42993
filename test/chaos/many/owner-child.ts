/** An owner of jobs, in a process of its own. It writes down when the work of each begins. */
import { appendFileSync } from 'node:fs'
import { openBoard } from 'jobboard'

const [uri = '', file = '', slots = '1'] = process.argv.slice(2)

const board = await openBoard(uri)
const stop = new AbortController()
process.once('SIGTERM', () => stop.abort())
console.log('ready')
try {
  while (!stop.signal.aborted) {
    const claims = await board.claimNext({ max: Number(slots), signal: stop.signal })
    // One write: all owners share the file.
    appendFileSync(file, claims.map(({ job }) => `${job.uuid}\n`).join(''))
    await Promise.all(claims.map((claim) => claim.consume().catch(() => undefined)))
  }
} catch (error) {
  if (!stop.signal.aborted) console.log(`failed ${String(error).replaceAll('\n', ' ')}`)
} finally {
  await board.close()
}
