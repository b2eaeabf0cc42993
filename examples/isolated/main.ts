/** Tasks in child processes: they use all processors, and a crash is the failure of one job. */
import { openBoard, openPersistence, startConductor, track } from 'jobboard'
import { hashing, pictures, runaway } from './flows.ts'

await using board = await openBoard('memory:')
await using persistence = await openPersistence('memory:')
await using _conductor = await startConductor({
  board,
  persistence,
  flows: [hashing, pictures, runaway],
  concurrency: 4,
  pool: { module: new URL('./flows.ts', import.meta.url), max: 2 },
})

const hashes = await board.post(hashing, { passwords: ['correct horse', 'battery staple'] })
const poison = await board.post(pictures, { picture: 'poison.png' }, { maxAttempts: 1 })
const neighbour = await board.post(pictures, { picture: 'cat.png' })
const forever = await board.post(runaway, {}, { maxAttempts: 1 })

const shown = { hashes, poison, neighbour, forever }
for (const [name, job] of Object.entries(shown)) console.log(name.padEnd(9), await job.wait())

const done = await track(hashes.uuid, { board, persistence })
if (done.status === 'done') console.log(done.results['hashes'])
for await (const { details, failure } of board.trashed())
  console.log(`${details.flow}: ${failure?.code ?? failure?.name}`)
