/** Asks and is told a great deal, and says what that left behind on the heap. */
import { op, type WatchEvent, ZooKeeper } from '../../../src/zookeeper/index.ts'

const [hosts = '', path = '', operations = '0', events = '0'] = process.argv.slice(2)
const AT_ONCE = 200
const DATA = Buffer.alloc(100, 'x')

const client = new ZooKeeper({ hosts })
await client.connect()
await client.mkdirp(path)

/** Five operations each: one of every kind. */
async function work(rounds: number): Promise<void> {
  for (let done = 0; done < rounds; done += AT_ONCE) {
    const round = async (_: unknown, at: number) => {
      const one = `${path}/work-${at}`
      await Promise.all([
        client.create(one, DATA),
        client.getData(one),
        client.setData(one, DATA),
        client.exists(one),
        client.multi([op.check(one), op.delete(one)]),
      ])
    }
    await Promise.all(Array.from({ length: AT_ONCE }, round))
  }
}

/** Each child is made and deleted: two events. */
async function watched(count: number): Promise<void> {
  let left = count
  let all: () => void = () => undefined
  const told = new Promise<void>((resolve) => {
    all = resolve
  })
  const handler = {
    gap: () => undefined,
    events: (batch: readonly WatchEvent[]) => {
      left -= batch.length
      if (left <= 0) all()
    },
  }
  const watch = await client.watch(`${path}/watched`, { mode: 'recursive' }, handler)
  await client.create(`${path}/watched`)
  for (let done = 1; done < count; done += 2) {
    const child = `${path}/watched/${done}`
    await client.multi([op.create(child, null), op.delete(child)])
  }
  await client.delete(`${path}/watched`)
  await told
  await watch.remove()
}

/** The smallest of three: what is not garbage yet, or not seen to be, comes and goes. */
async function heap(): Promise<number> {
  const readings: number[] = []
  for (let reading = 0; reading < 3; reading++) {
    await new Promise((resolve) => setImmediate(resolve))
    globalThis.gc?.()
    readings.push(process.memoryUsage().heapUsed)
  }
  return Math.min(...readings)
}

if (!globalThis.gc) throw new Error('run me with --expose-gc')
await work(2_000)
await watched(500)
const before = await heap()
await work(Number(operations) / 5)
await watched(Number(events))
const after = await heap()
await client.deleteRecursive(path)
await client.close()
process.stdout.write(`grown by ${after - before}\n`)
