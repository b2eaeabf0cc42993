/** The rows of sessions. A claim is held as long as the row of its session exists. */
import { encodeText } from '../../../../core/texts.ts'
import type { SqliteConnection } from '../../../../sqlite/index.ts'
import { type BoardContext, ChangeLog } from './change-log.ts'

export interface NewSession {
  readonly process: number
  readonly who: string
  /** The TTL in milliseconds. */
  readonly ttl: number
}

/** Adds the row of a session; returns its number. */
export function openSession({ db, board }: BoardContext, { process, who, ttl }: NewSession): number {
  const sql = 'INSERT INTO sessions (board, process, who, ttl, heartbeat_at) VALUES (?, ?, ?, ?, ?)'
  return db.insert(sql, board, process, encodeText(who), ttl, Date.now())
}

/** Records a heartbeat. @returns false if the session has ended */
export function renewSession(db: SqliteConnection, session: number): boolean {
  return db.run('UPDATE sessions SET heartbeat_at = ? WHERE id = ?', Date.now(), session) > 0
}

/** Frees everything that a session holds. Does nothing if it has ended already. */
export function endSession(
  db: SqliteConnection,
  { session, board }: { readonly session: number; readonly board: number },
): void {
  if (db.run('DELETE FROM sessions WHERE id = ?', session) === 0) return
  const changes = new ChangeLog({ db, board, now: Date.now })
  for (const { id } of db.all('SELECT id FROM jobs WHERE session = ?', session)) {
    const job = Number(id)
    db.run('DELETE FROM permits WHERE job = ?', job)
    db.run('DELETE FROM slots WHERE job = ?', job)
    db.run('UPDATE jobs SET session = NULL, who = NULL WHERE id = ?', job)
    changes.add('freed', job)
  }
  db.run('DELETE FROM entities WHERE session = ?', session)
  changes.addEnded(session)
}
