/**
 * Names the end of a test process that third-party native code may have aborted: vitest reports only that a worker exited
 * unexpectedly, and neither which test ran nor what the process had loaded.
 */
import type { SerializedError } from 'vitest'
import type { Reporter, TestModule } from 'vitest/node'

/** Files of tests whose process loads the `zookeeper` package. */
const LOADS_ADDON = /\/native\/[^/]*\.test\.ts$|\/guides\/zookeeper-client\.test\.ts$/
const EXITED = 'Worker exited unexpectedly'

/** A file of tests as far as it is looked at here. */
export interface TestedFile {
  readonly file: string
  /** Full names of tests without a result. */
  readonly unfinished: readonly string[]
}

/** Returns what to print for files that load the addon and did not finish; nothing where no process exited by itself. */
export function abortReports(
  files: readonly TestedFile[],
  errors: readonly Pick<SerializedError, 'message' | 'cause'>[],
): string[] {
  const exited = errors.some(({ message, cause }) => message === EXITED || Object(cause).message === EXITED)
  if (!exited) return []
  return files
    .filter(({ file, unfinished }) => LOADS_ADDON.test(file) && unfinished.length > 0)
    .map(
      ({ file, unfinished }) =>
        `ABORTED: the process of ${file} ended by itself at or before "${unfinished[0]}". It loads third-party native code ` +
        '(the package zookeeper), which may have aborted it: run `ulimit -c unlimited` before the tests, and `gdb node CORE`',
    )
}

export default class AddonReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const files = modules.map((module) => ({
      file: module.moduleId,
      unfinished: [...module.children.allTests('pending')].map(({ fullName }) => fullName),
    }))
    for (const report of abortReports(files, errors)) process.stderr.write(`\n${report}\n`)
  }
}
