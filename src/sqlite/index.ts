/** Access to an SQLite file, for boards and for logbooks. */

export { retryWhileBusy } from './busy.ts'
export type { StepOptions } from './committer.ts'
export type { SqliteConnection, Synchronous } from './connection.ts'
export { hasBuiltInSqlite, type Row, type SqliteValue } from './driver.ts'
export { toFileError } from './errors.ts'
export { openSqliteFile, type SqliteFile } from './file.ts'
export { parseSqliteLocation, type SqliteLocation } from './location.ts'
export { backUpFile, checkFile, compactFile } from './maintenance.ts'
export { isInUse, lockedProcesses, lockProcess, type ProcessLock, removeLock, stateOfProcess } from './process-lock.ts'
