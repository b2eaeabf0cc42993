/** Flows whose attempts note what they do in a file. Children import this module, too. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { input, linear, task } from '../../../src/index.ts'
import { isAlive } from '../../support/pids.ts'

/** Makes children wait at their start for as long as this file exists. */
export const services = async () => {
  const block = process.env['JOBBOARD_TEST_BLOCK']
  while (block !== undefined && existsSync(block)) await sleep(20)
  return {}
}

const note = (file: string, line: string | number) => appendFileSync(file, `${line}\n`)
const linesOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])

const hold = task('hold', {
  requires: ['file', 'gate'],
  isolate: true,
  execute: async ({ file, gate }: { file: string; gate: string }) => {
    note(file, process.pid)
    while (!existsSync(gate)) await sleep(20)
  },
})
/** Notes the child's process id, and waits until the gate is there. */
export const holding = linear('holding', input<{ file: string; gate: string }>(), hold)

interface AttemptInput {
  readonly file: string
  readonly how: string
}

const attempt = task('attempt', {
  requires: ['file', 'how'],
  isolate: { grace: '100ms' },
  execute: async ({ file, how }: AttemptInput) => {
    const begun = linesOf(file).flatMap((line) => (line.startsWith('begin') ? [Number(line.split(' ')[1])] : []))
    for (const pid of begun) if (isAlive(pid)) note(file, `overlap ${pid}`)
    note(file, `begin ${process.pid}`)
    if (begun.length === 0 && how === 'computes') while (true) Math.random()
    if (begun.length === 0 && how === 'ignores its signal') await sleep(600_000)
    note(file, `end ${process.pid}`)
  },
})
/** The first attempt never ends by itself; the second does, and notes whether the first one lives. */
export const attempting = linear('attempting', input<AttemptInput>(), attempt)

const visit = task('visit', {
  requires: ['file', 'n'],
  isolate: true,
  execute: async ({ file, n }: { file: string; n: number }) => {
    note(file, `begin ${n} ${process.pid}`)
    await sleep(10)
    note(file, `end ${n} ${process.pid}`)
  },
})
export const visiting = linear('visiting', input<{ file: string; n: number }>(), visit)

interface Turn {
  readonly file: string
  readonly own: string
  readonly other: string
}

const first = task('first', {
  requires: ['file', 'own'],
  isolate: true,
  execute: async ({ file, own }: Omit<Turn, 'other'>) => note(file, `first ${own}`),
})
/** Waits, in the process of the conductor, for what another job does in a child. */
const meet = task('meet', {
  requires: ['file', 'other'],
  execute: async ({ file, other }: Omit<Turn, 'own'>) => {
    while (!linesOf(file).includes(`first ${other}`)) await sleep(20)
  },
})
const last = task('last', {
  requires: ['file', 'own'],
  isolate: true,
  execute: async ({ file, own }: Omit<Turn, 'other'>) => note(file, `last ${own}`),
})
/** Needs a child before and after another job has had one. */
export const meeting = linear('meeting', input<Turn>(), first, meet, last)
