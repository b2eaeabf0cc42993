/** Flows whose tasks read the ends of the jobs on which their job depends. Children import this module, too. */
import { input, linear, task } from '../../../src/index.ts'

const read = task('read', {
  provides: 'read',
  execute: async (_args, { dependencies }) => ({ pid: process.pid, ends: await dependencies.read() }),
})

/** Reads them in the process of the conductor. */
export const collecting = linear('collecting', input<Record<never, never>>(), read)

/** Reads them in a child process. */
export const isolatedCollecting = linear(
  { name: 'isolated-collecting', isolate: true },
  input<Record<never, never>>(),
  read,
)

const add = task('add', {
  requires: ['a'],
  provides: 'sum',
  execute: async ({ a }: { a: number }) => a + 1,
})

/** Its results are on the board. */
export const kept = linear({ name: 'kept', keepResults: true }, input<{ a: number }>(), add)

/** Its results are in the logbook. */
export const logged = linear('logged', input<{ a: number }>(), add)

export const failing = linear(
  'failing',
  input<Record<never, never>>(),
  task('fail', {
    execute: async () => {
      throw new Error('no paper')
    },
  }),
)
