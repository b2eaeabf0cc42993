/**
 * The ZooKeeper board over a client that has neither transactions nor persistent watches: the official C client, used
 * through the `zookeeper` package. It shares its boards with the backend that has both. `writer.ts` defines which steps
 * an operation has and which step decides; `snapshot.ts` tracks what is on the board.
 */

import { asError, InvalidState, isError, UnsupportedCapability } from '../../../../core/errors.ts'
import { type Result, settleEach } from '../../../../core/result.ts'
import { type Duration, monotonic, toTimerMs } from '../../../../core/time.ts'
import { SessionExpired, type StateEvent, toOpenError, type ZooKeeperDriver } from '../../../../zookeeper/index.ts'
import type {
  Backend,
  BackendCapabilities,
  BackendSink,
  BoardListing,
  Cancellation,
  CancelRequest,
  ClaimGrant,
  ClaimRequest,
  DiscardRequest,
  Entity,
  GateRequest,
  Posted,
  PostRequest,
  RestoreOutcome,
  SessionHold,
  Settlement,
  StoredJob,
  TrashedEntry,
  TrashListing,
  UnreadableJob,
} from '../../../backend.ts'
import type { Posting } from '../../../model/posting.ts'
import { ServerClock } from '../../server-clock.ts'
import { pagesOf, selectTrash } from '../../trash-pages.ts'
import { UnreadableValues } from '../../unreadable-values.ts'
import { SequenceNumbers } from '../commit/sequence-numbers.ts'
import { SessionLabels } from '../session-labels.ts'
import { decodeTrashMark, ownBoard } from '../store/board-kind.ts'
import { type BoardPathOptions, openBoardPath } from '../store/board-path.ts'
import { EntityNodes } from '../store/entity-nodes.ts'
import { BoardGate } from '../store/gate.ts'
import type { Layout } from '../store/layout.ts'
import { translateErrors, ZooKeeperReader } from '../store/reader.ts'
import { announceMarks, readServerTime } from '../store/trash-marks.ts'
import { ConsistencyCheck } from './consistency-check.ts'
import { Locks } from './locks.ts'
import { Steps } from './single-writes.ts'
import { BoardSnapshot } from './snapshot.ts'
import { WithoutMultiWriter } from './writer.ts'

export interface WithoutMultiBackendOptions extends Pick<BoardPathOptions, 'create' | 'identified'> {
  readonly uri: string
  /** The client, not connected yet. It is closed with the backend. */
  readonly zookeeper: ZooKeeperDriver
  readonly layout: Layout
  readonly scanPeriod?: Duration
}

interface WithoutMultiComponents {
  readonly reader: ZooKeeperReader
  readonly changer: WithoutMultiWriter
  readonly entities: EntityNodes
  readonly gate: BoardGate
  readonly mirror: BoardSnapshot
  readonly patrol: ConsistencyCheck
  readonly sink: BackendSink
}

const CAPABILITIES: BackendCapabilities = {
  keys: false,
  resources: false,
  delays: true,
  expiry: true,
  cancel: true,
  restore: false,
  completeChangeFeed: false,
  records: false,
  limits: false,
  dependencies: false,
  history: false,
  batches: false,
  release: false,
  unclaimable: ['keys', 'resources', 'limits', 'dependencies', 'batches'],
}

export class WithoutMultiBackend implements Backend {
  readonly uri: string
  readonly capabilities = CAPABILITIES
  readonly #options: WithoutMultiBackendOptions
  readonly #layout: Layout
  readonly #zookeeper: ZooKeeperDriver
  readonly #clock = new ServerClock()
  readonly #labels = new SessionLabels()
  readonly #underWay = new Set<Promise<unknown>>()
  #board: WithoutMultiComponents | undefined

