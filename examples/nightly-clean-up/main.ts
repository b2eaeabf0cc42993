/** Three services and three nights, in milliseconds: the program advances the clock of `jobboard/testing`. */
import { workbench } from 'jobboard/testing'
import { cleanUp, everyNight } from './clean-up.ts'

const night = { files: 3 }
const flow = cleanUp({ removeOlderThan: () => night.files })

await using bench = await workbench({ flows: [flow] })
const { board, clock } = bench
const now = () => clock.now()
const services = await Promise.all([1, 2, 3].map(() => everyNight(board, { now })))
console.log(`${await board.countJobs()} job`)

for (night.files of [3, 0, 5]) {
  console.log(`${(await bench.drain()).length} done by day`)
  clock.advance('1d')
  const [run] = await bench.drain()
  console.log(`${run?.settled}; ${await board.countJobs()} job for the next night`)
}
for (const stop of services) stop()
