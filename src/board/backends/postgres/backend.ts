/**
 * The Postgres backend implements `Backend` with functions of the database (`functions/`) over a few connections.
 * `session.ts` keeps the session alive, `function-caller.ts` sends each change at most once, `feed.ts` delivers the changes of
 * others, and `clean-up.ts` takes over from dead participants.
 */

import { rejectOnAbort } from '../../../core/async/abort.ts'
import { InvalidPosting, InvalidState, isError, NotConnected } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log.ts'
import { type Result, settleEach } from '../../../core/result.ts'
import { withinTime } from '../../../core/time.ts'
import {
  type PostgresConnection,
  type PostgresLocation,
  PostgresPool,
  warnOfForeignOwner,
} from '../../../postgres/index.ts'
import {
  ALL_CAPABILITIES,
  type Backend,
  type BackendSink,
  type BatchStore,
  type BoardSections,
  type CallerTransactions,
  type Cancellation,
  type CancelRequest,
  type ClaimGrant,
  type ClaimRequest,
  type DiscardRequest,
  type Entity,
  type GateRequest,
  type JobStatus,
  type OrphanedClaim,
  type Posted,
  type PostRequest,
  type ReleaseOutcome,
  type ReleaseRequest,
  type Replaced,
  type ReplaceRequest,
  type ResourceHolder,
  type RestoreOptions,
  type RestoreOutcome,
  type SessionHold,
  type Settlement,
  type StoredJob,
  type TransactionState,
  type TrashedEntry,
  type TrashListing,
  type UnreadableJob,
  type WriteRequest,
  type Written,
} from '../../contract/index.ts'
import type { EndedJob } from '../../model/ended-job.ts'
import type { LimitUse, TokenRequest, TokensTaken } from '../../model/limits.ts'
import type { Posting } from '../../model/posting.ts'
import type { RecordName, StoredRecord } from '../../model/record.ts'
import { ServerClock } from '../server-clock.ts'
import { pagesOf, selectTrash } from '../trash-pages.ts'
import { UnreadableValues } from '../unreadable-values.ts'
import type { WindowSize } from '../window-size.ts'
import { BatchRows } from './batch-rows.ts'
import { readIdentity, readTransactionState } from './caller-transaction.ts'
import { CleanUp } from './clean-up.ts'
import { translateErrors } from './errors.ts'
import { type FeedSource, PostgresChangeFeed, parseFollowed } from './feed.ts'
import { FunctionCaller } from './function-caller.ts'
import { HistoryRows } from './history-rows.ts'
import { LimitRows } from './limit-rows.ts'
import { BoardReader } from './reader.ts'
import { parseRecordNotification, RecordRows } from './record-rows.ts'
import { jobId } from './records.ts'
import { ResourceLocks } from './resource-locks.ts'
import { batchesChannel, channelName, openBoardRow, recordsChannel } from './schema.ts'
import { PostgresSections } from './sections.ts'
import { type PostgresSession, SessionKeeper } from './session.ts'
import { BoardWriter } from './writer.ts'

export interface PostgresBackendOptions extends WindowSize {
  readonly uri: string
  readonly location: PostgresLocation
  /** The name of the board in its schema. */
  readonly board: string
  readonly who: string
  readonly create?: boolean
  readonly log?: Logger
  /** The TTL of the session, in milliseconds; `scanPeriod` is in milliseconds, too. */
  readonly sessionTimeout: number
  readonly scanPeriod: number
  /** Whether the resources of claimed jobs are advisory locks of the database, too. */
  readonly advisoryLocks: boolean
  /** Whether the backend listens to notifications; false only in tests. */
  readonly listen?: boolean
}

/** The components of an open board. */
interface PostgresComponents {
  readonly sink: BackendSink
  readonly reader: BoardReader
  readonly sections: PostgresSections
  readonly changer: BoardWriter
  readonly feed: PostgresChangeFeed
  readonly keeper: SessionKeeper
  readonly locks: ResourceLocks
  readonly records: RecordRows
  readonly limits: LimitRows
  readonly history: HistoryRows
  readonly number: number
  readonly batchChanges: FunctionCaller
  readonly requests: readonly FunctionCaller[]
}

