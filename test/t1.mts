import { openBoard } from '../src/board/index.ts'
import { startZooKeeper } from './support/zookeeper.ts'

await using server = await startZooKeeper()
const board = await openBoard(`zookeeper://${server.hosts}/b`)
board.on('error', (e) => console.log('ERR', e.error))
console.log('open')
const job = await board.post('x', {})
console.log(String(job), job.created)
const [c] = await board.claimNext()
console.log('claimed')
await c.consume()
console.log(await job.wait())
await board.close()
