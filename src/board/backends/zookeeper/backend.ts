/**
 * The ZooKeeper backend: implements `Backend` with znodes and multis. `store/layout.ts` defines the paths,
 * `commit/transactions.ts` the transactions, `writer.ts` what a transaction and its refusal mean, and
 * `commit/committer.ts` how transactions are sent and their outcomes are determined.
 */

import { asError, InvalidState, isError } from '../../../core/errors.ts'
import { type Logger, silentLog } from '../../../core/log.ts'
import { type Result, settleEach } from '../../../core/result.ts'
import { type Duration, monotonic, toMilliseconds, toTimerMs } from '../../../core/time.ts'
import {
  type Security,
  SessionExpired,
  type StateEvent,
  toOpenError,
  toTenantError,
  type Watch,
  type WatchEvent,
  ZooKeeper,
  type ZooKeeperOptions,
} from '../../../zookeeper/index.ts'
import type {
  Backend,
  BackendCapabilities,
  BackendSink,
  BatchStore,
  BoardListing,
  Cancellation,
  CancelRequest,
  ClaimGrant,
  ClaimRequest,
  DiscardRequest,
  Entity,
  GateRequest,
  JobStatus,
  OrphanedClaim,
  Posted,
  PostRequest,
  ReleaseOutcome,
  ReleaseRequest,
  Replaced,
  ReplaceRequest,
  RestoreOptions,
  RestoreOutcome,
  SessionHold,
  Settlement,
  StoredJob,
  TrashedEntry,
  TrashListing,
  UnclaimedJobs,
  UnreadableJob,
  WriteRequest,
  Written,
} from '../../contract/index.ts'
import type { EndedJob } from '../../model/ended-job.ts'
import type { LimitUse, TokenRequest, TokensTaken } from '../../model/limits.ts'
import type { Posting } from '../../model/posting.ts'
import type { RecordName, StoredRecord } from '../../model/record.ts'
import { ServerClock } from '../server-clock.ts'
import { pagesOf, selectTrash } from '../trash-pages.ts'
import { TransactionCommitter } from './commit/committer.ts'
import { applyEvents, createComponents, forgetChanges, reportGap, type ZooKeeperComponents } from './components.ts'
import { SessionLabels } from './session-labels.ts'
import { ownBoard } from './store/board-kind.ts'
import { type BoardPathOptions, openBoardPath } from './store/board-path.ts'
import type { Layout } from './store/layout.ts'
import { listBoard, listUnclaimed, translateErrors } from './store/reader.ts'
import { releaseOrphans } from './store/sweep.ts'
import { sharedBoard } from './taskflow/shared-board.ts'

export interface ZooKeeperBackendOptions extends BoardPathOptions, Security {
  readonly uri: string
  readonly hosts: string
  readonly layout: Layout
  readonly sessionTimeout?: Duration
  /** The servers' tick, on which leases depend. */
  readonly tick?: Duration
  /** The maximum size of a request. */
  readonly maxRequestBytes?: number
  readonly scanPeriod?: Duration
  /** The count of children from which this client numbers postings itself; for tests. */
  readonly numbersFrom?: number
  /** The time for which a key of a limit is unused before it is swept, in milliseconds; for tests. */
  readonly limitsUnusedAfterMs?: number
  /** The maximum size of an answer that the client accepts; for tests. */
  readonly maxReplyBytes?: number
  readonly log?: Logger
}

export class ZooKeeperBackend implements Backend {
  readonly uri: string
  readonly #options: ZooKeeperBackendOptions
  readonly #layout: Layout
  readonly #zookeeper: ZooKeeper
  readonly #committer: TransactionCommitter
  readonly #clock = new ServerClock()
  readonly #labels = new SessionLabels()
  #board: ZooKeeperComponents | undefined
  /** The watch of the board while changes are reported. */
  #watch: Watch | undefined

