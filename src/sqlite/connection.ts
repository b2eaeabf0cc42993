/**
 * A connection to a file, with its prepared statements. All its methods are synchronous, so nothing of this process can run between the check of
 * a step and its change; and a transaction holds the only write lock of the file, so no other process can change anything between them either.
 */
import { openDatabase, type Row, type SqliteDatabase, type SqliteStatement, type SqliteValue } from './driver.ts'

/**
 * The durability of commits. `FULL`: a commit is on the disk before it is acknowledged. `NORMAL`: a power cut may undo the last commits, a
 * crash of the process does not.
 */
export type Synchronous = 'FULL' | 'NORMAL'

export class SqliteConnection {
  readonly #database: SqliteDatabase
  readonly #statements = new Map<string, SqliteStatement>()

  constructor(path: string) {
    this.#database = openDatabase(path)
  }

  /** Runs a script of several statements. */
  exec(script: string): void {
    this.#database.exec(script)
  }

  /** Returns the first row; undefined if there is none. */
  get(sql: string, ...values: readonly SqliteValue[]): Row | undefined {
    return this.#prepare(sql).get(...values) as Row | undefined
  }

  all(sql: string, ...values: readonly SqliteValue[]): readonly Row[] {
    return this.#prepare(sql).all(...values) as Row[]
  }

  /** Returns the number of rows that were changed. */
  run(sql: string, ...values: readonly SqliteValue[]): number {
    return Number(this.#prepare(sql).run(...values).changes)
  }

  /** Inserts a row; returns its number. */
  insert(sql: string, ...values: readonly SqliteValue[]): number {
    return Number(this.#prepare(sql).run(...values).lastInsertRowid)
  }

  /** Runs the work in a transaction that has the write lock. @throws an error for which `isBusy` is true while another connection has it */
  transact<T>(work: () => T): T {
    this.run('BEGIN IMMEDIATE')
    try {
      const result = work()
      this.run('COMMIT')
      return result
    } catch (error) {
      this.#rollBack()
      throw error
    }
  }

  /** Runs reads that all see the same state of the file. */
  read<T>(work: () => T): T {
    this.run('BEGIN')
    try {
      const result = work()
      this.run('COMMIT')
      return result
    } catch (error) {
      this.#rollBack()
      throw error
    }
  }

  /** The number of rows that this connection has changed so far. */
  get changedRows(): number {
    return Number(this.get('SELECT total_changes() AS changed')?.['changed'])
  }

  close(): void {
    this.#statements.clear()
    this.#database.close()
  }

  /** Rolls back, unless SQLite has done so itself, as it does when the disk is full. */
  #rollBack(): void {
    try {
      this.run('ROLLBACK')
    } catch {
      // There is no transaction any more.
    }
  }

  #prepare(sql: string): SqliteStatement {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.#database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }
}
