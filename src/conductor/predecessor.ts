/**
 * Whether who bears a name on the board is a process of this machine that has ended, killed say, and is there only until its
 * session is over. A process manager that starts it again under its name would be refused until then, again and again.
 */
import { hostname } from 'node:os'

/** @param metadata what a conductor shows of itself */
export function isEndedLocalProcess({ host, pid, startedAt }: Readonly<Record<string, unknown>>): boolean {
  if (host !== hostname() || typeof pid !== 'number') return false
  // In a container each start of the process has the same id.
  if (pid === process.pid) return toTime(startedAt) < Date.now() - process.uptime() * 1_000
  return !isProcessAlive(pid)
}

/** Boards that hold JSON have it as text. */
function toTime(instant: unknown): number {
  return instant instanceof Date ? instant.getTime() : Date.parse(String(instant))
}

function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Not ours to signal, but there.
    return Object(error).code === 'EPERM'
  }
}
