/** A file that says which process is at something, for processes that must not be at it side by side. */
import { readFile, rm, writeFile } from 'node:fs/promises'

/** Whether the lock is ours now. One whose holder is gone is taken away: ask again. */
export async function takeLock(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    const holder = Number(await readFile(lock, 'utf8').catch(() => ''))
    if (holder > 0 && !alive(holder)) await rm(lock, { force: true })
    return false
  }
}

export async function releaseLock(lock: string): Promise<void> {
  await rm(lock, { force: true })
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
