/** A conductor in a process of its own: `checkpoint-child.ts BOARD LOGBOOKS`. */
import { startConductor } from '../../src/index.ts'
import { importing } from './checkpoint-flow.ts'

const [board = '', persistence = ''] = process.argv.slice(2)
await startConductor({ board, persistence, flows: [importing] })
