/**
 * A lock of the operating system that a process holds until its end, however it ends. It is the lock of another SQLite file,
 * `FILE-process-N`, in which a transaction stays open. So it is free at the moment when the process dies, it is held while the process is
 * stopped, and it works between containers on one volume, where numbers of processes mean nothing.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { openDatabase } from './driver.ts'
import { isBusy } from './errors.ts'

/** Locks the file of a process with a number that no process had before. Dispose it to end the lock. */
export function lockProcess(file: string, process: number): Disposable {
  const path = lockPath(file, process)
  const database = openDatabase(path)
  // No file for a journal: nothing is ever written here.
  database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  return {
    [Symbol.dispose]: () => {
      database.close()
      rmSync(path, { force: true })
    },
  }
}

/** Returns whether a process has certainly ended. */
export function hasEnded(file: string, process: number): boolean {
  const path = lockPath(file, process)
  if (!existsSync(path)) return true
  const database = openDatabase(path)
  try {
    database.exec('BEGIN IMMEDIATE; ROLLBACK')
    return true
  } catch (error) {
    if (isBusy(error)) return false
    throw error
  } finally {
    database.close()
  }
}

/** Removes the lock file of a process that has ended. */
export function removeLock(file: string, process: number): void {
  rmSync(lockPath(file, process), { force: true })
}

/** Returns the numbers of the processes that have a lock file. */
export function lockedProcesses(file: string): number[] {
  const prefix = `${basename(file)}-process-`
  return readdirSync(dirname(file)).flatMap((name) => {
    const number = name.startsWith(prefix) ? Number(name.slice(prefix.length)) : 0
    return Number.isSafeInteger(number) && number > 0 ? [number] : []
  })
}

/** Returns whether a living process has a board of the file open. */
export function isInUse(file: string): boolean {
  return lockedProcesses(file).some((process) => !hasEnded(file, process))
}

function lockPath(file: string, process: number): string {
  return join(dirname(file), `${basename(file)}-process-${process}`)
}
