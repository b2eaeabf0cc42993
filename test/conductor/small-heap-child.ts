/** A conductor in a process with a small heap: says which of its jobs it has run, and at the end how much memory it took. */
import { input, linear, startConductor, task } from '../../src/index.ts'

const [uri = ''] = process.argv.slice(2)
const say = task('say', { requires: ['n'] as const, execute: ({ n }: { n: number }) => console.log(`ran ${n}`) })
const conductor = await startConductor({
  ...{ board: uri, persistence: 'memory:', flows: [linear('own', input<{ n: number }>(), say)], concurrency: 2 },
})
conductor.on('error', ({ error }) => console.log(`error ${error.message}`))
console.log('started')
process.once('SIGTERM', async () => {
  console.log(`peak ${Math.round(process.resourceUsage().maxRSS / 1_024)} MB`)
  await conductor.stop()
})
