/** An import of rows. The conductor's child processes import this module, too. */
import { input, linear, task } from 'jobboard'

const PAGE = 100

const importRows = task('import', {
  requires: ['rows'],
  provides: 'imported',
  isolate: true,
  execute: async ({ rows }: { rows: number }, { checkpoint, progress, run }) => {
    const { row: from } = (checkpoint.last ?? { row: 0 }) as { row: number }
    for (let row = from; row < rows; row += PAGE) {
      progress(row / rows, `run ${run}: rows ${row + 1} to ${row + PAGE}`)
      // Here it would import a page. A page that is imported twice must have the effect of one: see the guide to idempotency.
      await checkpoint.save({ row: row + PAGE })
      // The process dies in the middle: of its memory nothing remains.
      if (run === 1 && row + PAGE === 300) process.kill(process.pid, 'SIGKILL')
    }
    return { run, from }
  },
})

export const imports = linear('imports', input<{ rows: number }>(), importRows)
