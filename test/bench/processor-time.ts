/** How much processor time the processes of a server have used. */
import { readdir, readFile } from 'node:fs/promises'
import { type ProcessStat, toProcessStat } from '../support/process-stat.ts'

/**
 * Returns milliseconds: of the process, of its children that are alive (Postgres' backends), and of those that have ended.
 * Undefined where there is no such process to be seen: the server runs in a container, or this is not Linux.
 */
export async function processorTime(pid: number): Promise<number | undefined> {
  const entries = await readdir('/proc').catch(() => [])
  const stats = await Promise.all(entries.filter((name) => /^\d+$/.test(name)).map(readStat))
  const own = stats.find((stat) => stat?.pid === pid)
  if (own === undefined) return undefined
  const children = stats.filter((stat) => stat?.parent === pid)
  return own.usedMs + own.endedMs + children.reduce((sum, child) => sum + (child?.usedMs ?? 0), 0)
}

/** Returns undefined for a process that has ended meanwhile. */
async function readStat(pid: string): Promise<(ProcessStat & { readonly pid: number }) | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : { pid: Number(pid), ...toProcessStat(text) }
}
