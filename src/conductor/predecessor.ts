/**
 * Recognizes conductors on the board whose process ran on this machine and has ended, by a kill for example. The entity
 * remains until its session expires. A process manager that restarts the process under its name would otherwise be
 * refused until then, again and again.
 */
import { hostname } from 'node:os'

/**
 * Returns whether the process of a conductor ran here and has ended. @param metadata the conductor's entity on the
 * board
 */
export function isEndedLocalProcess({ host, pid, startedAt }: Readonly<Record<string, unknown>>): boolean {
  if (host !== hostname() || typeof pid !== 'number') return false
  // In a container each start of the process has the same id.
  if (pid === process.pid) return toTime(startedAt) < Date.now() - process.uptime() * 1_000
  return !isProcessAlive(pid)
}

/** Returns the time of a Date, or of its text: boards that hold JSON store it as text. */
function toTime(instant: unknown): number {
  return instant instanceof Date ? instant.getTime() : Date.parse(String(instant))
}

function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // The process exists, but this one may not signal it.
    return Object(error).code === 'EPERM'
  }
}
