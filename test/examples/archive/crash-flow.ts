/** A flow of three tasks that write down when they were executed, and with what. */
import { appendFileSync } from 'node:fs'
import { input, linear, task } from 'jobboard'

export interface Execution {
  readonly given: string
  /** Names the task and its run: `a1`. */
  readonly made: string
}

const step = <const Needs extends string, const Makes extends string>(needs: Needs, makes: Makes) =>
  task(makes, {
    requires: ['journal', needs],
    provides: makes,
    execute: (args: { [K in Needs | 'journal']: string }, { run }) => {
      const execution: Execution = { given: args[needs], made: `${makes}${run}` }
      appendFileSync(args.journal, `${JSON.stringify(execution)}\n`)
      return execution.made
    },
  })

export const crashFlow = linear(
  'crash',
  input<{ journal: string; start: string }>(),
  step('start', 'a'),
  step('a', 'b'),
  step('b', 'c'),
)
