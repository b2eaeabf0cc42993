/**
 * An owner of jobs, in a process of its own. It writes down when the work of each begins. Jobs with the detail `fails` go to the trash, until
 * there is a file of the name FILE.mended.
 */
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Claim, openBoard } from 'jobboard'

const [uri = '', file = '', slots = '1', workMs = '0'] = process.argv.slice(2)

const board = await openBoard(uri)
const stop = new AbortController()
process.once('SIGTERM', () => stop.abort())
async function run(claim: Claim): Promise<void> {
  if (Number(workMs) > 0) await sleep(Math.random() * Number(workMs))
  const fails = claim.job.details['fails'] === true && !existsSync(`${file}.mended`)
  await (fails ? claim.trash({ reason: 'it fails' }) : claim.consume())
}

console.log('ready')
try {
  while (!stop.signal.aborted) {
    const claims = await board.claimNext({ max: Number(slots), signal: stop.signal })
    // One write: all owners share the file.
    appendFileSync(file, claims.map(({ job }) => `${job.uuid} ${job.name}\n`).join(''))
    await Promise.all(claims.map((claim) => run(claim).catch(() => undefined)))
  }
} catch (error) {
  if (!stop.signal.aborted) console.log(`failed ${String(error).replaceAll('\n', ' ')}`)
} finally {
  await board.close()
}
