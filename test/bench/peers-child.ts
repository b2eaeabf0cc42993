/** One process of a measurement on a queue that the board is compared with: `peers-child.ts PEER ROLE URI NAME NUMBER…`. */
import { apart, now, whenTold } from './part-child.ts'
import { BATCH, type Payload, PEER_QUEUES, type PeerName, type PeerQueue } from './peer-queues.ts'

type Role = (queue: PeerQueue, uri: string, name: string, numbers: readonly number[]) => Promise<void>

/** The same as the board's, as far as the queues have the same. */
const ROLES: Readonly<Record<string, Role>> = {
  /** Adds so many, in batches. */
  produce: async (queue, uri, name, [count = 0]) => {
    const producer = await queue.produce(uri, name)
    await whenTold(async () => {
      for (let n = 0; n < count; n += BATCH) {
        const size = Math.min(BATCH, count - n)
        await producer.addAll(Array.from({ length: size }, () => ({ n: 1 })))
      }
    })
    await producer.close()
  },

  /** Picks up and completes so many. */
  consume: async (queue, uri, name, [count = 0]) => {
    const consumer = await queue.consume(uri, name, { count, work: () => undefined })
    await whenTold(() => consumer.completed)
    await consumer.close()
  },

  /** Adds one at a time, so many milliseconds apart. */
  postApart: async (queue, uri, name, [count = 0, gap = 0]) => {
    const producer = await queue.produce(uri, name)
    await whenTold(() => apart(count, gap, (n) => producer.add({ n, at: now() })))
    await producer.close()
  },

  /** Says how long each job took from before it was added until it was picked up. */
  consumeOneByOne: async (queue, uri, name, [count = 0]) => {
    const took: number[] = []
    const work = ({ at = Number.NaN }: Payload) => took.push(now() - at)
    const consumer = await queue.consume(uri, name, { count, work })
    await whenTold(async () => {
      await consumer.completed
      return { result: took }
    })
    await consumer.close()
  },
}

const [peer = '', role = '', uri = '', name = '', ...numbers] = process.argv.slice(2)
await ROLES[role]?.(PEER_QUEUES[peer as PeerName], uri, name, numbers.map(Number))
