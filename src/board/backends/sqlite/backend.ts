/**
 * The SQLite backend: boards in a file, for the processes of one machine. Each step is a synchronous function that runs in a transaction of the
 * file (`sqlite/committer.ts`), and `tables.ts` has the steps by role. `session.ts` keeps the session alive, `process-life.ts` frees what dead
 * processes held, and `feed.ts` delivers changes.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { InvalidState, NotConnected, NotFound } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log.ts'
import { catchError, type Result, settleEach } from '../../../core/result.ts'
import { encodeText } from '../../../core/texts.ts'
import { openSqliteFile, type SqliteFile, type SqliteLocation } from '../../../sqlite/index.ts'
import {
  ALL_CAPABILITIES,
  type Backend,
  type BackendSink,
  type BatchStore,
  type BoardSections,
  type Cancellation,
  type CancelRequest,
  type ClaimGrant,
  type ClaimRequest,
  type DiscardRequest,
  type Entity,
  type GateRequest,
  type JobStatus,
  type Posted,
  type PostRequest,
  type ReleaseOutcome,
  type ReleaseRequest,
  type Replaced,
  type ReplaceRequest,
  type RestoreOptions,
  type RestoreOutcome,
  type SessionHold,
  type Settlement,
  type StoredJob,
  type TrashedEntry,
  type TrashListing,
  type UnreadableJob,
  type WriteRequest,
  type Written,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { EndedJob } from '../../model/ended-job.ts'
import type { LimitUse, TokenRequest, TokensTaken } from '../../model/limits.ts'
import { encodePosting, MAX_POSTING_BYTES, type Posting } from '../../model/posting.ts'
import type { RecordName, StoredRecord } from '../../model/record.ts'
import { pagesOf, selectTrash } from '../trash-pages.ts'
import { UnreadableValues } from '../unreadable-values.ts'
import type { WindowSize } from '../window-size.ts'
import type { BoardPlace } from './changes.ts'
import { ChangeFeed, type Wanted } from './feed.ts'
import { encodePost } from './posting.ts'
import { beginLife, type ProcessLife } from './process-life.ts'
import { SessionKeeper, type SqliteSession } from './session.ts'
import { endSession } from './sessions.ts'
import { type BoardTables, boardTables } from './tables.ts'

export interface SqliteBackendOptions extends WindowSize {
  readonly uri: string
  readonly location: SqliteLocation
  /** The name of the board in its file. */
  readonly board: string
  readonly who: string
  /** The TTL of the session, in milliseconds. */
  readonly sessionTimeout: number
  readonly log?: Logger
}

/** The parts of an open board. */
interface OpenBoard {
  readonly sink: BackendSink
  readonly file: SqliteFile
  readonly place: BoardPlace
  readonly tables: BoardTables
  readonly feed: ChangeFeed
  readonly life: ProcessLife
  readonly keeper: SessionKeeper
  readonly unreadable: UnreadableValues
  /** Ends the listening to commits and errors. */
  readonly unlisten: () => void
}

export class SqliteBackend implements Backend {
  readonly uri: string
  readonly capabilities = ALL_CAPABILITIES
  readonly sessionTimeout: number
  readonly sections: BoardSections
  readonly #options: SqliteBackendOptions
  readonly #wanted: Wanted = { subscribed: false, followed: new Set(), kinds: new Set(), batches: new Set() }
  #board: OpenBoard | undefined

  constructor(options: SqliteBackendOptions) {
    this.uri = options.uri
    this.sessionTimeout = options.sessionTimeout
    this.#options = options
    this.sections = {
      window: options.window,
      windowBytes: options.windowBytes,
      range: async (asked) => this.#readInSession(({ sections }) => sections.range(asked)),
      delayed: async (asked) => this.#readInSession(({ sections }) => sections.delayed(asked)),
      claimed: async () => this.#readInSession(({ sections }) => sections.claimed()),
      statusOf: async (ids) => this.#readInSession(({ jobs }) => ids.map((id) => toSectionStatus(jobs.status(id)))),
      find: async (uuid) => this.#readInSession(({ sections }) => sections.find(uuid)),
    }
  }

