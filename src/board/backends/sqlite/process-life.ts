/**
 * The process among those that use a file: it holds a lock until its end, and looks for processes that have ended, to free what their sessions
 * held. All boards of the process on one file share it.
 *
 * | another process | its lock | its claims are free |
 * |---|---|---|
 * | ends, however | is free at once | at the next look of any process, after at most half a second |
 * | is stopped, or hangs | is held | when its heartbeats have been missing for the time of its session |
 */

import { isError } from '../../../core/errors.ts'
import { startInterval } from '../../../core/time.ts'
import type { SqliteFile } from '../../../sqlite/index.ts'
import { hasEnded, lockedProcesses, lockProcess, removeLock } from '../../../sqlite/index.ts'
import { endSession } from './sessions.ts'

/** The time between two looks for processes that have ended, in milliseconds. */
const LOOK_PERIOD_MS = 500
/** The time for which changes are kept, in milliseconds: a process that has read none for longer lists its boards again. */
const CHANGE_RETENTION_MS = 30_000
/** The maximum number of rows that one look deletes of a table: other steps wait for it. */
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
  #number: Promise<number> | undefined
  #lock: Disposable | undefined
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> = Promise.resolve()
  /** The numbers of the newest change at earlier looks, oldest first. */
  readonly #samples: { readonly at: number; readonly newest: number }[] = []
  /** The number up to which changes are not needed any more. */
  #obsolete = 0

  constructor(file: SqliteFile) {
    this.#file = file
  }

  /** The number of the process. */
  get number(): Promise<number> {
    this.#number ??= this.#file.run(() => this.#enter())
    return this.#number
  }

  async begin(): Promise<void> {
    this.#users += 1
    try {
      await this.number
    } catch (error) {
      this.#number = undefined
      this.#users -= 1
      throw error
    }
    this.#timer ??= startInterval(() => this.#startLook(), LOOK_PERIOD_MS).unref()
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
    const number = await this.number
    await this.#file
      .run(() => this.#file.connection.run('DELETE FROM processes WHERE id = ?', number))
      .catch(() => undefined)
    this.#lock?.[Symbol.dispose]()
  }

  /** Adds the row of the process, and takes its lock in the same transaction: nobody sees the row without the lock. */
  #enter(): number {
    const { connection, path } = this.#file
    const number = connection.insert('INSERT INTO processes (pid) VALUES (?)', process.pid)
    this.#lock = lockProcess(path, number)
    this.#endDead(number)
    // A process that died between its lock and its row has left a file.
    const known = new Set(connection.all('SELECT id FROM processes').map(({ id }) => Number(id)))
    for (const each of lockedProcesses(path)) if (!known.has(each) && hasEnded(path, each)) removeLock(path, each)
    return number
  }

  #startLook(): void {
    this.#looking = this.#look().catch((error: unknown) => {
      for (const listener of this.#onErrors) if (isError(error)) listener(error)
    })
  }

  async #look(): Promise<void> {
    const own = await this.number
    const { connection, path } = this.#file
    const found = this.#file.read(() => {
      const expired = connection.get('SELECT 1 FROM sessions WHERE heartbeat_at + ttl < ? LIMIT 1', Date.now())
      return expired !== undefined || this.#others(own).some((each) => hasEnded(path, each))
    })
    if (found) await this.#file.run(() => this.#endDead(own))
    if (this.#hasObsolete()) await this.#file.run(() => this.#deleteObsolete())
  }

  /** Returns whether there are rows that nobody needs any more: old changes, windows of keys and arrival times that are over. */
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

  /** Ends the sessions of processes that have ended, and those whose heartbeats are missing. */
  #endDead(own: number): void {
    const { connection, path } = this.#file
    for (const dead of this.#others(own)) {
      if (!hasEnded(path, dead)) continue
      const sessions = connection.all('SELECT id, board FROM sessions WHERE process = ?', dead)
      for (const { id, board } of sessions) endSession(connection, { session: Number(id), board: Number(board) })
      connection.run('DELETE FROM processes WHERE id = ?', dead)
      removeLock(path, dead)
    }
    const expired = connection.all('SELECT id, board FROM sessions WHERE heartbeat_at + ttl < ?', Date.now())
    for (const { id, board } of expired) endSession(connection, { session: Number(id), board: Number(board) })
  }
}
