/** The operations of an operator on a file: check it, copy it while it is used, and give free space back. */
import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { InvalidArgument, NotFound } from '../core/errors.ts'
import { retryWhileBusy } from './busy.ts'
import { SqliteConnection } from './connection.ts'
import { BusyError, toFileError } from './errors.ts'
import { assertTables } from './format.ts'
import { syncToDisk } from './log-sync.ts'

/** Returns what is damaged in the file, a line each; nothing for a sound file. @throws NotFound, StorageFailure, IncompatibleVersion */
export async function checkFile(path: string): Promise<readonly string[]> {
  return withConnection(path, (connection) =>
    retryWhileBusy(path, () => {
      const found = connection.all('PRAGMA integrity_check').map((row) => String(row['integrity_check']))
      const orphans = connection
        .all('PRAGMA foreign_key_check')
        .map((row) => `${row['table']}: row ${row['rowid']} has no parent`)
      return [...found.filter((line) => line !== 'ok'), ...orphans]
    }),
  )
}

/**
 * Writes a copy of the file as it is at one moment, without free space. Other processes go on meanwhile. A copy that fails leaves nothing.
 *
 * @throws InvalidArgument if there is a file of that name, or no such folder; NotFound, StorageFailure, WritesRefused
 */
export async function backUpFile(path: string, to: string): Promise<void> {
  if (existsSync(to)) throw new InvalidArgument(`${to} exists; name a file that does not, or move it away`)
  if (!existsSync(dirname(to)))
    throw new InvalidArgument(`there is no folder ${dirname(to)}; create it, or name another`)
  const partial = `${to}.partial`
  rmSync(partial, { force: true })
  await withConnection(path, async (connection) => {
    try {
      await retryWhileBusy(to, () => connection.run('VACUUM INTO ?', partial))
      // SQLite does not wait for the disk here.
      syncToDisk(partial)
      renameSync(partial, to)
      syncToDisk(dirname(to))
    } catch (error) {
      rmSync(partial, { force: true })
      throw toFileError(error, to)
    }
  })
}

/**
 * Gives free space back to the disk. Other processes wait meanwhile.
 *
 * @returns the sizes of the file before and after, in bytes
 * @throws NotFound, StorageFailure, WritesRefused; NotConnected while others read or write all the time
 */
export async function compactFile(path: string): Promise<{ readonly before: number; readonly after: number }> {
  return withConnection(path, async (connection) => {
    await retryWhileBusy(path, () => writeBackLog(connection))
    const before = statSync(path).size
    await retryWhileBusy(path, () => connection.exec('VACUUM'))
    await retryWhileBusy(path, () => writeBackLog(connection))
    return { before, after: statSync(path).size }
  })
}

/** Writes the log back to the file. @throws BusyError while others read or write */
function writeBackLog(connection: SqliteConnection): void {
  if (connection.get('PRAGMA wal_checkpoint(TRUNCATE)')?.['busy'] !== 0) throw new BusyError('the log is in use')
}

/** Runs the work with a connection of its own. */
async function withConnection<T>(path: string, work: (connection: SqliteConnection) => Promise<T>): Promise<T> {
  if (!existsSync(path)) throw new NotFound(`there is no file ${path}`)
  const connection = await retryWhileBusy(path, () => new SqliteConnection(path))
  try {
    await retryWhileBusy(path, () => {
      connection.exec('PRAGMA wal_autocheckpoint = 0')
      assertTables(connection, path)
    })
    return await work(connection)
  } finally {
    connection.close()
  }
}
