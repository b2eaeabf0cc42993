/**
 * Fails a run in which no file was found, or a file defined no test: `passWithNoTests` of the configuration lets suites be empty, because all tests of
 * a suite may be variants.
 */
import type { Reporter, TestModule } from 'vitest/node'

export default class EmptyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const empty = modules.filter((module) => module.state() !== 'failed' && module.children.allTests().next().done)
    if (modules.length > 0 && empty.length === 0) return
    const what = modules.length === 0 ? 'no test file was found' : 'these files define no test:'
    process.stderr.write(`FAILED: ${[what, ...empty.map(({ moduleId }) => moduleId)].join('\n')}\n`)
    process.exitCode = 1
  }
}
