/** Reads what Linux says of a process: its parent, and the processor time that it has used. */

/** Linux counts in hundredths of a second wherever programs read it, whatever its own clock does. */
const MS_PER_TICK = 10

export interface ProcessStat {
  readonly parent: number
  /** The processor time of the process itself, in milliseconds. */
  readonly usedMs: number
  /** That of its children that have ended and were waited for, in milliseconds. */
  readonly endedMs: number
}

/** Parses the text of `/proc/PID/stat`. */
export function toProcessStat(text: string): ProcessStat {
  // The name of the program, in brackets, may have blanks and brackets in it.
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [, parent = 0, , , , , , , , , , user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields
  return { parent, usedMs: (user + system) * MS_PER_TICK, endedMs: (endedUser + endedSystem) * MS_PER_TICK }
}
