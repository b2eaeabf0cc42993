/** Four days, in milliseconds: the program advances the clock of `jobboard/testing`. */
import { workbench } from 'jobboard/testing'
import { cleanUp, everyNight } from './clean-up.ts'

const disk = { files: 3 }
await using bench = await workbench({ flows: [cleanUp({ removeOlderThan: () => disk.files })] })
const { board, clock } = bench
await board.schedules.put(everyNight)
await board.schedules.put(everyNight)
console.log(`${(await board.schedules.list()).length} schedule`)

for (disk.files of [3, 0]) {
  clock.advance('1d')
  await bench.drain()
}
// All services were down for two days: the newest night is caught up, the other is counted.
clock.advance('2d')
await bench.drain()
const { counts } = await board.schedules.show('clean-up')
console.log({ fired: counts?.fired, skipped: counts?.skipped })
