/**
 * Measures the processor time of each test file, for `cost-reporter.ts`: that of the process, from before its modules are loaded, and that of the
 * servers and programs which it has started and ended. A setup file of vitest.
 */
import { readFileSync } from 'node:fs'
import { afterAll } from 'vitest'
import { toProcessStat } from './process-stat.ts'

declare module 'vitest' {
  interface TaskMeta {
    /** The processor time of the file, in milliseconds. */
    processorTime?: number
  }
}

const before = usedSoFar()

// The hooks of a setup file run last: the servers of the file have ended.
// biome-ignore lint/correctness/noEmptyPattern: vitest requires a pattern in this place
afterAll(({}, suite) => {
  suite.file.meta.processorTime = usedSoFar() - before
})

/** Returns the processor time of this process and of its ended children, in milliseconds. Without `/proc`, the latter is not known. */
function usedSoFar(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000 + endedChildren()
}

function endedChildren(): number {
  try {
    return toProcessStat(readFileSync('/proc/self/stat', 'utf8')).endedMs
  } catch {
    return 0
  }
}
