/** Creates and checks the tables of a file. Boards and logbooks have them in one file, so all of them have one format number. */
import { IncompatibleVersion, StorageFailure } from '../core/errors.ts'
import { readScript } from '../core/script-file.ts'
import type { SqliteConnection } from './connection.ts'

/** Identifies the files of this library among all SQLite files: 'jobb'. */
const APPLICATION_ID = 0x6a6f6262
/** The number of the format that this release writes. Files of earlier formats are migrated when they are opened. */
const FORMAT = 2
/** The files of the migrations, from format 1. What was released is never changed. */
const MIGRATIONS = ['./format-2.sql'] as const

/**
 * Creates the tables in a new file, and brings those of an earlier release up to date. The caller has the write lock.
 *
 * @throws IncompatibleVersion for a file that a newer release wrote; StorageFailure for a file of another program
 */
export function prepareTables(connection: SqliteConnection, path: string): void {
  const tables = Number(connection.get('SELECT count(*) AS count FROM sqlite_schema')?.['count'])
  if (tables > 0 || readNumber(connection, 'application_id') !== 0) {
    const format = assertTables(connection, path)
    for (const script of migrationScripts().slice(format - 1)) connection.exec(script)
    if (format < FORMAT) connection.exec(`PRAGMA user_version = ${FORMAT}`)
    return
  }
  connection.exec(tablesScript())
  connection.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT}`)
}

/** Returns whether the file has the tables of this release. It needs no write lock. */
export function hasTables(connection: SqliteConnection): boolean {
  return (
    readNumber(connection, 'application_id') === APPLICATION_ID && readNumber(connection, 'user_version') === FORMAT
  )
}

/** Returns the format of a file, which is the one of this release or an earlier one. @throws IncompatibleVersion, StorageFailure as {@link prepareTables} */
export function assertTables(connection: SqliteConnection, path: string): number {
  if (readNumber(connection, 'application_id') !== APPLICATION_ID)
    throw new StorageFailure(`${path} is an SQLite database of another program; name another file`)
  const format = readNumber(connection, 'user_version')
  if (format >= 1 && format <= FORMAT) return format
  throw new IncompatibleVersion(
    `${path} has format ${format}, and this release knows ${FORMAT}: a newer release wrote it; update jobboard`,
  )
}

/** Returns the statements that create the tables of a new file. */
export function tablesScript(): string {
  return readScript(import.meta.url, './tables.sql')
}

/** Returns the statements that lead from each format to the next one, from format 1. */
export function migrationScripts(): readonly string[] {
  return MIGRATIONS.map((file) => readScript(import.meta.url, file))
}

function readNumber(connection: SqliteConnection, pragma: string): number {
  return Number(connection.get(`PRAGMA ${pragma}`)?.[pragma])
}
