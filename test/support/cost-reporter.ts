/**
 * Prints at the end of a run which test files took most processor time, and the sum. With `JOBBOARD_COSTS=FILE` those of all files are written to that
 * file. Decision 63 says what was found with it.
 */
import { writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'
import { ROOT } from './build.ts'

/** How many files are printed. */
const PRINTED_FILES = 10

export default class CostReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const costs = modules.map((module) => ({
      file: module.moduleId.replace(`${ROOT}/`, ''),
      used: module.meta().processorTime ?? 0,
      took: module.diagnostic().duration,
    }))
    costs.sort((a, b) => b.used - a.used)
    const all = costs.reduce((sum, { used }) => sum + used, 0)
    const lines = costs
      .slice(0, all > 0 ? PRINTED_FILES : 0)
      .map(({ file, used, took }) => `${inSeconds(used)} ${inSeconds(took)}  ${file}`)
    if (lines.length === 0) return
    process.stdout.write(
      `\n the files that cost most: processor time with loading, and duration of their tests, in seconds\n${lines.join('\n')}\n`,
    )
    process.stdout.write(
      `${inSeconds(all)}          all ${costs.length} files, with the programs that they start; the shared ZooKeeper is not counted\n`,
    )
    const path = process.env['JOBBOARD_COSTS']
    if (path) writeFileSync(path, JSON.stringify(costs, null, 1))
  }
}

function inSeconds(ms: number): string {
  return (ms / 1_000).toFixed(1).padStart(8)
}
