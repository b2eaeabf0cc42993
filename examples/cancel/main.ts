/** Cancels a job while it runs: the signal of its task fires, finished tasks are reverted, and the job is trashed. */
import { EventEmitter, once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { input, linear, openBoard, startConductor, task } from 'jobboard'

const parcel = new EventEmitter()

const order = task('order', {
  execute: () => console.log('ordered'),
  revert: () => console.log('order withdrawn'),
})
const arrive = task('arrive', {
  execute: async (_args, { signal }) => {
    console.log('waiting for the parcel')
    parcel.emit('awaited')
    // A day, unless the job is cancelled.
    await wait(86_400_000, undefined, { signal })
  },
})
const buy = linear('buy', input(), order, arrive)

await using board = await openBoard('memory:', { who: 'Ada' })
await using _conductor = await startConductor({ board, persistence: 'memory:', flows: [buy] })
const awaited = once(parcel, 'awaited')
const job = await board.post(buy, {})
await awaited
await board.cancel(job, { reason: 'found it in the attic' })
console.log(await job.wait())
for await (const { reason } of board.trashed()) console.log(reason.slice(reason.indexOf('cancelled')))
