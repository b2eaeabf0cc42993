/** A process that fires schedules until it is killed: `firing-process.ts BOARD NAME SHIFT`, with a clock that is wrong by SHIFT ms. */
import { input, linear, startConductor, task } from '../../../src/index.ts'

const [board = '', name = '', shift = '0'] = process.argv.slice(2)
const rightNow = Date.now
Date.now = () => rightNow() + Number(shift)

// It has another flow than the schedules: it posts their jobs, and runs none.
const other = linear('other', input(), task('nothing', { execute: () => undefined }))
const conductor = await startConductor({ board, name, persistence: 'memory:', flows: [other] })
conductor.on('error', ({ error }) => console.log(`error ${error.message}`))
console.log('ready')
