/** Opens and closes the file and the session of a board, and the clock of its jobs. */
import { NotFound } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log.ts'
import { encodeText } from '../../../core/texts.ts'
import { openSqliteFile, type SqliteFile, type SqliteLocation } from '../../../sqlite/index.ts'
import type { BackendClock, BackendSession, BackendSink, LeaseWatch } from '../../contract/index.ts'
import { UnreadableValues } from '../unreadable-values.ts'
import type { OpenBoard, SqliteBoard } from './life/open-board.ts'
import { beginLife, type ProcessLife } from './life/process-life.ts'
import { SessionKeeper } from './life/session-keeper.ts'
import type { BoardContext } from './store/change-log.ts'
import { ChangeFeed } from './store/feed.ts'

export interface SqliteSessionOptions {
  readonly uri: string
  readonly location: SqliteLocation
  /** The name of the board in its file. */
  readonly board: string
  readonly who: string
  /** The TTL of the session, in milliseconds. */
  readonly sessionTimeout: number
  readonly log?: Logger
}

export class SqliteSession implements BackendSession {
  readonly timeout: number
  readonly #board: SqliteBoard<unknown>
  readonly #clock: BackendClock
  readonly #options: SqliteSessionOptions

  constructor(board: SqliteBoard<unknown>, clock: BackendClock, options: SqliteSessionOptions) {
    this.timeout = options.sessionTimeout
    this.#board = board
    this.#clock = clock
    this.#options = options
  }

  async open(sink: BackendSink): Promise<void> {
    const { location, log } = this.#options
    const file = await openSqliteFile(location)
    if (file.versionWarning !== undefined) log?.warn(file.versionWarning)
    let life: ProcessLife | undefined
    let open: OpenBoard | undefined
    try {
      const board = await this.#boardNumber(file)
      life = await beginLife(file)
      open = this.#assemble({ file, sink, life, board })
      this.#board.begin(open)
      await open.keeper.begin()
    } catch (error) {
      await open?.keeper.close()
      open?.unlisten()
      this.#board.end()
      await life?.end()
      await file.close()
      throw error
    }
  }

  /** Returns the number of the board. @throws NotFound for a missing board that must not be created */
  async #boardNumber(file: SqliteFile): Promise<number> {
    const { board: name, location } = this.#options
    const { connection } = file
    const stored = encodeText(name)
    const find = () => connection.get('SELECT id FROM boards WHERE name = ?', stored)?.['id']
    const found = file.read(find)
    if (found !== undefined) return Number(found)
    if (!location.create)
      throw new NotFound(`there is no board ${name} in ${file.path}; the first process that opens it creates it`)
    return file.run(() => Number(find() ?? connection.insert('INSERT INTO boards (name) VALUES (?)', stored)))
  }

  #assemble(parts: {
    readonly file: SqliteFile
    readonly sink: BackendSink
    readonly life: ProcessLife
    readonly board: number
  }): OpenBoard {
    const { file, sink, life, board } = parts
    const { uri, who, sessionTimeout: ttl } = this.#options
    const context: BoardContext = { db: file.connection, board, now: () => this.#clock.now() }
    const feed = new ChangeFeed({
      ...{ context, sink, wanted: this.#board.wanted },
      onSessionEnded: (session) => keeper.noteEnded(session),
    })
    const keeper = new SessionKeeper({
      ...{ file, context, life, sink, uri, who, ttl },
      onBegun: () => {
        feed.begin()
        sink.gap()
      },
    })
    const onError = (error: Error) => sink.error(error)
    const ends = [file.onCommit(() => feed.poll()), file.onError(onError), life.onError(onError)]
    return {
      ...{ sink, file, context, feed, life, keeper },
      unreadable: new UnreadableValues({ onError }),
      unlisten: () => {
        for (const end of ends) end()
      },
    }
  }

  async close(): Promise<void> {
    const { open } = this.#board
    if (!open) return
    this.#board.end()
    const { file, life, keeper, unlisten } = open
    await keeper.close()
    unlisten()
    await life.end()
    await file.close()
  }

  /** Returns a watch that costs nothing: the session sends heartbeats whether or not it has claims. */
  watchLease(): LeaseWatch {
    return {
      whenAlive: () => (this.#board.open?.keeper.hasAliveSession ? undefined : this.#whenAlive()),
      [Symbol.dispose]: () => undefined,
    }
  }

  /** @throws InvalidState while the board is not open */
  async #whenAlive(): Promise<void> {
    await this.#board.requireOpen().keeper.whenAlive()
  }

  isAlive(session: string): boolean {
    return this.#board.open?.keeper.isAlive(session) === true
  }

  leftMs(): number | undefined {
    return this.#board.open?.keeper.current?.lease.leftMs
  }
}

export class SqliteClock implements BackendClock {
  /** Returns the time of this machine, which all processes that use the file have in common. */
  now(): number {
    return Date.now()
  }

  async read(): Promise<void> {
    // All processes that use the file have the clock of this machine.
  }
}