function toFeedSource(connection: PostgresConnection): FeedSource {
  return { connection, onError: (error) => connection.disconnect(error) }
}

/** The delay between a failed read and the gap that makes the view list the board again, in milliseconds. */
const RETRY_LISTING_AFTER_MS = 250
/** The time limit for pending work while the board is closed, in milliseconds. */
const CLOSE_TIMEOUT_MS = 5_000
/** Limit of reported jobs with an invalid number. */
const MAX_REPORTED = 1_000

export class PostgresBackend implements Backend {
  readonly uri: string
  readonly capabilities = ALL_CAPABILITIES
  readonly callerTransactions: CallerTransactions = {
    post: (client, request) => this.#requireOpen.changer.postInTransaction(client, request),
    stateOf: (transaction) => this.#transactionState(transaction),
  }
  readonly sessionTimeout: number
  readonly sections: BoardSections
  readonly batches: BatchStore
  readonly #options: PostgresBackendOptions
  readonly #pool: PostgresPool
  readonly #clock = new ServerClock()
  readonly #closing = new AbortController()
  readonly #registering = new Set<Promise<void>>()
  #board: PostgresComponents | undefined
  /** Whether changes are to be reported. */
  #isSubscribed = false
  /** Whether jobs were followed: then a change of the connection is a gap. */
  #isFollowing = false
  /** The kinds of records whose changes are to be reported. */
  readonly #watchedKinds = new Set<string>()
  /** The uuids of the batches whose changes are to be reported. */
  readonly #watchedBatches = new Set<string>()
  #retryListingTimer: NodeJS.Timeout | undefined

  constructor(options: PostgresBackendOptions) {
    this.uri = options.uri
    this.sessionTimeout = options.sessionTimeout
    this.#options = options
    this.#pool = new PostgresPool(options.location)
    this.sections = {
      window: options.window,
      windowBytes: options.windowBytes,
      range: (asked) => this.#translateReadErrors(() => this.#sections.range(asked)),
      delayed: (asked) => this.#translateReadErrors(() => this.#sections.delayed(asked)),
      claimed: () => this.#translateReadErrors(() => this.#sections.claimed()),
      statusOf: (ids) => this.#translateReadErrors(() => this.#sections.statusOf(ids)),
      find: (uuid) => this.#sections.find(uuid),
    }
    this.batches = new BatchRows({
      driver: this.#pool,
      schema: options.location.schema,
      board: () => this.#requireOpen,
      watch: (uuid) => this.#watch(this.#watchedBatches, uuid),
      unwatch: (uuid) => this.#unwatch(this.#watchedBatches, uuid),
    })
  }

