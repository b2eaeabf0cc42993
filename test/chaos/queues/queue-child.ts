/** An owner that serves some queues, in a process of its own: `queue-child.ts URI LOG QUEUES`. It writes down when the work of each job begins and ends. */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Claim, openBoard } from '../../../src/board/index.ts'
import { retry } from '../../../src/core/async/retry.ts'
import { NotConnected } from '../../../src/core/errors.ts'

const [uri = '', file = '', served = '[]'] = process.argv.slice(2)
const queues = Object.freeze(JSON.parse(served))
const stop = new AbortController()
/** A process that had no processor for some time has lost its connection: it connects again. */
const LOST_CONNECTION = {
  ...{ firstPauseMs: 50, maxPauseMs: 500 },
  isRetryable: (error: unknown) => error instanceof NotConnected && !stop.signal.aborted,
}

// One short line is appended as a whole: all owners share the file.
const note = (what: string, { job }: Claim) =>
  appendFileSync(file, `${what} ${Date.now()} ${process.pid} ${job.uuid} ${job.queue} ${job.details['keys']}\n`)

function isHeld(claim: Claim): boolean {
  try {
    claim.assertHeld()
    return true
  } catch {
    return false
  }
}

async function work(claim: Claim): Promise<void> {
  if (!isHeld(claim)) return
  note('begin', claim)
  await sleep(5 + Math.random() * 20)
  note('end', claim)
  await claim.consume().catch(() => undefined)
}

await using board = await openBoard(uri, { who: `owner ${process.pid}` })
process.once('SIGTERM', () => stop.abort())
console.log('ready')
try {
  while (!stop.signal.aborted)
    await Promise.all(
      (await retry(() => board.claimNext({ queues, max: 2, signal: stop.signal }), LOST_CONNECTION)).map(work),
    )
} catch (error) {
  if (!stop.signal.aborted) console.log(`failed ${String(error).replaceAll('\n', ' ')}`)
}
