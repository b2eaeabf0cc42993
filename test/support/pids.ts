/** Processes by their ids: without an import of the test's tools, because children use it, too. */
import { readFileSync } from 'node:fs'

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A process that has ended and that nobody has awaited yet is a zombie.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/**
 * Returns the process ids in a text, one in each line. Leaves out a line that is still being written, and a file that is
 * created but empty: the number 0 in a signal would stop or kill the test run itself.
 */
export function pidsFrom(text: string): number[] {
  return text.split('\n').slice(0, -1).map(Number)
}

/**
 * Sends a signal to one process.
 *
 * @throws if the id is not that of one process: 0 and -1 are groups, to which the test run belongs.
 */
export function sendSignal(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined || !(pid > 1)) throw new Error(`${signal} must be sent to one process, got ${pid}`)
  process.kill(pid, signal)
}
