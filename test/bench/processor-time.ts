/** How much processor time the processes of a server have used. */
import { readdir, readFile } from 'node:fs/promises'

/** Linux counts in hundredths of a second wherever programs read it, whatever its own clock does. */
const MS_PER_TICK = 10

/**
 * Returns milliseconds: of the process, of its children that are alive (Postgres' backends), and of those that have ended.
 * Undefined where there is no such process to be seen: the server runs in a container, or this is not Linux.
 */
export async function processorTime(pid: number): Promise<number | undefined> {
  const entries = await readdir('/proc').catch(() => [])
  const stats = await Promise.all(entries.filter((name) => /^\d+$/.test(name)).map(statOf))
  const own = stats.find((stat) => stat?.pid === pid)
  if (own === undefined) return undefined
  const children = stats.filter((stat) => stat?.parent === pid)
  return (own.used + own.ended + children.reduce((sum, child) => sum + (child?.used ?? 0), 0)) * MS_PER_TICK
}

interface Stat {
  readonly pid: number
  readonly parent: number
  /** By itself, in ticks. */
  readonly used: number
  /** By its children that have ended, in ticks. */
  readonly ended: number
}

/** Undefined when it ended meanwhile. */
async function statOf(pid: string): Promise<Stat | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The name of the program, in brackets, may have blanks and brackets in it.
  const fields = text
    ?.slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  if (fields === undefined) return undefined
  const [, parent = 0, , , , , , , , , , user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields
  return { pid: Number(pid), parent, used: user + system, ended: endedUser + endedSystem }
}
