/** A process with a conductor that knows a flow which kills it: `poison-child.ts BOARD PERSISTENCE`. */
import { daemonLog } from '../../src/core/log.ts'
import { input, linear, runConductor, task } from '../../src/index.ts'

const [board = '', persistence = ''] = process.argv.slice(2)
const kill = task('kill', { execute: () => process.kill(process.pid, 'SIGKILL') })
const fine = task('fine', { execute: () => 'fine' })

await runConductor({
  board,
  persistence,
  flows: [linear('poison', input(), kill), linear('fine', input(), fine)],
  concurrency: 4,
  log: daemonLog({ level: 'silent' }),
})
