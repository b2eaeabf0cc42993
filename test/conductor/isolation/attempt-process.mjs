/**
 * A process with a conductor and a pool: `attempt-process.mjs BOARD PERSISTENCE NAME MODULE POOL`, the last as JSON. It says what happens
 * to its children and to its jobs, one event in a line.
 */
import { runConductor } from 'jobboard'
import { pino } from 'pino'
import { attempting, visiting } from './attempt-flows.mjs'

const [board = '', persistence = '', name = '', module = '', pool = '{}'] = process.argv.slice(2)
const say = (line) => process.stdout.write(`${line}\n`)

await runConductor({
  ...{ board, persistence, name, flows: [attempting, visiting], concurrency: 4, drainTimeout: '20s' },
  log: pino({ level: 'silent' }),
  pool: { module, ...JSON.parse(pool) },
  started: (conductor) => {
    conductor.on('childStarted', ({ pid }) => say(`child started ${pid}`))
    conductor.on('childDied', ({ pid, expected }) => say(`child died ${pid} ${expected}`))
    conductor.on('settled', ({ job, settled, failure }) => say(`settled ${job.name} ${failure ? 'charged' : settled}`))
    say('ready')
  },
  stopping: ({ state }) => say(state),
})
