/** A flow that saves a checkpoint after each row that it imports, and is killed in its first run directly after one of them. */
import { input, linear, task } from '../../src/index.ts'

export interface ImportInput {
  readonly rows: number
  readonly killAfter: number
}

const importRows = task('import', {
  requires: ['rows', 'killAfter'],
  provides: 'imported',
  execute: async ({ rows, killAfter }: ImportInput, { run, checkpoint, progress }) => {
    const first = Object(checkpoint.last).row ?? 0
    for (let row = first + 1; row <= rows; row += 1) {
      progress(row / rows, `row ${row} of ${rows}`)
      await checkpoint.save({ row })
      if (run === 1 && row === killAfter) process.kill(process.pid, 'SIGKILL')
    }
    return { first, run }
  },
})

export const importing = linear('importing', input<ImportInput>(), importRows)
