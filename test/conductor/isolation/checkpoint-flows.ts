/** Flows whose tasks save checkpoints in child processes. Children import this module, too. */
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Context,
  describeError,
  InvalidArgument,
  input,
  linear,
  PayloadTooLarge,
  task,
} from '../../../src/index.ts'

interface Input {
  readonly file: string
  readonly how: string
}

const note = (file: string, line: unknown) => appendFileSync(file, `${JSON.stringify(line)}\n`)

const importing = task('import', {
  requires: ['file', 'how'],
  execute: async ({ file, how }: Input, ctx) => {
    note(file, { run: ctx.run, last: ctx.checkpoint.last })
    if (ctx.checkpoint.last === undefined) await FIRST[how]?.(ctx, file)
  },
})

const importingWithRevert = task('import', {
  requires: ['file'],
  execute: async (_args: { file: string }, { checkpoint }) => {
    await checkpoint.save({ row: 7 })
    throw new Error('no answer')
  },
  revert: async ({ file }, { checkpoint }) => note(file, { reverting: checkpoint.last }),
})

/** What the first run does, by the setup. */
const FIRST: Readonly<Record<string, (ctx: Context, file: string) => Promise<unknown>>> = {
  'its child is killed': async ({ checkpoint, progress }) => {
    progress(0.25, 'page 1 of 4')
    // The first goes at once, the newest of the others after it.
    await Promise.all(Array.from({ length: 10 }, (_, row) => checkpoint.save({ row, at: new Date(7) })))
    process.kill(process.pid, 'SIGKILL')
    await sleep(60_000)
  },
  'it is stopped': async ({ checkpoint, signal }, file) => {
    note(file, 'waits')
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    await checkpoint.save({ row: 9, at: new Date(7) })
    throw signal.reason
  },
  'another run has acquired the flow': async ({ checkpoint }, file) => {
    await checkpoint.save('mine')
    note(file, 'waits')
    while (!existsSync(`${file}.go`)) await sleep(10)
    await checkpoint.save('too late').catch(() => undefined)
    await sleep(60_000)
  },
  'its values are refused': async ({ checkpoint }, file) => {
    for (const value of [() => 1, 'x'.repeat(70_000)]) {
      const error = await checkpoint.save(value).catch((reason: unknown) => reason)
      note(file, [error instanceof InvalidArgument, error instanceof PayloadTooLarge, describeError(error)])
    }
  },
}

export const stopping = linear({ name: 'stopping', isolate: { grace: '10s' } }, input<Input>(), importing)
export const reverting = linear({ name: 'reverting', isolate: true }, input<{ file: string }>(), importingWithRevert)
