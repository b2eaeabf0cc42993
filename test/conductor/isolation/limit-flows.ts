/** Flows whose tasks take tokens of limits, in child processes. Children import this module, too. */
import { appendFileSync } from 'node:fs'
import { describeError, InvalidArgument, input, linear, task } from '../../../src/index.ts'

export const calling = linear(
  { name: 'calling', isolate: true },
  input<{ calls: number }>(),
  task('call', {
    requires: ['calls'],
    provides: 'called',
    execute: async ({ calls }: { calls: number }, { limits }) => {
      await Promise.all(Array.from({ length: calls }, () => limits.take('api')))
      const refused = await limits.take('', {}).catch((error: unknown) => error)
      return { pid: process.pid, isKnown: refused instanceof InvalidArgument, text: describeError(refused) }
    },
  }),
)

/** Its task waits for a token, after a line with its process id. */
export const waiting = linear(
  { name: 'waiting', isolate: { grace: '10s' } },
  input<{ file: string }>(),
  task('wait', {
    requires: ['file'],
    execute: async ({ file }: { file: string }, { limits, signal }) => {
      appendFileSync(file, `${process.pid}\n`)
      try {
        await limits.take('api')
      } catch (error) {
        appendFileSync(file, `ended ${error === signal.reason || describeError(error)}\n`)
        throw error
      }
    },
  }),
)
