/** The memory that child processes use, and whether the kernel has killed one for it. */
import { readFile } from 'node:fs/promises'

/** Returns the resident memory of a process in bytes; undefined where it has ended, and on systems without `/proc`. */
export async function readResidentMemory(pid: number): Promise<number | undefined> {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024
  } catch {
    return undefined
  }
}

/**
 * Returns how many processes of this control group the kernel has killed because the group was out of memory; undefined where
 * this is not known. A container is a control group.
 */
export async function readOomKills(): Promise<number | undefined> {
  try {
    const [, group = ''] = /^0::(.*)$/m.exec(await readFile('/proc/self/cgroup', 'utf8')) ?? []
    const events = await readFile(`/sys/fs/cgroup${group}/memory.events`, 'utf8')
    const [, kills] = /^oom_kill (\d+)$/m.exec(events) ?? []
    return kills === undefined ? undefined : Number(kills)
  } catch {
    return undefined
  }
}
