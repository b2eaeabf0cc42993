/**
 * One process of `bench -- limits`: `limits-child.ts ROLE NUMBER URI [KEYS]`. It uses the package as it is published, prints `ready` when it
 * is connected, does its part when it receives a line, and ends with a line of JSON.
 */
import { openBoard } from 'jobboard'
import { now, sideBySide, whenTold } from './part-child.ts'

/** Posted side by side, and claimed at once. */
const WIDTH = 512

const [role = '', number = '', uri = '', keys = ''] = process.argv.slice(2)
const count = Number(number)
const limits = keys === '' ? {} : { limits: keys.split(',') }

await using board = await openBoard(uri)
if (role === 'produce') await whenTold(() => sideBySide(count, WIDTH, () => board.post('flow', { n: 1 }, limits)))
if (role === 'consume') {
  // A worker that is running for some time has read the board, however many jobs wait on it.
  await consume(1)
  await whenTold(() => consume(count))
}
/** Works in the way of a conductor with so many slots, until no job has come for five seconds. Answers with the times of its claims. */
if (role === 'race')
  await whenTold(async () => {
    const stop = new AbortController()
    let timer: NodeJS.Timeout | undefined
    const times: number[] = []
    const idle = () => {
      clearTimeout(timer)
      timer = setTimeout(() => stop.abort(), 5_000)
    }
    const slot = async () => {
      for await (const claim of board.claims({ signal: stop.signal })) {
        idle()
        times.push(now())
        await claim.consume()
      }
    }
    idle()
    await Promise.all(Array.from({ length: count }, slot))
    return times
  })

async function consume(jobs: number): Promise<void> {
  const settling: Promise<void>[] = []
  while (settling.length < jobs) {
    const claims = await board.claimNext({ max: Math.min(WIDTH, jobs - settling.length) })
    for (const claim of claims) settling.push(claim.consume())
  }
  await Promise.all(settling)
}
