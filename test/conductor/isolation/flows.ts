/** Flows whose tasks run in child processes, and the services of these. Children import this module, too. */
import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Context,
  type Duration,
  input,
  linear,
  TooManyRequests,
  task,
  times,
  unordered,
} from '../../../src/index.ts'

type Services = { readonly greeting: string; readonly pid: number }

export const services = () => ({
  greeting: 'Hello',
  pid: process.pid,
  [Symbol.dispose]: () => console.log('services disposed'),
})

const note = (file: string, line: string) => appendFileSync(file, `${line}\n`)

function spin(): never {
  while (true) Math.random()
}

const greet = task('greet', {
  requires: ['name'],
  provides: 'greeted',
  isolate: true,
  execute: async ({ name }: { name: string }, ctx: Context<Services>) => {
    ctx.log.info({ name }, 'greeting')
    console.log(`printing ${name}`)
    ctx.progress(0.5)
    const { run, fence, job } = ctx
    return { text: `${ctx.services.greeting}, ${name}!`, pid: process.pid, run, fence: fence > 0n, job: job?.name }
  },
})

/** Runs in the process of the engine. */
const here = task('here', {
  requires: ['greeted'],
  provides: 'pids',
  execute: async ({ greeted }: { greeted: { pid: number } }) => [greeted.pid, process.pid],
})

export const greeting = linear('greeting', input<{ name: string }>(), greet, here)

const hang = (name: string, deadline?: Duration) =>
  task(name, {
    requires: ['file'],
    ...(deadline === undefined ? {} : { deadline }),
    execute: async ({ file }: { file: string }) => {
      note(file, `${process.pid}`)
      spin()
    },
    revert: async ({ file }: { file: string }) => note(file, `reverted ${process.pid}`),
  })

/** Every task in it is isolated, because the flow is. */
export const spinning = linear(
  { name: 'spinning', isolate: { grace: '100ms' } },
  input<{ file: string }>(),
  hang('spin'),
)
export const late = linear(
  { name: 'late', isolate: { grace: '100ms' } },
  input<{ file: string }>(),
  hang('spin late', '500ms'),
)

const crashOnce = task('crash once', {
  requires: ['file'],
  provides: 'done',
  execute: async ({ file }: { file: string }) => {
    note(file, 'attempt')
    if (readFileSync(file, 'utf8').trim().split('\n').length < 3) process.abort()
    return true
  },
})

export const retried = linear({ name: 'retried', isolate: true, retry: times(5) }, input<{ file: string }>(), crashOnce)

const fail = task('fail', {
  isolate: true,
  execute: async () => {
    throw Object.assign(new RangeError('out of range', { cause: new Error('deep') }), { code: 'E_RANGE' })
  },
})
const undo = task('undo', {
  provides: 'undone',
  requires: ['file'],
  isolate: { fresh: true },
  execute: async (_: { file: string }) => ({ made: 'this' }),
  revert: async ({ file }: { file: string }, { result, failures }) =>
    note(file, JSON.stringify({ result, failures: failures.map(({ name, message, code }) => [name, message, code]) })),
})
export const failing = linear('failing', input<{ file: string }>(), undo, fail)

const big = task('big', {
  provides: 'bytes',
  isolate: true,
  execute: async () => new Uint8Array(20_000_000),
})
export const tooBig = linear('too big', input(), big)

const odd = task('odd', { provides: 'odd', isolate: true, execute: async () => ({ deep: [{ inside: () => 1 }] }) })
export const unclonable = linear('unclonable', input(), odd)

/** Waits until tasks of two children run. */
const meet = (n: number) =>
  task(`meet ${n}`, {
    requires: ['file'],
    provides: `pid ${n}`,
    execute: async ({ file }: { file: string }) => {
      note(file, `${process.pid}`)
      while (new Set(readFileSync(file, 'utf8').trim().split('\n')).size < 2) await sleep(20)
      return process.pid
    },
  })
export const wide = unordered(
  { name: 'wide', isolate: true },
  input<{ file: string }>(),
  ...([meet(1), meet(2), meet(3), meet(4)] as const),
)

const crash = task('crash', {
  isolate: true,
  execute: async () => {
    console.error('the last words')
    process.exit(7)
  },
})
export const crashing = linear('crashing', input(), crash)

export const idle = linear('idle', input(), task('do nothing', { isolate: true, execute: () => undefined }))

const callApi = task('call api', {
  isolate: true,
  requires: ['file'],
  execute: async ({ file }: { file: string }) => {
    note(file, 'call')
    if (readFileSync(file, 'utf8').trim().split('\n').length < 2)
      throw new TooManyRequests({ key: 'child/api', retryAfter: '100ms' })
  },
})
export const refusedOnce = linear('refused once', input<{ file: string }>(), callApi)
