/**
 * One process of `bench -- limits`: `limits-child.ts ROLE NUMBER URI [KEYS [QUEUES]]`. It uses the package as it is published, prints `ready` when it
 * is connected, does its part when it receives a line, and ends with a line of JSON.
 */
import { openBoard } from 'jobboard'
import { now, sideBySide, whenTold } from './part-child.ts'

/** Posted side by side, and claimed at once. */
const WIDTH = 512

const [role = '', number = '', uri = '', keys = '', queueNames = ''] = process.argv.slice(2)
const count = Number(number)
const limits = keys === '' ? {} : { limits: keys.split(',') }
/** The jobs are posted to these queues in turn, and claimed from them by equal weights. */
const queues = queueNames === '' ? [] : queueNames.split(',')
const served = queues.length === 0 ? {} : { queues: Object.fromEntries(queues.map((queue) => [queue, 1])) }
let posts = 0

/** Returns the options of the next post. */
function postOptions() {
  posts += 1
  const queue = queues[posts % queues.length]
  return queue === undefined ? limits : { ...limits, queue }
}

await using board = await openBoard(uri)
if (role === 'produce')
  await whenTold(() => sideBySide(count, WIDTH, () => board.post('flow', { n: 1 }, postOptions())))
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
    const claims = await board.claimNext({ max: Math.min(WIDTH, jobs - settling.length), ...served })
    for (const claim of claims) settling.push(claim.consume())
  }
  await Promise.all(settling)
}
