/**
 * A process with a conductor: `conductor-child.ts BOARD PERSISTENCE LEDGER NAME`. It says `ready` once it claims, and tells
 * the ledger of what must never be.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { daemonLog } from '../../../src/core/log.ts'
import { input, linear, runConductor, task } from '../../../src/index.ts'
import type { Answer } from './ledger.ts'

const [board = '', persistence = '', ledger = '', name = ''] = process.argv.slice(2)

interface Work {
  readonly n: number
  readonly exclusive: readonly string[]
  readonly shared: readonly string[]
}

async function tell(what: 'enter' | 'leave' | 'wrong', told: unknown): Promise<Answer> {
  const response = await fetch(`${ledger}/${what}`, { method: 'POST', body: JSON.stringify(told) })
  return (await response.json()) as Answer
}

/** Jobs whose stay was ended by somebody with a larger fence: this process must have lost them. */
const fenced = new Set<string>()

const visit = task('visit', {
  requires: ['n', 'exclusive', 'shared'],
  provides: 'receipt',
  execute: async (work: Work, { fence, run, job }) => {
    const stay = { ...work, run, fence: String(fence) }
    const entered = await tell('enter', stay)
    if (entered === 'done before') return 'done before'
    if (entered === 'entered') {
      await pause(Math.random() * 5)
      if ((await tell('leave', stay)) === 'left') return 'left'
    }
    fenced.add(job?.uuid ?? '')
    throw new Error('fenced')
  },
})
const file = task('file', { requires: ['receipt'], execute: ({ receipt }: { receipt: string }) => receipt.length })

await runConductor({
  board,
  persistence,
  name,
  flows: [linear('visit', input<Work>(), visit, file)],
  concurrency: 8,
  drainTimeout: '10s',
  log: daemonLog({ level: 'error' }),
  started: (conductor) => {
    conductor.on('settled', ({ job, settled, run }) => {
      const lost = settled === 'lost' || settled === 'unknown'
      if (fenced.delete(job.uuid) && !lost)
        void tell('wrong', `run ${run} of ${job} was fenced, and ${settled} by ${name} all the same`)
    })
    process.stdout.write('ready\n')
  },
})
