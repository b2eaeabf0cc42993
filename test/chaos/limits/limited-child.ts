/** An owner of limited jobs, in a process of its own. It writes down when the work of each begins and ends. */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Claim, openBoard } from 'jobboard'

const [uri = '', file = ''] = process.argv.slice(2)

// One short line is appended as a whole: all owners share the file.
const note = (what: string, uuid: string, keys: string) =>
  appendFileSync(file, `${what} ${Date.now()} ${process.pid} ${uuid} ${keys}\n`)

function isHeld(claim: Claim): boolean {
  try {
    claim.assertHeld()
    return true
  } catch {
    return false
  }
}

const board = await openBoard(uri)
const stop = new AbortController()
process.once('SIGTERM', () => stop.abort())
console.log('ready')
try {
  while (!stop.signal.aborted) {
    const claims = await board.claimNext({ max: 3, signal: stop.signal })
    await Promise.all(
      claims.map(async (claim) => {
        const keys = String(claim.job.details['keys'])
        // This process may have been stopped since the claim.
        if (!isHeld(claim)) return
        note('begin', claim.job.uuid, keys)
        await sleep(5 + Math.random() * 30)
        // A lost claim is another owner's: its work ended when this owner could know.
        note('end', claim.job.uuid, keys)
        await claim.consume().catch(() => undefined)
      }),
    )
  }
} catch (error) {
  if (!stop.signal.aborted) console.log(`failed ${String(error).replaceAll('\n', ' ')}`)
} finally {
  await board.close()
}