  readonly batches: BatchStore = {
    create: (batch) => this.#step(({ batches }) => batches.create(batch)),
    find: async (uuid) => this.#read(({ batches }) => batches.find(uuid)),
    list: async ({ limit }) => this.#read(({ batches }) => batches.newest(limit)),
    change: (uuid, change) =>
      this.#step(({ batches, jobs }) => {
        const before = batches.require(uuid)
        jobs.postCallback(batches.change(uuid, change))
        // The change may have ended the batch, and so have removed it as the oldest one.
        return batches.find(uuid) ?? before
      }),
    jobs: async (uuid) => this.#read(({ batches }) => batches.jobs(uuid)),
    watch: async (uuid) => {
      this.#startWanting(this.#wanted.batches, [uuid])
    },
    unwatch: async (uuid) => {
      this.#wanted.batches.delete(uuid)
    },
  }

  async open(sink: BackendSink): Promise<void> {
    const { location, board: name, sessionTimeout: ttl, who } = this.#options
    const file = await openSqliteFile(location)
    if (file.versionWarning !== undefined) this.#options.log?.warn(file.versionWarning)
    let life: ProcessLife | undefined
    try {
      const board = await this.#boardNumber(file, name)
      life = await beginLife(file)
      this.#board = this.#assemble({ file, sink, life, board, ttl, who })
      await this.#board.keeper.begin()
    } catch (error) {
      await this.#board?.keeper.close()
      this.#board?.unlisten()
      this.#board = undefined
      await life?.end()
      await file.close()
      throw error
    }
  }

  /** Returns the number of the board. @throws NotFound for a missing board that must not be created */
  async #boardNumber(file: SqliteFile, name: string): Promise<number> {
    const { connection } = file
    const stored = encodeText(name)
    const find = () => connection.get('SELECT id FROM boards WHERE name = ?', stored)?.['id']
    const found = file.read(find)
    if (found !== undefined) return Number(found)
    if (!this.#options.location.create)
      throw new NotFound(`there is no board ${name} in ${file.path}; the first process that opens it creates it`)
    return file.run(() => Number(find() ?? connection.insert('INSERT INTO boards (name) VALUES (?)', stored)))
  }

  #assemble(parts: {
    readonly file: SqliteFile
    readonly sink: BackendSink
    readonly life: ProcessLife
    readonly board: number
    readonly ttl: number
    readonly who: string
  }): OpenBoard {
    const { file, sink, life, board, ttl, who } = parts
    const place: BoardPlace = { db: file.connection, board, now: () => this.now() }
    const feed = new ChangeFeed({
      ...{ place, sink, wanted: this.#wanted },
      onSessionEnded: (session) => keeper.noteEnded(session),
    })
    const keeper = new SessionKeeper({
      ...{ file, place, life, sink, uri: this.uri, who, ttl },
      onBegun: () => {
        feed.begin()
        sink.gap()
      },
    })
    const onError = (error: Error) => sink.error(error)
    const ends = [file.onCommit(() => feed.poll()), file.onError(onError), life.onError(onError)]
    return {
      ...{ sink, file, place, feed, life, keeper, tables: boardTables(place) },
      unreadable: new UnreadableValues({ onError: (error) => sink.error(error) }),
      unlisten: () => {
        for (const end of ends) end()
      },
    }
  }

  async subscribe(): Promise<void> {
    const { sink, feed } = this.#requireOpen()
    this.#requireSession('subscribing')
    this.#wanted.subscribed = true
    feed.begin()
    sink.gap()
  }

  async unsubscribe(): Promise<void> {
    this.#wanted.subscribed = false
  }

  async follow(ids: readonly string[]): Promise<JobStatus[]> {
    this.#requireSession('following jobs')
    this.#startWanting(this.#wanted.followed, [])
    return this.#read(({ jobs }) =>
      ids.map((id) => {
        const status = jobs.status(id)
        if (typeof status === 'object') this.#wanted.followed.add(id)
        return status
      }),
    )
  }

  async unfollow(ids: readonly string[]): Promise<void> {
    for (const id of ids) this.#wanted.followed.delete(id)
  }

  async close(): Promise<void> {
    const board = this.#board
    if (!board) return
    this.#board = undefined
    const { file, life, keeper, unlisten } = board
    Object.assign(this.#wanted, { subscribed: false })
    for (const names of [this.#wanted.followed, this.#wanted.kinds, this.#wanted.batches]) names.clear()
    await keeper.close()
    unlisten()
    await life.end()
    await file.close()
  }

  /** Ends the session as another process does that takes it for dead. For tests. */
  async expireSession(): Promise<void> {
    const { file, place } = this.#requireOpen()
    const { id } = this.#requireSession('expiring')
    await file.run(() => endSession(place.db, { session: id, board: place.board }))
  }

  async post(request: PostRequest): Promise<Posted> {
    const post = encodePost(request)
    return this.#step(({ posting }) => posting.post(post))
  }

  async claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]> {
    const { id, label } = this.#requireSession('claiming')
    return settleEach(choices, (choice) =>
      this.#step(({ claims }) => ({ session: label, ...claims.claim(choice, id) })),
    )
  }

  async limitsRevision(): Promise<number> {
    return this.#read(({ limits }) => limits.revision)
  }

  async limitUse(keys?: readonly string[]): Promise<readonly LimitUse[]> {
    return this.#read(({ limits }) => limits.use(keys))
  }

  async takeTokens(request: TokenRequest): Promise<TokensTaken> {
    return this.#step(({ limits }) => limits.takeTokens(request))
  }

  async replace(request: ReplaceRequest): Promise<Replaced> {
    const bytes = encodePosting(request.posting, { encoding: 'msgpack', limit: MAX_POSTING_BYTES })
    return this.#step(({ posting }) => posting.replace(request, bytes))
  }

  async settle(settlement: Settlement): Promise<void> {
    const { sink, keeper } = this.#requireOpen()
    const session = keeper.current
    const isOurs = session?.label === settlement.session
    const doomed = isOurs ? await this.#step(({ claims }) => claims.settle(settlement, session.id)) : undefined
    if (!doomed) throw refusalError(`job ${settlement.posting.uuid}`, { why: 'lost' })
    if (doomed.length > 0) sink.doomed(doomed)
  }

  async release(request: ReleaseRequest): Promise<ReleaseOutcome> {
    return this.#step(({ claims }) => claims.release(request))
  }

  async discard(discarded: DiscardRequest): Promise<void> {
    const { sink } = this.#requireOpen()
    const doomed = await this.#step(({ claims }) => claims.discard(discarded))
    if (doomed.length > 0) sink.doomed(doomed)
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    return this.#step(({ claims, jobs }) =>
      request.kind === 'gate' ? claims.setPaused(request.paused) : jobs.cancel(request.id, request),
    )
  }

  async restore(entry: TrashedEntry, posting: Posting, { after = [] }: RestoreOptions = {}): Promise<RestoreOutcome> {
    return this.#step(({ trash }) => trash.restore(entry, posting, after))
  }

  async purge(entry: TrashedEntry): Promise<void> {
    return this.#step(({ trash }) => trash.purge(entry))
  }

  async dependencies(
    id: string,
  ): Promise<{ readonly waitsFor: readonly string[]; readonly dependents: readonly string[] }> {
    return this.#read(({ dependencies }) => dependencies.of(id))
  }

  async history({ limit }: { readonly limit: number }): Promise<readonly EndedJob[]> {
    const { unreadable } = this.#requireOpen()
    return this.#read(({ history }) => history.newest(limit, unreadable))
  }

  async endedJobs(uuids: readonly string[]): Promise<readonly (EndedJob | undefined)[]> {
    return this.#read(({ history }) => uuids.map((uuid) => history.find(uuid)))
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    return this.#read(({ jobs }) => ids.map((id) => jobs.read(id)))
  }

  async owner(id: string): Promise<string | undefined> {
    return this.#read(({ jobs }) => jobs.owner(id))
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return this.#read(({ jobs }) => jobs.cancellation(id))
  }

  async barrier(): Promise<void> {
    // Callers that look again and again must not keep the process from its other work.
    await nextTurn()
    this.#requireSession('looking')
    this.#requireOpen().feed.poll()
  }

  async *trashed(listing?: TrashListing): AsyncGenerator<TrashedEntry, void, undefined> {
    const { sink } = this.#requireOpen()
    const index = this.#read(({ trash }) => trash.index())
    for (const page of pagesOf(selectTrash(index, listing, ({ id }) => id))) {
      for (const { id } of page) {
        const read = catchError(() => this.#read(({ trash }) => trash.entry(id)))
        if ('error' in read) sink.error(new Error(`trash entry ${id} is unreadable`, { cause: read.error }))
        else if (read.value) yield read.value
      }
      await nextTurn()
    }
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    const read = catchError(() => this.#read(({ trash }) => trash.entry(id)))
    return 'error' in read ? undefined : read.value
  }

  async findTrashed(uuid: string): Promise<TrashedEntry | undefined> {
    const id = this.#read(({ trash }) => trash.find(uuid))
    return id === undefined ? undefined : this.trashedEntry(id)
  }

  async write({ changes, posts }: WriteRequest): Promise<Written> {
    const encoded = posts.map(encodePost)
    return this.#step(({ posting }) => posting.write(changes, encoded))
  }

  async records(kind: string): Promise<StoredRecord[]> {
    return this.#read(({ records }) => records.list(kind))
  }

  async record(name: RecordName): Promise<StoredRecord | undefined> {
    return this.#read(({ records }) => records.get(name))
  }

  async watchRecords(kind: string): Promise<void> {
    this.#startWanting(this.#wanted.kinds, [kind])
  }

  async unwatchRecords(kind: string): Promise<void> {
    this.#wanted.kinds.delete(kind)
  }

  async releaseOrphans(): Promise<void> {
    // Resources are held by the job: without its claim none is left.
  }

  async resourceHolder(): Promise<undefined> {
    // Other programs hold no resources of these boards.
  }

  async register(entity: Entity): Promise<void> {
    const { id } = this.#requireSession(`registering ${entity.kind} ${entity.name}`)
    return this.#step(({ entities }) => entities.register(entity, id))
  }

  async unregister(entity: Entity): Promise<void> {
    if (this.#board) await this.#step(({ entities }) => entities.unregister(entity))
  }

  async entities(kind: string): Promise<Entity[]> {
    return this.#read(({ entities }) => entities.list(kind))
  }

  /** Returns the time of this machine, which all processes that use the file have in common. */
  now(): number {
    return Date.now()
  }

  /** Returns a hold that costs nothing: the session sends heartbeats whether or not it has claims. */
  holdSession(): SessionHold {
    return { whenAlive: async () => this.#requireOpen().keeper.whenAlive(), [Symbol.dispose]: () => undefined }
  }

  async readClock(): Promise<void> {
    // All processes that use the file have the clock of this machine.
  }

  alive(session: string): boolean {
    return this.#board?.keeper.isAlive(session) === true
  }

  sessionLeft(): number | undefined {
    return this.#board?.keeper.current?.lease.leftMs
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  /** Runs a step in the next transaction of the file. */
  #step<T>(step: (tables: BoardTables) => T): Promise<T> {
    const { file, tables } = this.#requireOpen()
    return file.run(() => step(tables))
  }

  #read<T>(read: (tables: BoardTables) => T): T {
    const { file, tables } = this.#requireOpen()
    return file.read(() => read(tables))
  }

  /** Reads for a view: without a session no changes arrive, and a view must not take itself for current. */
  #readInSession<T>(read: (tables: BoardTables) => T): T {
    this.#requireSession('listing')
    return this.#read(read)
  }

  /** Begins to report changes of these. What happened before is not reported. */
  #startWanting(names: Set<string>, added: readonly string[]): void {
    const { feed } = this.#requireOpen()
    feed.poll()
    for (const name of added) names.add(name)
  }

  #requireOpen(): OpenBoard {
    if (this.#board) return this.#board
    throw new InvalidState(`board ${this.uri} is not open`)
  }

  #requireSession(what: string): SqliteSession {
    const session = this.#requireOpen().keeper.current
    if (session) return session
    throw new NotConnected(`${what}: no session with ${this.uri}; try again when the board is connected`)
  }
}

function toSectionStatus(status: JobStatus): 'there' | 'trashed' | 'gone' {
  return typeof status === 'object' ? 'there' : status
}
