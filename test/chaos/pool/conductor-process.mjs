/**
 * A process with a conductor and its pool: `conductor-process.mjs BOARD FOLDER NAME MODULE`. It says `ready` once it claims, and notes
 * its children and the end of each run in files of the folder.
 */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { runConductor } from 'jobboard'
import { pino } from 'pino'
import { startOf, visiting } from './flows.mjs'

const [board = '', folder = '', name = '', module = ''] = process.argv.slice(2)

await runConductor({
  ...{ board, name, persistence: `directory:${join(folder, 'logbooks')}`, flows: [visiting], concurrency: 6 },
  pool: { module, min: 1, max: 2, memory: '250MB', maxTasks: 400 },
  drainTimeout: '20s',
  log: pino(
    { level: 'warn', base: { name } },
    pino.destination({ dest: join(folder, 'log'), append: true, sync: true }),
  ),
  started: (conductor) => {
    conductor.on('childStarted', ({ pid }) =>
      appendFileSync(join(folder, 'children'), `child ${pid} 0 ${startOf(pid)}\n`),
    )
    conductor.on('settled', ({ job, settled, run, failure }) => {
      // A job that has failed is given back, too: its failure shows that it was charged.
      const word = failure ? 'charged' : settled
      const why = (failure?.message ?? '').replaceAll('\n', ' ')
      appendFileSync(join(folder, 'settled'), `${job.name} ${word} ${run} ${why}\n`)
    })
    process.stdout.write('ready\n')
  },
})
