/**
 * An SQLite file as the boards and logbooks of this process share it: one connection, one group commit, one bell.
 *
 * A commit of this process is announced to its listeners before the callers of the steps receive their answers. Commits of other processes are
 * announced when they ring the bell, or at the next periodic look, which costs some microseconds.
 */
import { closeSync, existsSync, openSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { RecurringError } from '../core/async/recurring-error.ts'
import { asError, InvalidState, StorageFailure, UnsupportedCapability } from '../core/errors.ts'
import { startInterval } from '../core/time.ts'
import { Bell } from './bell.ts'
import { retryWhileBusy } from './busy.ts'
import { Checkpointer } from './checkpointer.ts'
import { Committer, type StepOptions } from './committer.ts'
import { SqliteConnection, type Synchronous } from './connection.ts'
import { isBusy, toFileError } from './errors.ts'
import { hasTables, prepareTables } from './format.ts'
import { assertLocal, prepareFolder, type SqliteLocation } from './location.ts'
import { LogSync, syncToDisk } from './log-sync.ts'

/** The time between two looks for commits of others that no bell has announced, in milliseconds. */
const COMMIT_POLL_MS = 250

/** Whether the log can be flushed off the event loop. Node's permission model forbids `fdatasync`: then SQLite flushes inside COMMIT. */
const CAN_FLUSH_LOG = process.permission === undefined

const files = new Map<string, SqliteFile>()

/**
 * Opens a file, which all who open it in this process share. Each of them closes it.
 *
 * @throws NotFound, UnsupportedCapability, AccessDenied, IncompatibleVersion, StorageFailure, NotConnected
 */
export async function openSqliteFile(location: SqliteLocation): Promise<SqliteFile> {
  prepareFolder(location)
  const path = resolvePath(location.path)
  assertLocal(path)
  return retryWhileBusy(path, () => {
    const file = files.get(path) ?? new SqliteFile(path)
    files.set(path, file)
    file.addUser(location.synchronous)
    return file
  })
}

/**
 * Returns the path of a file without symbolic links, and creates an empty file where there is none. The lock files and the bell are beside it, so all
 * processes must know it by one name.
 *
 * @throws UnsupportedCapability for a file with several names
 */
function resolvePath(path: string): string {
  try {
    // A file that is there is never opened here: closing it would drop the locks that SQLite has on it.
    if (!existsSync(path)) createFile(path)
    const resolved = realpathSync(path)
    const names = statSync(resolved).nlink
    if (names <= 1) return resolved
    const why = `${path} has ${names} names (hard links), and processes with different names would not see each other`
    throw new UnsupportedCapability(`${why}; remove the others, or copy the file`, { capability: 'sqlite' })
  } catch (error) {
    throw toFileError(error, path)
  }
}

/** Creates an empty file. @throws StorageFailure if its log is there without it: the file was moved away */
function createFile(path: string): void {
  if (existsSync(`${path}-wal`))
    throw new StorageFailure(`${path} is missing, but its log ${basename(path)}-wal is there; put the file back`)
  closeSync(openSync(path, 'a'))
  // After a power cut the log must not be there without the file.
  syncToDisk(dirname(path))
}

/** A file that this process has open. */
export class SqliteFile {
  readonly path: string
  readonly connection: SqliteConnection
  readonly #committer: Committer
  readonly #sync: LogSync
  readonly #checkpointer: Checkpointer
  readonly #bell: Bell
  readonly #identity: string
  readonly #listeners = new Set<() => void>()
  readonly #errorListeners = new Set<(error: Error) => void>()
  readonly #timer: NodeJS.Timeout
  #users = 0
  #isClosed = false
  #changedRows = 0
  readonly #recurring = new RecurringError()
  #synchronous: Synchronous = 'NORMAL'
  /** Whether a flush has begun after the last change of any process. */
  #isFlushBegun = true
  /** The `data_version` after the last transaction: another one means that another process has committed since. */
  #lastVersion: number | undefined
  #dataVersion = -1

  /** @throws an error of SQLite; one for which `isBusy` is true while another process writes */
  constructor(path: string) {
    this.path = path
    this.connection = new SqliteConnection(path)
    try {
      this.#prepare()
      this.#identity = identityOf(path)
      this.#sync = new LogSync(path)
    } catch (error) {
      this.connection.close()
      throw error
    }
    try {
      this.#bell = new Bell(path, () => this.#look())
    } catch (error) {
      this.#sync.close()
      this.connection.close()
      throw error
    }
    this.#checkpointer = new Checkpointer({
      path,
      checkpoint: () => this.#checkpoint(),
      onLongLog: (size) => this.#reportLongLog(size),
    })
    this.#committer = new Committer({
      connection: this.connection,
      path,
      assertUsable: () => this.#assertUsable(),
      onCommitted: (options) => this.#onCommitted(options),
      describeOthers: () => this.#describeOthers(),
    })
    this.#timer = startInterval(() => this.#look(), COMMIT_POLL_MS).unref()
  }

  #prepare(): void {
    const { connection } = this
    connection.exec('PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32000; PRAGMA foreign_keys = ON')
    // Flushes and checkpoints are off the event loop: see `log-sync.ts` and `checkpointer.ts`.
    connection.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL')
    if (!hasTables(connection)) connection.transact(() => prepareTables(connection, this.path))
  }

  /** Returns whether a path leads to this file. */
  isAt(path: string): boolean {
    return identityOf(path) === this.#identity
  }

  /** Adds a user of the file. If any user asks for FULL, it holds for all. */
  addUser(synchronous: Synchronous): void {
    if (synchronous === 'FULL' && !CAN_FLUSH_LOG) this.connection.exec('PRAGMA synchronous = FULL')
    else if (synchronous === 'FULL') this.#synchronous = synchronous
    this.#users += 1
  }

  /** Calls the listener after each commit, of this process or another one, until the returned function is called. */
  onCommit(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /** Calls the listener with errors of the background work, until the returned function is called. */
  onError(listener: (error: Error) => void): () => void {
    this.#errorListeners.add(listener)
    return () => {
      this.#errorListeners.delete(listener)
    }
  }

  /**
   * Returns a warning if this SQLite can damage a file; undefined for a sound one. Releases before 3.51.3, except the last of 3.50, can do so in
   * the rare case that one connection commits and another one resets the log while a third writes it back. Checkpoints here reset the log
   * themselves, with the write lock held, but the checkpoints of other programs may not.
   */
  get versionWarning(): string | undefined {
    const version = String(this.connection.get('SELECT sqlite_version() AS version')?.['version'])
    const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
    const number = major * 1_000_000 + minor * 1_000 + patch
    if (number >= 3_051_003 || (number >= 3_050_007 && number < 3_051_000)) return undefined
    const why = `SQLite ${version} can damage a file that several processes write to, in rare cases (mended in 3.51.3 and 3.50.7)`
    return `${this.path}: ${why}; update Node.js`
  }

  /** Runs a step in the next transaction: see `committer.ts`. @throws InvalidState when the file is closed */
  async run<T>(work: () => T, options?: StepOptions): Promise<T> {
    if (this.#isClosed) throw new InvalidState(`${this.path} is closed`)
    return this.#committer.run(work, options)
  }

  /**
   * Runs a step at once, in a transaction of its own that a power cut may undo, and that is not announced. A heartbeat must not wait for a slow disk,
   * nor for the steps that wait for it.
   *
   * @throws InvalidState when the file is closed; NotConnected, StorageFailure, WritesRefused
   */
  async runAtOnce<T>(work: () => T): Promise<T> {
    return retryWhileBusy(this.path, () => {
      if (this.#isClosed) throw new InvalidState(`${this.path} is closed`)
      this.#assertUsable()
      return this.connection.transact(work)
    })
  }

  /** Runs reads that see one state of the file. @throws AccessDenied, StorageFailure, NotConnected in place of errors of SQLite */
  read<T>(work: () => T): T {
    try {
      return this.connection.read(work)
    } catch (error) {
      throw toFileError(error, this.path)
    }
  }

  /** Ends one use of the file. The last one closes it, when all steps are done. */
  async close(): Promise<void> {
    // The steps of others may never end.
    while (this.#users === 1 && !this.#committer.isIdle) await this.#committer.whenIdle()
    this.#users -= 1
    if (this.#users > 0) return
    this.#isClosed = true
    files.delete(this.path)
    clearInterval(this.#timer)
    this.#bell.close()
    this.#sync.close()
    await this.#checkpointer.close()
    this.connection.close()
  }

  /** Announces a commit. @returns a promise if the commit must be on the disk before it is acknowledged */
  #onCommitted({ waitsForDisk }: Required<StepOptions>): Promise<void> | undefined {
    const { changedRows } = this.connection
    const hasChanges = changedRows !== this.#changedRows
    this.#changedRows = changedRows
    // What other processes have committed may not be on the disk either, and an answer such as "it is there already" rests on it.
    // NaN equals nothing: if it cannot be read, others count as having committed.
    let version = Number.NaN
    this.#inBackground(() => {
      version = this.#readDataVersion()
    })
    if (hasChanges || version !== this.#lastVersion) this.#isFlushBegun = false
    this.#lastVersion = version
    const mustFlush = waitsForDisk && !this.#isFlushBegun && this.#synchronous === 'FULL'
    if (mustFlush) this.#isFlushBegun = true
    const onDisk = mustFlush ? this.#sync.flush() : undefined
    if (hasChanges) this.#inBackground(() => this.#bell.ring())
    this.#announce()
    this.#checkpointer.noteCommit()
    return onDisk
  }

  /** Returns a number that changes with each commit of another connection. */
  #readDataVersion(): number {
    return Number(this.connection.get('PRAGMA data_version')?.['data_version'])
  }

  /** Writes the log back with the connection of this file, as far as other connections allow. */
  #checkpoint(): boolean {
    try {
      return this.connection.get('PRAGMA wal_checkpoint(TRUNCATE)')?.['busy'] === 0
    } catch {
      // A full disk, say: what is committed is safe in the log.
      return false
    }
  }

  /** Announces commits of other processes, if there are any. */
  #look(): void {
    this.#inBackground(() => {
      const version = this.#readDataVersion()
      // If a listener fails, all are called again at the next look.
      if (version === this.#dataVersion || !this.#announce()) return
      this.#dataVersion = version
      this.#recurring.clear()
    })
  }

  /** Calls the listeners. @returns whether all of them succeeded */
  #announce(): boolean {
    return [...this.#listeners].map((listener) => this.#inBackground(listener)).every((isDone) => isDone)
  }

  /** Does work whose errors no caller handles: a damaged file must not end the process. @returns whether it succeeded */
  #inBackground(work: () => void): boolean {
    try {
      work()
      return true
    } catch (error) {
      if (isBusy(error) || this.#isClosed) return false
      const reported = asError(toFileError(error, this.path))
      if (this.#recurring.isNew(reported)) this.#report(reported)
      return false
    }
  }

  #reportLongLog(size: number): void {
    const why = `its log ${basename(this.path)}-wal has grown to ${Math.round(size / 1_048_576)} MB and cannot be written back: another program has a long transaction, or the disk is full`
    this.#report(
      new StorageFailure(`${this.path}: ${why}; end that transaction, or free space`, {
        retryable: true,
      }),
    )
  }

  #report(error: Error): void {
    for (const listener of this.#errorListeners) listener(error)
  }

  /** Returns which other processes use the file, for an error. */
  #describeOthers(): string {
    try {
      const rows = this.connection.all('SELECT pid FROM processes WHERE pid <> ? LIMIT 10', process.pid)
      const pids = rows.map(({ pid }) => String(pid))
      return pids.length === 0 ? '' : `; the processes that use it: ${pids.join(', ')}`
    } catch {
      return ''
    }
  }

  /**
   * @throws StorageFailure if the disk has failed, or the path leads to another file now: what is written here would be lost at the end of the
   * process
   */
  #assertUsable(): void {
    this.#sync.assertSound()
    if (identityOf(this.path) === this.#identity) return
    throw new StorageFailure(
      `${this.path} was deleted or replaced while it was open; put it back, or restart this process. Nothing was changed`,
    )
  }
}

/** Returns the identity of the file that the path leads to, by its disk and its number; empty if there is none. */
function identityOf(path: string): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found ? `${found.dev}/${found.ino}` : ''
}
