/** Life cycles of jobs (post, claim, consume), beside the same transactions sent by hand. ZooKeeper fsyncs. */
import { openBoard } from '../../src/board/index.ts'
import { op, ZooKeeper } from '../../src/zookeeper/index.ts'
import { startZooKeeper, type ZooKeeperServer } from '../support/zookeeper.ts'
import { printRates, type Rate, rate } from './rates.ts'

const COUNT = 2_000

export default async function board(): Promise<void> {
  await using server = await startZooKeeper({ config: { forceSync: 'yes' } })
  const bare = await byHand(server)
  const zookeeper = await lifeCycles(`zookeeper://${server.hosts}/bench`, { server })
  const memory = await lifeCycles('memory:bench', {})
  printRates(`${COUNT} life cycles (post, claim, consume), one transaction in flight`, [bare, zookeeper, memory])
}

/** What the server and the client can do with the same three transactions, one after the other. */
async function byHand(server: ZooKeeperServer): Promise<Rate> {
  await using client = new ZooKeeper({ hosts: server.hosts })
  await client.connect()
  await client.create('/by-hand')
  const marker = await client.create('/by-hand/marker', null, { ephemeral: true })
  const data = Buffer.alloc(200)
  return await rate('three multis by hand', { count: COUNT, width: 1 }, async () => {
    const mark = op.setData(marker.path, null)
    const {
      results: [posted],
    } = await client.multi([op.create('/by-hand/job', data, { sequential: true }), mark])
    const lock = op.create(`${posted.path}.lock`, data, { ephemeral: true })
    await client.multi([op.setData(posted.path, data, { version: 0 }), lock, mark])
    await client.multi([op.delete(posted.path, { version: 1 }), op.delete(`${posted.path}.lock`), mark])
  })
}

async function lifeCycles(uri: string, options: { server?: ZooKeeperServer }): Promise<Rate> {
  await using producer = await openBoard(uri, { who: 'producer' })
  await using consumer = await openBoard(uri, { who: 'consumer' })
  const before = await transactions(options.server)
  const measured = await rate(
    `board on ${uri.split(':')[0]}, producer and consumer in one process`,
    { count: COUNT, width: 32 },
    async () => {
      await producer.post('flow', { n: 1 })
      const [claim] = await consumer.claimNext()
      await claim.consume()
    },
  )
  const spent = (await transactions(options.server)) - before
  return { ...measured, ...(options.server ? { note: `${(spent / COUNT).toFixed(2)} transactions per job` } : {}) }
}

/** The server's own count. */
async function transactions(server: ZooKeeperServer | undefined): Promise<number> {
  if (!server) return 0
  const zxid = /Zxid: 0x([0-9a-f]+)/.exec(await server.fourLetter('srvr'))?.[1] ?? '0'
  return Number(BigInt(`0x${zxid}`) & 0xffffffffn)
}