  async open(sink: BackendSink, { signal }: { signal: AbortSignal }): Promise<void> {
    const { location, board: name, create, log } = this.#options
    const wanted = { schema: location.schema, name, ...(create === undefined ? {} : { create }) }
    const opening = async () => {
      const row = await openBoardRow(this.#pool, wanted)
      await warnOfForeignOwner(this.#pool, { schema: location.schema, log })
      return row
    }
    const { number, paused } = await translateErrors(`opening ${this.uri}`, () => rejectOnAbort(opening(), signal))
    this.#board = this.#createComponents(number, sink)
    await this.#board.keeper.start({ signal })
    sink.paused(paused)
  }

  async subscribe(): Promise<void> {
    const { keeper, feed, sink } = this.#requireOpen
    this.#isSubscribed = true
    try {
      const connection = await keeper.listen()
      await translateErrors(`subscribing to ${this.uri}`, () => feed.attach(toFeedSource(connection)))
      sink.gap()
    } catch (error) {
      this.#isSubscribed = false
      feed.detach()
      throw error
    }
  }

  async unsubscribe(): Promise<void> {
    this.#isSubscribed = false
    this.#board?.feed.detach()
    await this.#board?.keeper.unlisten()
  }

  async follow(ids: readonly string[]): Promise<JobStatus[]> {
    const { keeper, reader } = this.#requireOpen
    this.#isFollowing = true
    const session = await keeper.listenToOwn()
    const statuses = await translateErrors(`following jobs of ${this.uri}`, () => reader.follow(session, ids))
    if (statuses) return statuses
    throw this.#notConnectedError('following jobs')
  }

  async unfollow(ids: readonly string[]): Promise<void> {
    const what = 'ending to follow jobs'
    const session = this.#requireSession(what)
    await translateErrors(what, () => this.#requireOpen.reader.unfollow(session, ids))
  }

  async close(): Promise<void> {
    const board = this.#board
    this.#board = undefined
    clearTimeout(this.#retryListingTimer)
    this.#closing.abort(new NotConnected(`${this.uri} is closed`))
    if (board) await this.#shutDown(board)
    await withinTime(CLOSE_TIMEOUT_MS, this.#pool.close())
  }

  async #shutDown({ sink, changer, feed, keeper, requests }: PostgresComponents): Promise<void> {
    const idle = Promise.all([changer.idle(), ...requests.map((request) => request.idle())])
    await withinTime(CLOSE_TIMEOUT_MS, idle)
    feed.detach()
    const session = keeper.current
    // The session event comes first: the owner must receive it before another owner can claim its jobs.
    sink.session({ state: 'closed', session: session?.label ?? 'none' })
    for (const request of requests) if (!session) request.disconnect(this.#closing.signal.reason)
    await keeper.close()
    await withinTime(CLOSE_TIMEOUT_MS, Promise.all(requests.map((request) => request.close())))
  }

  async post(request: PostRequest): Promise<Posted> {
    return this.#requireOpen.changer.post(request)
  }

  async replace(request: ReplaceRequest): Promise<Replaced> {
    return this.#requireOpen.changer.replace(request)
  }

  async claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]> {
    const { changer } = this.#requireOpen
    return settleEach(choices, (choice) => changer.claim(choice))
  }

  /** Unlocks the resources of a claim that was taken away. */
  async releaseOrphans({ id }: OrphanedClaim): Promise<void> {
    await this.#board?.locks.release([id])
  }

  async resourceHolder(posting: Posting): Promise<ResourceHolder | undefined> {
    return translateErrors('looking for locked resources', () => this.#requireOpen.locks.holderOf(this.#pool, posting))
  }

  async settle(settlement: Settlement): Promise<void> {
    return this.#requireOpen.changer.settle(settlement)
  }

  async release(request: ReleaseRequest): Promise<ReleaseOutcome> {
    return this.#requireOpen.changer.release(request)
  }

  async discard(discarded: DiscardRequest): Promise<void> {
    return this.#requireOpen.changer.discard(discarded)
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    await this.#requireOpen.changer.request(request)
  }

  async restore(entry: TrashedEntry, posting: Posting, options: RestoreOptions = {}): Promise<RestoreOutcome> {
    return this.#requireOpen.changer.restore(entry, posting, options)
  }

  async purge(entry: TrashedEntry): Promise<void> {
    await this.#requireOpen.changer.purge(entry)
  }

  async dependencies(
    id: string,
  ): Promise<{ readonly waitsFor: readonly string[]; readonly dependents: readonly string[] }> {
    return translateErrors(`looking for the dependencies of ${id}`, () => this.#requireOpen.reader.dependencies(id))
  }

  async history({ limit }: { readonly limit: number }): Promise<readonly EndedJob[]> {
    return translateErrors(`reading the history of ${this.uri}`, () => this.#requireOpen.history.newest(limit))
  }

  async endedJobs(uuids: readonly string[]): Promise<readonly (EndedJob | undefined)[]> {
    return translateErrors(`reading the history of ${this.uri}`, () => this.#requireOpen.history.find(uuids))
  }

  async write(request: WriteRequest): Promise<Written> {
    return this.#requireOpen.records.write(request)
  }

  async limitsRevision(): Promise<number> {
    return this.#requireOpen.limits.revision()
  }

  async limitUse(keys?: readonly string[]): Promise<readonly LimitUse[]> {
    return this.#requireOpen.limits.use(keys)
  }

  async takeTokens(request: TokenRequest): Promise<TokensTaken> {
    return this.#requireOpen.limits.take(request)
  }

  async records(kind: string): Promise<StoredRecord[]> {
    return this.#requireOpen.records.list(kind)
  }

  async record(name: RecordName): Promise<StoredRecord | undefined> {
    return this.#requireOpen.records.get(name)
  }

  async watchRecords(kind: string): Promise<void> {
    await this.#watch(this.#watchedKinds, kind)
  }

  async unwatchRecords(kind: string): Promise<void> {
    await this.#unwatch(this.#watchedKinds, kind)
  }

  /** Listens to changes of what is watched: kinds of records, or batches. @throws NotConnected */
  async #watch(watched: Set<string>, name: string): Promise<void> {
    const { keeper, number } = this.#requireOpen
    watched.add(name)
    try {
      await keeper.listenTo(this.#hintChannel(watched, number))
    } catch (error) {
      watched.delete(name)
      throw error
    }
  }

  async #unwatch(watched: Set<string>, name: string): Promise<void> {
    watched.delete(name)
    if (this.#board && watched.size === 0)
      await this.#board.keeper.unlistenTo(this.#hintChannel(watched, this.#board.number))
  }

  #hintChannel(watched: Set<string>, board: number): string {
    const { schema } = this.#options.location
    return watched === this.#watchedBatches ? batchesChannel(schema, board) : recordsChannel(schema, board)
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    return this.#translateReadErrors(() =>
      translateErrors(`reading ${this.uri}`, () => this.#requireOpen.reader.read(ids)),
    )
  }

  async owner(id: string): Promise<string | undefined> {
    return translateErrors(`looking for the owner of ${id}`, () => this.#requireOpen.reader.owner(id))
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return translateErrors(`looking for who cancelled ${id}`, () => this.#requireOpen.reader.cancellation(id))
  }

  async barrier(): Promise<void> {
    const session = this.#requireSession('looking')
    await this.#requireOpen.feed.caughtUp()
    if (this.#requireOpen.keeper.current !== session) throw this.#notConnectedError('looking')
  }

  async *trashed(listing?: TrashListing): AsyncGenerator<TrashedEntry, void, undefined> {
    const { reader, sink } = this.#requireOpen
    const what = `reading the trash of ${this.uri}`
    const index = await translateErrors(what, () => reader.trashIndex())
    for (const page of pagesOf(selectTrash(index, listing, ({ id }) => jobId(id)))) {
      const entries = await translateErrors(what, () => reader.trashPage(page))
      for (const entry of listing?.newestFirst ? entries.toReversed() : entries)
        if (isError(entry)) sink.error(entry)
        else yield entry
    }
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    return translateErrors(`looking for ${id} in the trash`, () => this.#requireOpen.reader.trashedEntry(id))
  }

  async findTrashed(uuid: string): Promise<TrashedEntry | undefined> {
    return translateErrors(`looking for ${uuid} in the trash`, () => this.#requireOpen.reader.findTrashed(uuid))
  }

  async register(entity: Entity): Promise<void> {
    const what = `registering ${entity.kind} ${entity.name}`
    const registered = translateErrors(what, () =>
      this.#requireOpen.reader.register(entity, this.#requireSession(what)),
    )
    const done = registered.catch(() => undefined).finally(() => this.#registering.delete(done))
    this.#registering.add(done)
    await registered
  }

  async unregister(entity: Entity): Promise<void> {
    await translateErrors(`unregistering ${entity.kind} ${entity.name}`, async () =>
      this.#board?.reader.unregister(entity),
    )
  }

  async entities(kind: string): Promise<Entity[]> {
    // Queries use several connections, so entities whose registration is pending are visible only after it.
    await Promise.all(this.#registering)
    return translateErrors(`listing every ${kind}`, () => this.#requireOpen.reader.entities(kind))
  }

  now(): number {
    return this.#clock.now()
  }

  async readClock(): Promise<void> {
    if (this.#clock.isKnown) return
    const reading = () =>
      this.#pool.query('SELECT extract(epoch FROM clock_timestamp())::float8 * 1000::float8 AS at', [])
    const { rows } = await translateErrors(`reading the clock of ${this.uri}`, reading)
    this.#clock.observe(Number(rows[0]?.['at']))
  }

  /** Returns a hold that costs nothing: the session sends heartbeats whether or not it has claims. */
  holdSession(): SessionHold {
    return { whenAlive: async () => this.#requireOpen.keeper.whenAlive(), [Symbol.dispose]: () => undefined }
  }

  alive(session: string): boolean {
    return this.#board?.keeper.isAlive(session) === true
  }

  sessionLeft(): number | undefined {
    return this.#board?.keeper.leaseLeftMs
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  async #transactionState(transaction: string): Promise<TransactionState> {
    const { schema } = this.#options.location
    return translateErrors('looking for the end of a transaction', () =>
      readTransactionState(this.#pool, { post: transaction, schema }),
    )
  }

  get #requireOpen(): PostgresComponents {
    if (this.#board) return this.#board
    throw new InvalidState(`board ${this.uri} is not open`)
  }

  /**
   * Returns the sections while there is a session. Without one, no changes arrive and a view must not consider itself current;
   * the next session reports a gap, which makes the view list the board again.
   */
  get #sections(): PostgresSections {
    this.#requireSession('listing')
    return this.#requireOpen.sections
  }

  /**
   * Runs a read and reports a gap later if the read fails but the session continues. A view whose read fails waits for the
   * gap that follows a reconnect. But reads use other connections than the session, so there may be no reconnect.
   */
  async #translateReadErrors<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read()
    } catch (error) {
      const goesOn = error instanceof NotConnected && this.#board?.keeper.current
      if (goesOn) this.#retryListingTimer ??= setTimeout(() => this.#reportGap(), RETRY_LISTING_AFTER_MS).unref()
      throw error
    }
  }

  #reportGap(): void {
    this.#retryListingTimer = undefined
    if (this.#board?.keeper.current) this.#board.sink.gap()
  }

  #requireSession(what: string): PostgresSession {
    const session = this.#requireOpen.keeper.current
    if (session) return session
    throw this.#notConnectedError(what)
  }

  #notConnectedError(what: string): NotConnected {
    return new NotConnected(`${what}: no session with ${this.uri}; try again when the board is connected`)
  }

  /** Returns a function that reports each invalid number once, up to {@link MAX_REPORTED} numbers. */
  #reporting(failed: (error: Error) => void): (number: unknown) => void {
    const reported = new Set<unknown>()
    return (number) => {
      if (reported.has(number) || reported.size >= MAX_REPORTED) return
      reported.add(number)
      const what = `a job in ${this.uri} has the invalid number ${String(number)}`
      failed(new InvalidPosting(`${what}; it is not claimed here, remove it`))
    }
  }

  #createComponents(board: number, sink: BackendSink): PostgresComponents {
    const { location, who, sessionTimeout: ttl, scanPeriod: period, listen = true, advisoryLocks } = this.#options
    const { schema } = location
    const { uri } = this
    const { signal } = this.#closing
    const onEndedBackend = () => cleanUp.noteEndedBackend()
    const requesting = { location, uri, signal, recoveryTimeoutMs: ttl, board, who, onEndedBackend }
    const [posts, claims, tokens, batchChanges, others] = [
      new FunctionCaller(requesting),
      new FunctionCaller(requesting),
      new FunctionCaller(requesting),
      new FunctionCaller(requesting),
      new FunctionCaller(requesting),
    ]
    const requests = [posts, claims, tokens, batchChanges, others]
    const reader = new BoardReader({ driver: this.#pool, schema, board })
    const failed = (error: Error) => sink.error(error)
    const misnumbered = this.#reporting(failed)
    const feed = new PostgresChangeFeed({
      schema,
      board,
      sink,
      period,
      listens: listen,
      misnumbered,
      onServerTime: (at) => this.#clock.observe(at),
    })
    const cleanUp = new CleanUp({ driver: this.#pool, schema, board, sink, signal, onError: failed })
    const keeper = new SessionKeeper({
      ...{ location, uri, board, who, ttl, onError: failed },
      listens: () => listen && this.#isSubscribed,
      hintChannels: () =>
        [this.#watchedKinds, this.#watchedBatches]
          .filter(({ size }) => size > 0)
          .map((watched) => this.#hintChannel(watched, board)),
      onOpened: async (_, connection) => {
        if (this.#isSubscribed) await feed.attach(toFeedSource(connection))
        if (!this.#isSubscribed) feed.detach()
      },
      onSuspended: ({ label }, reason) => {
        feed.suspend()
        sink.session({ state: 'disconnected', session: label, reason })
      },
      onReattached: async (_, connection) => {
        if (this.#isSubscribed) await feed.resume(toFeedSource(connection))
        if (!this.#isSubscribed) feed.detach()
      },
      onResumed: ({ label }) => {
        sink.session({ state: 'connected', session: label })
        void locks.retake()
        cleanUp.noteEndedBackend()
        if (this.#isFollowing && !this.#isSubscribed) sink.gap()
        // Notifications of the time without a connection are lost.
        else if (this.#watchedKinds.size > 0) sink.records()
        if (this.#watchedBatches.size > 0) sink.batchChanged()
      },
      onCurrent: ({ label }) => {
        sink.session({ state: 'connected', session: label })
        sink.gap()
      },
      onLost: ({ label }, reason) => {
        feed.detach()
        locks.clear()
        for (const request of requests) request.disconnect(reason)
        sink.session({ state: 'lost', session: label, reason })
        // No changes arrive until the next session, while answers of requests still do.
        sink.gap()
      },
      onNotification: ({ channel, backend, payload }) => {
        if (channel === recordsChannel(schema, board)) {
          const names = parseRecordNotification(payload).filter(({ kind }) => this.#watchedKinds.has(kind))
          if (names.length > 0) sink.records(names)
          return
        }
        if (channel === batchesChannel(schema, board)) {
          if (this.#watchedBatches.has(payload)) sink.batchChanged(payload)
          return
        }
        if (channel !== channelName(schema, board)) {
          sink.followed(parseFollowed(payload))
          return
        }
        feed.onAnnounced()
        // For requests of this process, the feed is read before the caller receives the answer.
        if (requests.every((request) => request.backend !== backend)) void feed.caughtUp()
      },
      onHeartbeat: (expired) => cleanUp.onHeartbeat(expired),
    })
    const locks = new ResourceLocks({
      ...{ schema, board, uri, enabled: advisoryLocks },
      connection: () => keeper.connection,
      onApplied: (reason) => keeper.current && keeper.markLost(keeper.current, reason),
    })
    const changer = new BoardWriter({
      ...{ schema, board, posts, claims, others, locks },
      session: () => keeper.current,
      onSessionOver: (session) =>
        keeper.markLost(session, new NotConnected(`${uri}: another participant ended the session`)),
      catchUp: () => feed.caughtUp(),
      onGone: (id) => sink.changes([{ kind: 'gone', id, again: true }]),
      onDoomed: (ids) => sink.doomed(ids),
      statusOf: (jobs) => reader.statusOf(jobs),
      identity: () => readIdentity(this.#pool, schema),
    })
    const sections = new PostgresSections({ driver: this.#pool, schema, board, uri, misnumbered })
    const limits = new LimitRows({ driver: this.#pool, requests: tokens, schema, board })
    const records = new RecordRows({
      ...{ driver: this.#pool, requests: others, schema, board },
      catchUp: () => feed.caughtUp(),
      statusOf: (jobs) => reader.statusOf(jobs),
    })
    const history = new HistoryRows({
      ...{ driver: this.#pool, schema, board },
      unreadable: new UnreadableValues({ onError: (error) => sink.error(error) }),
    })
    return {
      ...{ sink, reader, sections, changer, feed, keeper, locks, records, limits, history },
      ...{ number: board, batchChanges, requests },
    }
  }
}
