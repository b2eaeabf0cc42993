/**
 * The presence of this process in a file: it holds a lock until its end, and looks for processes that have ended, to free what their sessions
 * held. All boards of the process on one file share it.
 *
 * | another process | its lock | its claims are free |
 * |---|---|---|
 * | ends, however | is free at once | at the next look of any process, after at most half a second |
 * | is stopped, or hangs | is held | when its heartbeats have been missing for the time of its session |
 * | ends, and its lock file was removed | is not known | when its heartbeats have been missing for the time of its session |
 */
import { RecurringError } from '../../../../core/async/recurring-error.ts'
import { asError } from '../../../../core/errors.ts'
import { startInterval } from '../../../../core/time.ts'
import {
  lockedProcesses,
  lockProcess,
  type ProcessLock,
  removeLock,
  type SqliteFile,
  stateOfProcess,
} from '../../../../sqlite/index.ts'
import { endSession } from '../store/session-rows.ts'

/** The time between two looks for processes that have ended, in milliseconds. */
const PROCESS_POLL_MS = 500
/** The time for which changes are kept, in milliseconds: a process that has read none for longer lists its boards again. */
const CHANGE_RETENTION_MS = 30_000
/** The maximum number of changes that one look deletes: other steps wait for it. */
const MAX_DELETED = 10_000

const lives = new Map<SqliteFile, ProcessLife>()

/** Begins or shares the life of this process on a file. Each user ends it. */
export async function beginLife(file: SqliteFile): Promise<ProcessLife> {
  const life = lives.get(file) ?? new ProcessLife(file)
  lives.set(file, life)
  await life.begin()
  return life
}

export class ProcessLife {
  readonly #file: SqliteFile
  readonly #onErrors = new Set<(error: Error) => void>()
  #users = 0
  #lock: Promise<ProcessLock> | undefined
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> = Promise.resolve()
  /** The numbers of the newest change at earlier looks, oldest first. */
  readonly #samples: { readonly at: number; readonly newest: number }[] = []
  #isLooking = false
  readonly #recurring = new RecurringError()
  /** The number up to which changes are not needed any more. */
  #obsolete = 0

  constructor(file: SqliteFile) {
    this.#file = file
  }

  /** The number of the process. */
  get number(): Promise<number> {
    this.#lock ??= this.#enter()
    return this.#lock.then(({ process }) => process)
  }

  async begin(): Promise<void> {
    this.#users += 1
    try {
      await this.number
    } catch (error) {
      this.#lock = undefined
      this.#users -= 1
      if (this.#users === 0) lives.delete(this.#file)
      throw error
    }
    this.#timer ??= startInterval(() => this.#startLook(), PROCESS_POLL_MS).unref()
  }

  /** Calls the listener with errors of the looks, until the returned function is called. */
  onError(listener: (error: Error) => void): () => void {
    this.#onErrors.add(listener)
    return () => this.#onErrors.delete(listener)
  }

  /** Ends one use. The last one frees the lock. */
  async end(): Promise<void> {
    this.#users -= 1
    if (this.#users > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
    lives.delete(this.#file)
    await this.#looking
    const lock = await this.#lock
    if (!lock) return
    const leave = () => this.#file.connection.run('DELETE FROM processes WHERE id = ?', lock.process)
    await this.#file.run(leave).catch(() => undefined)
    lock[Symbol.dispose]()
  }

  /**
   * Takes the lock and adds the row of the process in one transaction. Others remove lock files without a row in a transaction, too: so they see
   * either both or none.
   */
  async #enter(): Promise<ProcessLock> {
    const { connection, path } = this.#file
    const locks: ProcessLock[] = []
    try {
      const { lock, ended } = await this.#file.run(() => {
        // A transaction that is repeated, because its commit failed, takes another lock.
        for (const former of locks.splice(0)) former[Symbol.dispose]()
        const lock = lockProcess(path)
        locks.push(lock)
        connection.run('INSERT INTO processes (id, pid) VALUES (?, ?)', lock.process, process.pid)
        this.#removeLeftOver()
        return { lock, ended: this.#endDead(lock.process) }
      })
      for (const each of ended) removeLock(path, each)
      return lock
    } catch (error) {
      for (const lock of locks) lock[Symbol.dispose]()
      throw error
    }
  }

  /** Removes the lock files of processes that died before they had a row. */
  #removeLeftOver(): void {
    const { connection, path } = this.#file
    const known = new Set(connection.all('SELECT id FROM processes').map(({ id }) => Number(id)))
    for (const each of lockedProcesses(path))
      if (!known.has(each) && stateOfProcess(path, each) === 'ended') removeLock(path, each)
  }

