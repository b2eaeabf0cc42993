/** Flows whose tasks use more memory than children may have. Children import this module, too. */
import { type IsolateOptions, input, linear, type OnOutOfMemory, task, times } from '../../../src/index.ts'

const RESULT_MB = 300

/** Holds 300 MB for a moment. */
const hungry = (onOutOfMemory: OnOutOfMemory) => {
  const isolate: IsolateOptions = { onOutOfMemory }
  const load = task(`load, then ${JSON.stringify(onOutOfMemory)}`, {
    provides: 'megabytes',
    isolate,
    execute: async (_args, { signal }) => {
      const held: Buffer[] = []
      while (held.length < RESULT_MB) held.push(Buffer.alloc(1_024 ** 2, 1))
      // Its memory is looked at each second: a task that gets so far on a small conductor waits for its end.
      if (process.execArgv.some((option) => option.startsWith('--max-old-space-size')))
        await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      return held.length
    },
  })
  return linear(
    { name: load.name, retry: times(3, { name: `retry, then ${JSON.stringify(onOutOfMemory)}` }) },
    input(),
    load,
  )
}

export const retried = hungry('retry')
export const failed = hungry('fail')
export const enlarged = hungry({ queue: 'large' })
