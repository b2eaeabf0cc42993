/** Flows for conductors in processes of their own. Plain JavaScript: children import it without a loader. */
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { input, linear, task } from 'jobboard'

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

const attempt = task('attempt', {
  requires: ['file', 'how', 'gate'],
  isolate: { grace: '100ms' },
  execute: async ({ file, how, gate }) => {
    const note = (line) => appendFileSync(file, `${line}\n`)
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
    const begun = lines.filter((line) => line.startsWith('begin')).map((line) => Number(line.split(' ')[1]))
    for (const pid of begun) if (isAlive(pid)) note(`overlap ${pid}`)
    if (begun.length === 0 && how === 'grandchild') {
      const { pid } = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' })
      note(`grandchild ${pid}`)
    }
    note(`begin ${process.pid}`)
    if (begun.length === 0 && how !== 'wait') while (true) Math.random()
    while (how === 'wait' && !existsSync(gate)) await sleep(20)
    note(`end ${process.pid}`)
  },
})
/** The first attempt computes for ever, unless it waits for its gate; the second ends, and notes whether the first lives. */
export const attempting = linear('attempting', input(), attempt)

const visit = task('visit', { requires: ['n'], isolate: true, execute: async ({ n }) => n })
export const visiting = linear('visiting', input(), visit)