  constructor(options: WithoutMultiBackendOptions) {
    this.uri = options.uri
    this.#options = options
    this.#layout = options.layout
    this.#zookeeper = options.zookeeper
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
    await this.#zookeeper.connect(options)
    const { record } = await translateErrors(what, () => openBoardPath(this.#zookeeper, this.#layout, this.#options))
    if (record.shared) {
      const message = `${this.uri} is shared with TaskFlow and needs transactions; open it without client=native`
      throw new UnsupportedCapability(message, { capability: 'shared' })
    }
    await translateErrors(what, () => announceMarks(this.#zookeeper, this.#layout))
    const board = this.#createComponents(sink)
    this.#board = board
    this.#zookeeper.on('state', (event) => this.#stateChanged(event, board))
    this.#onAttached(board)
    await translateErrors(what, () => board.gate.read())
    board.patrol.start()
  }

  /** This client reports changes from the opening on: its writer depends on them. */
  async subscribe(): Promise<void> {
    const { sink, gate } = this.#requireOpen
    sink.gap()
    await translateErrors(`subscribing to ${this.uri}`, () => gate.read())
  }

  async unsubscribe(): Promise<void> {}

  async close(): Promise<void> {
    this.#board?.patrol.stop()
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
    this.#board?.mirror.stop()
    await this.#zookeeper.close()
  }

  async post(request: PostRequest): Promise<Posted> {
    return this.#trackWork(this.#requireOpen.changer.post(request))
  }

  async claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]> {
    return this.#trackWork(
      settleEach(choices, async (choice) => {
        const granted = await this.#requireOpen.changer.claim(choice)
        return { ...granted, session: this.#labels.labelFor(granted.session) }
      }),
    )
  }

  async settle(settlement: Settlement): Promise<void> {
    const session = this.#labels.requireGranting(settlement, { now: this.#zookeeper.session?.id })
    return this.#trackWork(this.#requireOpen.changer.settle(settlement, session))
  }

  async discard(discarded: DiscardRequest): Promise<void> {
    return this.#trackWork(this.#requireOpen.changer.discard(discarded))
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    const { changer } = this.#requireOpen
    await this.#trackWork(request.kind === 'cancel' ? changer.cancel(request) : changer.setGate(request))
  }

  async restore(_: TrashedEntry, posting: Posting): Promise<RestoreOutcome> {
    const message = `job ${posting.uuid} (${posting.name}): restoring needs a transaction; open the board without client=native`
    throw new UnsupportedCapability(message, { capability: 'restore' })
  }

  async purge(entry: TrashedEntry): Promise<void> {
    await this.#trackWork(this.#requireOpen.changer.purge(entry))
  }

  async list(): Promise<BoardListing> {
    return translateErrors(`listing ${this.uri}`, () => this.#requireOpen.mirror.list())
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    return translateErrors(`reading ${this.uri}`, () => this.#requireOpen.reader.read(ids))
  }

  async owner(id: string): Promise<string | undefined> {
    return translateErrors(`looking for the owner of ${id}`, () => this.#requireOpen.reader.owner(id))
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return translateErrors(`reading the cancel request of ${id}`, () => this.#requireOpen.reader.cancellation(id))
  }

  /**
   * Resolves when all changes up to the call are reported: two round trips, and one more if jobs were released or have
   * ended.
   */
  async barrier(): Promise<void> {
    const { mirror, gate } = this.#requireOpen
    await translateErrors(`sync of ${this.uri}`, async () => {
      await this.#zookeeper.sync(this.#layout.path)
      await mirror.whenFresh()
    })
    mirror.reportUnwatched()
    await gate.whenSettled()
  }

  /** Yields the trash. The barrier comes first: postings are read by then, and marked jobs are known. */
  async *trashed(listing?: TrashListing): AsyncGenerator<TrashedEntry, void, undefined> {
    const { reader, mirror, sink } = this.#requireOpen
    await this.barrier()
    const what = `reading the trash of ${this.uri}`
    const index = await translateErrors(what, async () => {
      await reader.read(mirror.unwatchedIds)
      return reader.trashIndex(mirror.marked)
    })
    for (const page of pagesOf(selectTrash(index, listing, ({ id }) => id)))
      for (const entry of await translateErrors(what, () => reader.trashPage(page)))
        if (isError(entry)) sink.error(entry)
        else yield entry
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    return translateErrors(`looking for ${id} in the trash`, () => this.#requireOpen.reader.trashedEntry(id))
  }

  async findTrashed(uuid: string): Promise<TrashedEntry | undefined> {
    let found: TrashedEntry | undefined
    for await (const entry of this.trashed()) if (entry.posting.uuid === uuid) found = entry
    return found
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
    const reading = () => readServerTime(this.#zookeeper, this.#layout)
    const time = await translateErrors('reading the clock of the servers', reading)
    if (time !== undefined) this.#clock.observe(time)
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

  get #requireOpen(): WithoutMultiComponents {
    if (this.#board) return this.#board
    throw new InvalidState(`board ${this.uri} is not open`)
  }

  #createComponents(sink: BackendSink): WithoutMultiComponents {
    const zookeeper = this.#zookeeper
    const failed = (error: unknown) => this.#onError(error, sink)
    const parts = { zookeeper, layout: this.#layout, kind: ownBoard, encoding: ownBoard.encoding, onError: failed }
    const mirror = new BoardSnapshot({
      ...parts,
      onChanges: (changes) => sink.changes(changes),
      isMarked: (id, data) => decodeTrashMark(ownBoard, id, data) !== undefined,
    })
    const reader = new ZooKeeperReader({
      ...parts,
      readMany: mirror.readMany,
      onMarked: ({ id }) => mirror.noteMarked(id),
    })
    const steps = new Steps(parts)
    const patrol: ConsistencyCheck = new ConsistencyCheck({
      ...parts,
      mirror,
      period: toTimerMs(this.#options.scanPeriod ?? '10s', 'scanPeriod'),
      onGateChange: () => gate.refresh(),
    })
    const gate = new BoardGate({ ...parts, zookeeper: patrol.watchingGate, onGate: (paused) => sink.paused(paused) })
    const changer = new WithoutMultiWriter({
      ...parts,
      steps,
      mirror,
      reader,
      gate,
      locks: new Locks({ ...parts, steps }),
      numbers: new SequenceNumbers({ newPosting: this.#layout.newPosting, count: () => mirror.versions?.jobs }),
      onServerTime: (time) => this.#clock.observe(time),
      now: () => this.#clock.now(),
    })
    return {
      reader,
      changer,
      entities: new EntityNodes({ ...parts, unreadable: new UnreadableValues(parts) }),
      gate,
      mirror,
      patrol,
      sink,
    }
  }

  /** Reports the session, old or new, and a gap: changes may have been missed meanwhile. */
  #onAttached({ sink, gate }: WithoutMultiComponents): void {
    const session = this.#zookeeper.session?.id
    if (session === undefined) return
    sink.gap()
    gate.refresh()
    sink.session({ state: 'connected', session: this.#labels.labelFor(session) })
  }

  #stateChanged(event: StateEvent, board: WithoutMultiComponents): void {
    const session = this.#labels.newest
    const reason = event.reason ? { reason: event.reason } : {}
    if (event.state === 'connected') this.#onAttached(board)
    if (event.state === 'suspended') board.sink.session({ state: 'disconnected', session, ...reason })
    if (event.state !== 'lost' && event.state !== 'closed') return
    board.mirror.forgetWatches()
    board.patrol.forgetWatches()
    board.sink.session({ state: event.state, session, ...reason })
  }

  /** Reports an error, unless the connection or the session is lost: then a gap follows, and with it another read. */
  #onError(error: unknown, sink: BackendSink): void {
    if (this.#zookeeper.state !== 'connected' || error instanceof SessionExpired) return
    sink.error(asError(error))
  }

  /** Tracks an operation, so that `close` can wait for it before it closes the client. */
  async #trackWork<T>(work: Promise<T>): Promise<T> {
    const over = work.then(
      () => undefined,
      () => undefined,
    )
    this.#underWay.add(over)
    void over.finally(() => this.#underWay.delete(over))
    return work
  }
}
