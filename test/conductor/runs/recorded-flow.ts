/** A flow of two steps, as the tests of recorded ends and their process run it. */
import { input, linear, task } from '../../../src/index.ts'

export interface TwoSteps {
  /** Called by each execution of a step. */
  readonly executed: (step: 'one' | 'two', run: number) => void
  /** Called by the second step before it returns. */
  readonly beforeReturn?: (job: string, run: number) => Promise<unknown>
}

export function twoSteps({ executed, beforeReturn }: TwoSteps) {
  const one = task('one', {
    provides: 'text',
    execute: (_args, { run }) => {
      executed('one', run)
      return 'what one has made'
    },
  })
  const two = task('two', {
    requires: ['text'],
    provides: 'length',
    execute: async ({ text }: { text: string }, { job, run }) => {
      executed('two', run)
      await beforeReturn?.(job?.uuid ?? '', run)
      return text.length
    },
  })
  return linear('two-steps', input<object>(), one, two)
}
