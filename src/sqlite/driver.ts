/**
 * The SQLite library of this process: Node's own where it has one (22.13 and newer), else the package `@photostructure/sqlite`, which has
 * the same interface. All connections of a process must use the same library: POSIX file locks belong to the process, so a second library that
 * closes a file would drop the locks of the first.
 */
import { createRequire } from 'node:module'
import { UnsupportedCapability } from '../core/errors.ts'

export type SqliteValue = null | number | string | Uint8Array
export type Row = Readonly<Record<string, unknown>>

/** The part of a prepared statement of `node:sqlite` that is used. */
export interface SqliteStatement {
  get(...values: readonly SqliteValue[]): unknown
  all(...values: readonly SqliteValue[]): unknown[]
  run(...values: readonly SqliteValue[]): {
    readonly changes: number | bigint
    readonly lastInsertRowid: number | bigint
  }
}

/** The part of a database connection of `node:sqlite` that is used. */
export interface SqliteDatabase {
  exec(sql: string): void
  prepare(sql: string): SqliteStatement
  close(): void
}

interface Library {
  readonly DatabaseSync: new (
    path: string,
    options?: { readonly timeout?: number; readonly readOnly?: boolean },
  ) => SqliteDatabase
}

const PACKAGE = '@photostructure/sqlite'

let library: Library | undefined

/**
 * Opens a connection that never waits for a lock: callers repeat what was refused because another connection writes.
 *
 * @throws UnsupportedCapability where this process has no SQLite
 */
export function openDatabase(path: string): SqliteDatabase {
  library ??= builtIn() ?? installed()
  if (library) return new library.DatabaseSync(path, { timeout: 0 })
  throw new UnsupportedCapability(
    `Node.js ${process.versions.node} has no SQLite; use Node.js 22.13 or newer, or run: npm install ${PACKAGE}`,
    { capability: 'sqlite' },
  )
}

/** Returns what a thread of this process passes to `require` to use the same library. */
export function libraryName(): string {
  return builtIn() ? 'node:sqlite' : createRequire(import.meta.url).resolve(PACKAGE)
}

/** Returns whether Node.js has SQLite, so that no package needs to be installed. */
export function hasBuiltInSqlite(): boolean {
  return builtIn() !== undefined
}

/** Loads the SQLite of Node.js. Suppresses its warning that it is experimental, which would be printed by every command. */
function builtIn(): Library | undefined {
  const { emitWarning } = process
  process.emitWarning = () => undefined
  try {
    return process.getBuiltinModule?.('node:sqlite') as Library | undefined
  } finally {
    process.emitWarning = emitWarning
  }
}

function installed(): Library | undefined {
  try {
    return createRequire(import.meta.url)(PACKAGE) as Library
  } catch {
    return undefined
  }
}
