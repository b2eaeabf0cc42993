/** What an operator does with a file: check it, copy it while it is used, and give free space back. */
import { existsSync, statSync } from 'node:fs'
import { InvalidArgument, NotConnected, NotFound } from '../core/errors.ts'
import { monotonic, sleep } from '../core/time.ts'
import { SqliteConnection } from './connection.ts'
import { isBusy, toFileError } from './errors.ts'
import { assertTables } from './format.ts'

/** The time for which a command waits for processes that write, in milliseconds. */
const MAX_BUSY_MS = 30_000

/** Returns what is damaged in the file, a line each; nothing for a sound file. @throws NotFound, StorageFailure, IncompatibleVersion */
export async function checkFile(path: string): Promise<readonly string[]> {
  return withConnection(path, (connection) => {
    const found = connection.all('PRAGMA integrity_check').map((row) => String(row['integrity_check']))
    const orphans = connection
      .all('PRAGMA foreign_key_check')
      .map((row) => `${row['table']}: row ${row['rowid']} has no parent`)
    return [...found.filter((line) => line !== 'ok'), ...orphans]
  })
}

/**
 * Writes a copy of the file as it is at one moment, without free space. Other processes go on meanwhile.
 *
 * @throws InvalidArgument if there is a file of that name; NotFound, StorageFailure, WritesRefused
 */
export async function backUpFile(path: string, to: string): Promise<void> {
  if (existsSync(to)) throw new InvalidArgument(`${to} exists; name a file that does not, or move it away`)
  await withConnection(path, (connection) => connection.run('VACUUM INTO ?', to))
}

/**
 * Gives free space back to the disk. Other processes wait meanwhile.
 *
 * @returns the sizes of the file before and after, in bytes
 * @throws NotFound, StorageFailure, WritesRefused; NotConnected while others read or write all the time
 */
export async function compactFile(path: string): Promise<{ readonly before: number; readonly after: number }> {
  return withConnection(path, (connection) => {
    writeBackLog(connection)
    const before = statSync(path).size
    connection.exec('VACUUM')
    writeBackLog(connection)
    return { before, after: statSync(path).size }
  })
}

/** Writes the log back to the file. @throws Busy while others read or write */
function writeBackLog(connection: SqliteConnection): void {
  if (connection.get('PRAGMA wal_checkpoint(TRUNCATE)')?.['busy'] !== 0) throw new Busy()
}

/** The file is busy: it is tried again. */
class Busy extends Error {
  /** As SQLite numbers it. */
  readonly errcode = 5
}

/** Runs the work with a connection of its own, again while others write. */
async function withConnection<T>(path: string, work: (connection: SqliteConnection) => T): Promise<T> {
  if (!existsSync(path)) throw new NotFound(`there is no file ${path}`)
  const connection = new SqliteConnection(path)
  try {
    for (const until = monotonic() + MAX_BUSY_MS; ; ) {
      try {
        connection.exec('PRAGMA wal_autocheckpoint = 0')
        assertTables(connection, path)
        return work(connection)
      } catch (error) {
        if (!isBusy(error)) throw toFileError(error, path)
        if (monotonic() > until)
          throw new NotConnected(`${path}: other processes have been using it for ${MAX_BUSY_MS / 1_000} s; try again`)
      }
      await sleep(1)
    }
  } finally {
    connection.close()
  }
}
