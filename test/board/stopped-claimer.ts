/** A process that holds a claim and says what becomes of it, for the test that stops it. */
import { openBoard } from '../../src/board/index.ts'
import { JobboardError } from '../../src/core/errors.ts'

const [uri = ''] = process.argv.slice(2)
const say = (line: string) => process.stdout.write(`${line}\n`)

await using board = await openBoard(uri, { who: 'stopped' })
await board.registerEntity({ kind: 'conductor', name: 'stopped', metadata: {} })
const [claim] = await board.claimNext()
let lost = false
claim.lost.addEventListener('abort', () => {
  lost = true
  say('lost')
})
say('claimed')
while (!lost) {
  try {
    claim.assertHeld()
    say('held')
  } catch (error) {
    say(`asked: ${error instanceof JobboardError ? error.code : error}`)
  }
  await new Promise((resolve) => setTimeout(resolve, 5))
}
await claim.consume().catch((error: unknown) => say(`consume: ${error instanceof JobboardError ? error.code : error}`))
for await (const next of board.claims()) {
  say(`claimed ${next.job.name}, run ${next.run}`)
  await next.consume()
  say('consumed')
}
