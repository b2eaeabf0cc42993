/**
 * The flow of the chaos of pools. Each attempt notes in the file of its job when it begins and ends, in which process, and whether an
 * attempt that has not ended still lives, which must never be. Plain JavaScript: children import it without a loader.
 */
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { input, linear, task } from 'jobboard'

/** What the first attempt of a poisoned job does, after it has noted it. */
const POISONS = {
  exit: () => process.exit(0),
  abort: () => process.abort(),
  heap: () => {
    const lists = []
    while (true) lists.push(new Array(100_000).fill({}).map((_, n) => ({ n })))
  },
  /** Dies, and leaves a process that it has started. */
  grandchild: (note) => {
    const { pid } = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' })
    note('grandchild', pid)
    process.kill(process.pid, 'SIGKILL')
  },
}

const visit = task('visit', {
  requires: ['n', 'folder', 'poison', 'longestMs'],
  provides: 'receipt',
  isolate: { grace: '200ms' },
  execute: async ({ n, folder, poison, longestMs }, { run }) => {
    const file = join(folder, 'jobs', String(n))
    const note = (word, pid = process.pid) => appendFileSync(file, `${word} ${pid} ${run} ${startOf(pid)}\n`)
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
    const living = lines.filter((line) => line.startsWith('begin') && isUnderWay(line, lines))
    note('begin')
    if (living.length > 0) appendFileSync(join(folder, 'wrong'), `job ${n}: ${living} lives, and run ${run} begins\n`)
    if (lines.some((line) => line.startsWith('end'))) {
      note('again')
      return 'done before'
    }
    if (poison && !lines.some((line) => line.startsWith('poison'))) {
      note('poison')
      POISONS[poison](note)
    }
    if (n % 3 === 0) computeUntil(performance.now() + 5)
    await pause(Math.random() * longestMs)
    note('end')
    return 'done'
  },
})

export const visiting = linear('visiting', input(), visit)

function computeUntil(end) {
  while (performance.now() < end) Math.random()
}

/** Whether the attempt of this line has not ended, and its process, and no other with the same number, lives. */
function isUnderWay(line, lines) {
  const [, pid, run, start] = line.split(' ')
  const hasEnded = lines.some((other) => /^(end|again)/.test(other) && other.endsWith(`${pid} ${run} ${start}`))
  // A child whose task has failed may live on, and is no attempt any more: here none fails and lives.
  return !hasEnded && Number(pid) !== process.pid && startOf(pid) === start
}

/** Returns when a process was started, in ticks of the system: the id of a process is used again. */
export function startOf(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? 'dead' : fields[19]
  } catch {
    return 'dead'
  }
}
