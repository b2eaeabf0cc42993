/** An import whose process is killed in the middle. The next run goes on where the last checkpoint says that it was. */
import { openBoard, openPersistence, startConductor, waitForJob } from 'jobboard'
import { imports } from './flows.ts'

await using board = await openBoard('memory:')
await using persistence = await openPersistence('memory:')
await using conductor = await startConductor({
  board,
  persistence,
  flows: [imports],
  pool: { module: new URL('./flows.ts', import.meta.url) },
})
conductor.on('progress', ({ progress, message }) => console.log(`${Math.round(progress * 100)}%  ${message}`))
conductor.on('childDied', ({ expected, signal }) => {
  if (!expected) console.log(`the process of the task was killed: ${signal}`)
})

const job = await board.post(imports, { rows: 500 }, { maxAttempts: 2, backOff: { first: '10ms' } })
const ended = await waitForJob(job.uuid, { board, persistence })
if (ended.status === 'done') console.log(ended.results['import'])
