/**
 * A process that claims and consumes whatever is on a board: `consumer-child.ts URI LOG works|holds`. One that holds says
 * `holding` with its first claims, and does nothing about them until they are lost.
 *
 * It writes down what it does, each line at the end of a file that all share: `start JOB RUN PID` before it consumes, `done
 * JOB RUN PID` after, `lost JOB RUN PID` where it learns that it owns the job no more, `unknown JOB RUN PID` where its session has ended before the
 * answer: on a machine that is too busy, sessions end without a fault.
 */
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { type Claim, openBoard } from '../../../src/board/index.ts'
import { ClaimLost, NotConnected, OutcomeUnknown } from '../../../src/core/errors.ts'

const [uri = '', log = '', way = ''] = process.argv.slice(2)
const WIDTH = 64

const say = (what: string) => process.stdout.write(`${what}\n`)
const note = (what: string, { job, run }: Claim) => appendFileSync(log, `${what} ${job.uuid} ${run} ${process.pid}\n`)

async function consume(claim: Claim): Promise<void> {
  while (true) {
    try {
      await claim.consume()
      return note('done', claim)
    } catch (error) {
      if (error instanceof ClaimLost) return note('lost', claim)
      if (error instanceof OutcomeUnknown) return note('unknown', claim)
      if (!(error instanceof NotConnected)) throw error
    }
  }
}

const stop = new AbortController()
process.on('SIGTERM', () => stop.abort())
await using board = await openBoard(uri)
say('ready')
for (let holds = way === 'holds'; !stop.signal.aborted; holds = false) {
  const claims = await board.claimNext({ max: WIDTH, signal: stop.signal }).catch((error) => {
    if (!stop.signal.aborted) throw error
    return []
  })
  // A claim that is granted late may be lost by then, and its job be done.
  for (const claim of claims) note(claim.lost.aborted ? 'lost' : 'start', claim)
  if (holds) {
    say('holding')
    await Promise.all(claims.map(({ lost }) => lost.aborted || once(lost, 'abort')))
  }
  await Promise.all(claims.map(consume))
  if (holds) say('learned')
}
