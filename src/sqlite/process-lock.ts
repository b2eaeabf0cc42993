/**
 * A lock of the operating system that a process holds until its end, however it ends. It is the lock of another SQLite file,
 * `FILE-process-N`, in which a transaction stays open. So it is free at the moment when the process dies, it is held while the process is
 * stopped, and it works between containers on one volume, where numbers of processes mean nothing.
 */
import { randomInt } from 'node:crypto'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { shareAccess } from './access.ts'
import { openDatabase, type SqliteDatabase } from './driver.ts'
import { isBusy } from './errors.ts'

/** The lock of this process. */
export interface ProcessLock extends Disposable {
  /** The number of the process, which no other process has. */
  readonly process: number
}

/** `randomInt` takes a range below 2^48. */
const MAX_NUMBER = 2 ** 47

/**
 * Locks a file with a random number. Numbers that are counted in the database would come back when a transaction is rolled back, while the lock
 * of the former number is held.
 */
export function lockProcess(file: string): ProcessLock {
  const process = randomInt(1, MAX_NUMBER)
  const path = lockPath(file, process)
  const database = openDatabase(path)
  try {
    // No file for a journal: nothing is ever written here.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    shareAccess(path, { like: file })
  } catch (error) {
    database.close()
    rmSync(path, { force: true })
    throw error
  }
  return {
    process,
    [Symbol.dispose]: () => {
      database.close()
      rmSync(path, { force: true })
    },
  }
}

/**
 * The state of another process. `alive`: the process holds its lock. `ended`: its lock is free. `unknown`: its lock file was removed, or
 * cannot be used by this user.
 */
export type ProcessState = 'alive' | 'ended' | 'unknown'

/** Returns the state of a process, as its lock shows it. */
export function stateOfProcess(file: string, process: number): ProcessState {
  const path = lockPath(file, process)
  if (!existsSync(path)) return 'unknown'
  let database: SqliteDatabase | undefined
  try {
    database = openDatabase(path)
    database.exec('BEGIN IMMEDIATE; ROLLBACK')
    return 'ended'
  } catch (error) {
    // One lock file that cannot be used must not keep the others from being looked at.
    return isBusy(error) ? 'alive' : 'unknown'
  } finally {
    database?.close()
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
  return lockedProcesses(file).some((process) => stateOfProcess(file, process) === 'alive')
}

function lockPath(file: string, process: number): string {
  return join(dirname(file), `${basename(file)}-process-${process}`)
}
