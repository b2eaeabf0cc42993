/** The open board of a SQLite backend, which all of its roles share. */
import { InvalidState, NotConnected } from '../../../../core/errors.ts'
import type { SqliteFile } from '../../../../sqlite/index.ts'
import type { BackendSink } from '../../../contract/index.ts'
import type { UnreadableValues } from '../../unreadable-values.ts'
import type { BoardContext } from '../store/change-log.ts'
import type { ChangeFeed, Wanted } from '../store/feed.ts'
import type { ProcessLife } from './process-life.ts'
import type { LiveSession, SessionKeeper } from './session-keeper.ts'

/** The parts of an open board. */
export interface OpenBoard {
  readonly sink: BackendSink
  readonly file: SqliteFile
  readonly context: BoardContext
  readonly feed: ChangeFeed
  readonly life: ProcessLife
  readonly keeper: SessionKeeper
  readonly unreadable: UnreadableValues
  /** Ends the listening to commits and errors. */
  readonly unlisten: () => void
}

/** @typeParam Steps the steps that a role needs */
export class SqliteBoard<Steps> {
  readonly wanted: Wanted = { subscribed: false, followed: new Set(), kinds: new Set(), batches: new Set() }
  readonly #uri: string
  readonly #toSteps: (context: BoardContext) => Steps
  #open: (OpenBoard & { readonly steps: Steps }) | undefined

  /** @param options.toSteps returns the steps of a board whose file is open */
  constructor(options: { readonly uri: string; readonly toSteps: (context: BoardContext) => Steps }) {
    this.#uri = options.uri
    this.#toSteps = options.toSteps
  }

  /** The parts of the board; undefined while it is not open. */
  get open(): OpenBoard | undefined {
    return this.#open
  }

  begin(open: OpenBoard): void {
    this.#open = { ...open, steps: this.#toSteps(open.context) }
  }

  /** Forgets the parts of the board, and its subscriptions. */
  end(): void {
    this.#open = undefined
    this.wanted.subscribed = false
    for (const names of [this.wanted.followed, this.wanted.kinds, this.wanted.batches]) names.clear()
  }

  /** Runs a step in the next transaction of the file. */
  step<T>(step: (steps: Steps) => T): Promise<T> {
    const { file, steps } = this.requireOpen()
    return file.run(() => step(steps))
  }

  read<T>(read: (steps: Steps) => T): T {
    const { file, steps } = this.requireOpen()
    return file.read(() => read(steps))
  }

  /** Reads for a view: without a session no changes arrive, and a view must not take itself for current. */
  readInSession<T>(read: (steps: Steps) => T): T {
    this.requireSession('listing')
    return this.read(read)
  }

  /** Begins to report changes of these. What happened before is not reported. */
  startWanting(names: Set<string>, added: readonly string[]): void {
    const { feed } = this.requireOpen()
    feed.poll()
    for (const name of added) names.add(name)
  }

  /** @throws InvalidState while the board is not open */
  requireOpen(): OpenBoard & { readonly steps: Steps } {
    if (this.#open) return this.#open
    throw new InvalidState(`board ${this.#uri} is not open`)
  }

  /** @throws NotConnected while the board has no session */
  requireSession(what: string): LiveSession {
    const session = this.requireOpen().keeper.current
    if (session) return session
    throw new NotConnected(`${what}: no session with ${this.#uri}; try again when the board is connected`)
  }
}