  #startLook(): void {
    // A look can wait for the write lock for long.
    if (this.#isLooking) return
    this.#isLooking = true
    const look = this.#look().finally(() => {
      this.#isLooking = false
    })
    this.#looking = look.then(
      () => {
        this.#recurring.clear()
      },
      (error: unknown) => this.#report(asError(error)),
    )
  }

  #report(error: Error): void {
    if (!this.#recurring.isNew(error)) return
    for (const listener of this.#onErrors) listener(error)
  }

  async #look(): Promise<void> {
    const own = await this.number
    const { connection, path } = this.#file
    const found = this.#file.read(() => {
      const expired = connection.get('SELECT 1 FROM sessions WHERE heartbeat_at + ttl < ? LIMIT 1', Date.now())
      return expired !== undefined || this.#others(own).some((each) => stateOfProcess(path, each) === 'ended')
    })
    if (found) for (const each of await this.#file.run(() => this.#endDead(own))) removeLock(path, each)
    if (this.#hasObsolete()) await this.#file.run(() => this.#deleteObsolete())
  }

  /** Returns whether there are obsolete rows: old changes, windows of keys and arrival times that are over. */
  #hasObsolete(): boolean {
    const { connection } = this.#file
    const now = Date.now()
    const newest = Number(connection.get('SELECT max(number) AS newest FROM changes')?.['newest'] ?? 0)
    if (newest !== this.#samples.at(-1)?.newest) this.#samples.push({ at: now, newest })
    while ((this.#samples[1]?.at ?? now) < now - CHANGE_RETENTION_MS) this.#samples.shift()
    const [oldest] = this.#samples
    // The newest row is never deleted, so that no number is used twice.
    this.#obsolete = oldest && oldest.at < now - CHANGE_RETENTION_MS ? Math.min(oldest.newest, newest - 1) : 0
    const sql = `SELECT EXISTS (SELECT 1 FROM changes WHERE number <= ?1) OR EXISTS (SELECT 1 FROM key_windows WHERE until <= ?2)
      OR EXISTS (SELECT 1 FROM tokens WHERE arrival <= ?2) AS found`
    return connection.get(sql, this.#obsolete, now)?.['found'] === 1
  }

  #deleteObsolete(): void {
    const { connection } = this.#file
    const old = 'SELECT number FROM changes WHERE number <= ? ORDER BY number LIMIT ?'
    connection.run(`DELETE FROM changes WHERE number IN (${old})`, this.#obsolete, MAX_DELETED)
    connection.run('DELETE FROM key_windows WHERE until <= ?', Date.now())
    connection.run('DELETE FROM tokens WHERE arrival <= ?', Date.now())
  }

  #others(own: number): number[] {
    return this.#file.connection.all('SELECT id FROM processes WHERE id <> ?', own).map(({ id }) => Number(id))
  }

  /** Ends the sessions of processes that have ended, and the sessions whose heartbeats are missing. @returns the processes that have ended */
  #endDead(own: number): number[] {
    const { connection, path } = this.#file
    const ended = this.#others(own).filter((each) => stateOfProcess(path, each) === 'ended')
    for (const dead of ended) {
      const sessions = connection.all('SELECT id, board FROM sessions WHERE process = ?', dead)
      for (const { id, board } of sessions) endSession(connection, { session: Number(id), board: Number(board) })
      connection.run('DELETE FROM processes WHERE id = ?', dead)
    }
    const expired = connection.all('SELECT id, board FROM sessions WHERE heartbeat_at + ttl < ?', Date.now())
    for (const { id, board } of expired) endSession(connection, { session: Number(id), board: Number(board) })
    // Of a process without a lock file only its sessions say that it lives; a restored backup has such rows, too.
    for (const each of this.#others(own))
      if (stateOfProcess(path, each) === 'unknown')
        connection.run(
          'DELETE FROM processes WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM sessions WHERE process = ?1)',
          each,
        )
    return ended
  }
}
