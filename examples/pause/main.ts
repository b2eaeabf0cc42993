/** Pauses a board: no process claims jobs until it is resumed. Running jobs continue. */
import { openBoard, type Unclaimable } from 'jobboard'

await using board = await openBoard('memory:shop')
await using elsewhere = await openBoard('memory:shop')

await board.post('work', {}, { name: 'before' })
const [running] = await elsewhere.claimNext()

await board.pause({ reason: 'the stock is counted', by: 'ada' })
const job = await board.post('work', {}, { name: 'meanwhile' })
console.log((await board.waitingFor(job))?.text)
await elsewhere.claim(await elsewhere.find(job.uuid)).catch((error: Unclaimable) => console.log(error.code))
console.log(await running.perform(() => console.log('what runs goes on')))

await board.resume()
const [claim] = await elsewhere.claimNext()
console.log(claim.job.name)
