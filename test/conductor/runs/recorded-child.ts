/** A conductor in a process of its own: `recorded-child.ts BOARD LOGBOOKS`. It prints a line when a second step is done, and ends the step when it reads one. */
import { once } from 'node:events'
import { startConductor } from '../../../src/index.ts'
import { twoSteps } from './recorded-flow.ts'

const [board = '', persistence = ''] = process.argv.slice(2)
const flow = twoSteps({
  executed: () => undefined,
  beforeReturn: async () => {
    console.log('done')
    await once(process.stdin, 'data')
  },
})
await startConductor({ board, persistence, flows: [flow] })