  constructor(options: ZooKeeperBackendOptions) {
    const { uri, hosts, layout, sessionTimeout = '10s', log = silentLog } = options
    this.uri = uri
    this.#options = options
    this.#layout = layout
    this.#zookeeper = new ZooKeeper({ hosts, log, sessionTimeout, ...toOptionalSettings(options) })
    this.#committer = new TransactionCommitter(this.#zookeeper, layout, {
      timeoutMs: toMilliseconds(sessionTimeout, 'sessionTimeout'),
      clock: (time) => this.#clock.observe(time),
    })
  }

  get capabilities(): BackendCapabilities {
    return (this.#board?.kind ?? ownBoard).capabilities
  }

  get shared(): boolean {
    return this.#board?.kind === sharedBoard
  }

  get sessionTimeout(): number | undefined {
    return this.#zookeeper.session?.timeout
  }

  async open(sink: BackendSink, options: { signal: AbortSignal }): Promise<void> {
    await this.#open(sink, options).catch((error: unknown) => {
      throw toOpenError(error, this.#options)
    })
  }

  async #open(sink: BackendSink, options: { signal: AbortSignal }): Promise<void> {
    const what = `opening ${this.uri}`
    await this.#zookeeper.connect(options).catch((error: unknown) => {
      throw toTenantError('board', what, error)
    })
    const { record, created } = await translateErrors(what, () =>
      openBoardPath(this.#zookeeper, this.#layout, this.#options),
    )
    const board = createComponents({
      zookeeper: this.#zookeeper,
      layout: this.#layout,
      kind: record.shared ? sharedBoard : ownBoard,
      sink,
      committer: this.#committer,
      clock: this.#clock,
      scanPeriod: toTimerMs(this.#options.scanPeriod ?? '10s', 'scanPeriod'),
      created,
      numbersFrom: this.#options.numbersFrom,
      limitsUnusedAfterMs: this.#options.limitsUnusedAfterMs,
      onError: (error) => this.#onError(error, sink),
    })
    this.#board = board
    this.#zookeeper.on('state', (event) => this.#stateChanged(event, board))
    // An open board always knows whether it is paused.
    await Promise.all([
      translateErrors(what, () => this.#committer.prepare()),
      translateErrors(what, () => board.gate.read()),
    ])
    this.#onAttached(board)
  }

  async subscribe(): Promise<void> {
    const board = this.#requireOpen
    const what = `subscribing to ${this.uri}`
    const handler = {
      events: (batch: readonly WatchEvent[]) => applyEvents(batch, board),
      // The session reports the gap, before anything can be claimed in it.
      gap: () => undefined,
    }
    const watching = this.#zookeeper.watch(this.#layout.path, { mode: 'recursive' }, handler)
    this.#watch = await translateErrors(what, () => watching)
    reportGap(board)
    try {
      await translateErrors(what, () => board.gate.read())
    } catch (error) {
      // Or the next attempt would watch twice, and every change be counted twice.
      await this.unsubscribe()
      throw error
    }
    board.scan.start()
  }

  async unsubscribe(): Promise<void> {
    if (this.#board) {
      this.#board.scan.stop()
      // Without events these components would keep what has changed since.
      forgetChanges(this.#board)
    }
    const watch = this.#watch
    this.#watch = undefined
    await watch?.remove().catch(() => undefined)
  }

  async follow(ids: readonly string[]): Promise<JobStatus[]> {
    return translateErrors(`following jobs of ${this.uri}`, () => this.#requireOpen.followed.follow(ids))
  }

  async unfollow(ids: readonly string[]): Promise<void> {
    this.#board?.followed.unfollow(ids)
  }

  async close(): Promise<void> {
    this.#board?.scan.close()
    await this.#committer.idle()
    await this.#board?.counter.idle()
    await this.#board?.history.idle()
    await this.#zookeeper.close()
  }

  async post(request: PostRequest): Promise<Posted> {
    return this.#requireOpen.changer.post(request)
  }

  async replace(request: ReplaceRequest): Promise<Replaced> {
    return this.#requireOpen.changer.replace(request)
  }

  async claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]> {
    this.#requireOpen.scan.startWork()
    return settleEach(choices, async (choice) => {
      const granted = await this.#requireOpen.changer.claim(choice)
      return { ...granted, session: this.#labels.labelFor(granted.session) }
    })
  }

  /** The records are read after the gate, over the same connection: they are not older. */
  async limitsRevision(): Promise<number> {
    const { gate } = this.#requireOpen
    return (await translateErrors('reading the gate', () => gate.read())).limits
  }

  async limitUse(keys?: readonly string[]): Promise<readonly LimitUse[]> {
    const { limits } = this.#requireOpen
    return translateErrors('reading the use of limits', () => limits.readUse(keys))
  }

  async takeTokens(request: TokenRequest): Promise<TokensTaken> {
    return this.#requireOpen.tokens.take(request)
  }

  /** Undefined where the board has none. */
  get batches(): BatchStore | undefined {
    return this.capabilities.batches ? this.#requireOpen.batches : undefined
  }

  async settle(settlement: Settlement): Promise<void> {
    const session = this.#labels.requireGranting(settlement, { now: this.#zookeeper.session?.id })
    return this.#requireOpen.changer.settle(settlement, session)
  }

  async release(request: ReleaseRequest): Promise<ReleaseOutcome> {
    return this.#requireOpen.changer.release(request)
  }

  async discard(discarded: DiscardRequest): Promise<void> {
    return this.#requireOpen.changer.discard(discarded)
  }

  async releaseOrphans(left: OrphanedClaim): Promise<void> {
    const at = { zookeeper: this.#zookeeper, layout: this.#layout }
    const { limits } = this.#requireOpen
    const slots = limits.slotsOf(left.id)
    limits.free(left.id)
    await translateErrors(`releasing the orphaned claim of job ${left.posting.uuid}`, () =>
      releaseOrphans(at, { ...left, slots }),
    )
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    const { changer } = this.#requireOpen
    if (request.kind === 'cancel') await changer.cancel(request)
    else await changer.setGate(request)
  }

  async restore(entry: TrashedEntry, posting: Posting, options: RestoreOptions = {}): Promise<RestoreOutcome> {
    return this.#requireOpen.changer.restore(entry, posting, options)
  }

  async purge(entry: TrashedEntry): Promise<void> {
    await this.#requireOpen.changer.purge(entry)
  }

  async list(): Promise<BoardListing> {
    const { scan } = this.#requireOpen
    const listing = await translateErrors(`listing ${this.uri}`, () => listBoard(this.#zookeeper, this.#layout))
    scan.setBaseline(listing.counts)
    return listing
  }

  listUnclaimed(): Promise<UnclaimedJobs> {
    // On a board where all processes poll, no other call starts the idle work.
    this.#requireOpen.scan.startWork()
    return translateErrors(`listing ${this.uri}`, () => listUnclaimed(this.#zookeeper, this.#layout))
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    const { reader, sink } = this.#requireOpen
    const found = await translateErrors(`reading ${this.uri}`, () => reader.read(ids))
    // The event that says how the job ended may be lost; then the job would be taken for consumed. If the event
    // arrived, this repeats it.
    const gone = ids.filter((_, index) => found[index] === undefined)
    const trashed = await translateErrors(`reading ${this.uri}`, () => reader.readTrashedIds(gone))
    if (trashed.length > 0) sink.changes(trashed.map((id) => ({ kind: 'trashed', id })))
    return this.#withWaits(found)
  }

  /** Adds which of the jobs wait for others; sends no request for jobs without dependencies. */
  async #withWaits<T extends StoredJob | UnreadableJob | undefined>(found: T[]): Promise<(T | StoredJob)[]> {
    const dependent = found.flatMap((job) => (job && 'posting' in job && job.posting.after ? [job.id] : []))
    if (dependent.length === 0) return found
    const { dependencies } = this.#requireOpen
    const waiting = await translateErrors(`reading ${this.uri}`, () => dependencies.readWaiting(dependent))
    return found.map((job) => (job && 'posting' in job && waiting.has(job.id) ? { ...job, waits: true } : job))
  }

  async dependencies(
    id: string,
  ): Promise<{ readonly waitsFor: readonly string[]; readonly dependents: readonly string[] }> {
    return translateErrors(`reading the dependencies of ${id}`, () => this.#requireOpen.dependencies.list(id))
  }

  async history({ limit }: { readonly limit: number }): Promise<readonly EndedJob[]> {
    return translateErrors(`reading the history of ${this.uri}`, () => this.#requireOpen.history.newest(limit))
  }

  async endedJobs(uuids: readonly string[]): Promise<readonly (EndedJob | undefined)[]> {
    return translateErrors(`reading the history of ${this.uri}`, () => this.#requireOpen.history.find(uuids))
  }

  async owner(id: string): Promise<string | undefined> {
    return translateErrors(`looking for the owner of ${id}`, () => this.#requireOpen.reader.owner(id))
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return translateErrors(`reading the cancel request of ${id}`, () => this.#requireOpen.reader.cancellation(id))
  }

  /**
   * Resolves when all changes up to the call are received: watch events of a session arrive before later answers, such
   * as that of the sync.
   */
  async barrier(): Promise<void> {
    await translateErrors(`sync of ${this.uri}`, () => this.#zookeeper.sync(this.#layout.path))
    await Promise.all([this.#requireOpen.releases.whenSettled(), this.#requireOpen.gate.whenSettled()])
  }

  async *trashed(listing?: TrashListing): AsyncGenerator<TrashedEntry, void, undefined> {
    const { reader, sink } = this.#requireOpen
    const what = `reading the trash of ${this.uri}`
    const index = await translateErrors(what, async () => {
      await this.#syncTrash()
      return reader.trashIndex()
    })
    for (const page of pagesOf(selectTrash(index, listing, ({ id }) => id)))
      for (const entry of await translateErrors(what, () => reader.trashPage(page)))
        if (isError(entry)) sink.error(entry)
        else yield entry
  }

  /** Resolves when the server of this connection has applied everything that was trashed before the call: it may be behind the leader. */
  async #syncTrash(): Promise<void> {
    await this.#zookeeper.sync(this.#layout.path)
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    return translateErrors(`looking for ${id} in the trash`, () => this.#requireOpen.reader.trashedEntry(id))
  }

  async findTrashed(uuid: string): Promise<TrashedEntry | undefined> {
    return translateErrors(`looking for ${uuid} in the trash`, async () => {
      await this.#syncTrash()
      return this.#requireOpen.reader.findTrashed(uuid)
    })
  }

  async write(request: WriteRequest): Promise<Written> {
    return this.#requireOpen.recordWriter.write(request)
  }

  async records(kind: string): Promise<StoredRecord[]> {
    return translateErrors(`listing every ${kind} of ${this.uri}`, () => this.#requireOpen.records.list(kind))
  }

  async record(name: RecordName): Promise<StoredRecord | undefined> {
    return translateErrors(`reading ${name.kind} ${name.id}`, () => this.#requireOpen.records.get(name))
  }

  async watchRecords(kind: string): Promise<void> {
    await translateErrors(`watching every ${kind} of ${this.uri}`, () => this.#requireOpen.records.watch(kind))
  }

  async unwatchRecords(kind: string): Promise<void> {
    await this.#board?.records.unwatch(kind)
  }

  async resourceHolder(): Promise<undefined> {
    // Other programs hold no resources of these boards.
  }

  async register(entity: Entity): Promise<void> {
    await translateErrors(`registering ${entity.kind} ${entity.name}`, () =>
      this.#requireOpen.entities.register(entity),
    )
  }

  async unregister(entity: Entity): Promise<void> {
    await translateErrors(`unregistering ${entity.kind} ${entity.name}`, () =>
      this.#requireOpen.entities.unregister(entity),
    )
  }

  async entities(kind: string): Promise<Entity[]> {
    return translateErrors(`listing every ${kind}`, () => this.#requireOpen.entities.list(kind))
  }

  now(): number {
    return this.#clock.now()
  }

  async readClock(): Promise<void> {
    if (this.#clock.isKnown) return
    await translateErrors('reading the clock of the servers', () => this.#committer.prepare())
  }

  holdSession(): SessionHold {
    const hold = this.#zookeeper.holdLease()
    return {
      whenAlive: async () => this.#labels.labelFor((await hold.proven()).session),
      [Symbol.dispose]: () => hold.release(),
    }
  }

  alive(session: string): boolean {
    const info = this.#zookeeper.session
    return info !== undefined && this.#labels.labelFor(info.id) === session && info.leaseUntil > monotonic()
  }

  sessionLeft(): number | undefined {
    const info = this.#zookeeper.session
    return info && info.leaseUntil - monotonic()
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  get #requireOpen(): ZooKeeperComponents {
    if (this.#board) return this.#board
    throw new InvalidState(`board ${this.uri} is not open`)
  }

  /** Reports the session, old or new. If the board is subscribed, the watch is armed: from now on every change is reported. */
  #onAttached(board: ZooKeeperComponents): void {
    const session = this.#zookeeper.session?.id
    if (session === undefined) return
    if (this.#watch) reportGap(board)
    else board.sink.gap()
    board.sink.session({ state: 'connected', session: this.#labels.labelFor(session) })
  }

  /** Reports an error, unless the connection or the session is lost: then a gap follows, and with it another read. */
  #onError(error: unknown, sink: BackendSink): void {
    if (this.#zookeeper.state !== 'connected' || error instanceof SessionExpired) return
    sink.error(asError(error))
  }

  #stateChanged(event: StateEvent, board: ZooKeeperComponents): void {
    const { sink } = board
    const session = this.#labels.newest
    const reason = event.reason ? { reason: event.reason } : {}
    if (event.state === 'connected') this.#onAttached(board)
    if (event.state === 'suspended') sink.session({ state: 'disconnected', session, ...reason })
    if (event.state === 'lost') board.limits.clear()
    if (event.state === 'lost' || event.state === 'closed') sink.session({ state: event.state, session, ...reason })
  }
}

/**
 * Returns the options for which the client has defaults. The ACL is missing: it is the board's, and the board is not
 * open yet.
 */
function toOptionalSettings({
  tick,
  auth,
  sasl,
  tls,
  maxReplyBytes,
  maxRequestBytes,
}: ZooKeeperBackendOptions): Partial<ZooKeeperOptions> {
  return {
    ...(tick === undefined ? {} : { tick }),
    ...(maxReplyBytes === undefined ? {} : { maxReplyBytes }),
    ...(maxRequestBytes === undefined ? {} : { maxRequestBytes }),
    ...(auth ? { auth } : {}),
    ...(sasl ? { sasl } : {}),
    ...(tls ? { tls } : {}),
  }
}
