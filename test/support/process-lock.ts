/** A file that says which process is at something, for processes that must not be at it side by side. */
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

const POLL = 100
const REMOVING_MS = 10_000

export interface SharedWork {
  /** The path of the lock. */
  readonly lock: string
  readonly isDone: () => Promise<boolean>
  readonly work: () => Promise<void>
}

/** Does some work unless it is done. Test files run side by side, in processes: the first of them does it, the others wait for it. */
export async function doOnce({ lock, isDone, work }: SharedWork): Promise<void> {
  while (!(await isDone())) {
    if (!(await takeLock(lock))) {
      await sleep(POLL)
      continue
    }
    try {
      if (!(await isDone())) await work()
      return
    } finally {
      await rm(lock, { force: true })
    }
  }
}

/** Resolves when no process holds the lock. */
export async function whenFree(lock: string): Promise<void> {
  while (await isHeld(lock)) await sleep(POLL)
}

/** Returns whether the lock is ours now. */
async function takeLock(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    await isHeld(lock)
    return false
  }
}

/** Returns whether somebody holds the lock. Removes one whose holder is gone. */
async function isHeld(lock: string): Promise<boolean> {
  const content = await readFile(lock, 'utf8').catch(() => undefined)
  if (content === undefined) return false
  if (isDead(content)) await removeDead(lock)
  return true
}

/** Removes the lock of a dead process. One process at a time: a second one would remove the lock of who has taken it after the first. */
async function removeDead(lock: string): Promise<void> {
  const removing = `${lock}.removing`
  try {
    await writeFile(removing, '', { flag: 'wx' })
  } catch {
    // Whoever removes is done at once, or was killed.
    const { mtimeMs } = await stat(removing).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (Date.now() - mtimeMs > REMOVING_MS) await rm(removing, { force: true })
    return
  }
  const content = await readFile(lock, 'utf8').catch(() => '')
  if (isDead(content)) await rm(lock, { force: true })
  await rm(removing, { force: true })
}

/** A process that is about to take the lock has not written its number yet. */
function isDead(holder: string): boolean {
  return Number(holder) > 0 && !isAlive(Number(holder))
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
