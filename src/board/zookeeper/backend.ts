/**
 * The ZooKeeper backend: what `Backend` asks for, as znodes and multis. Where things are: `layout.ts`; what is one
 * transaction: `transactions.ts`; what it means: `changing.ts`; what became of it: `committer.ts`.
 */

import { InvalidState, NotFound } from '../../core/errors.ts'
import { type Logger, silent } from '../../core/log.ts'
import { type Duration, milliseconds, monotonic } from '../../core/time.ts'
import {
  atOpening,
  inWordsOf,
  type Security,
  SessionExpired,
  type StateEvent,
  type WatchEvent,
  ZooKeeper,
  type ZooKeeperOptions,
} from '../../zookeeper/index.ts'
import type {
  Backend,
  BackendCapabilities,
  Cancellation,
  CancelRequest,
  Choice,
  Discard,
  Entity,
  GateRequest,
  Granted,
  Leftovers,
  Listing,
  Posted,
  PostRequest,
  Result,
  SessionHold,
  Settlement,
  Sink,
  Stored,
  TrashedEntry,
  Unreadable,
} from '../backend.ts'
import type { Posting } from '../posting.ts'
import { resultOf, resultOfEach } from '../results.ts'
import { ServerClock } from '../server-clock.ts'
import { pagesOf } from '../trash-pages.ts'
import { openBoardPath, type WantedBoard } from './board-path.ts'
import { BoardChanger } from './changing.ts'
import { Committer } from './committer.ts'
import { EarlyReleases } from './early-releases.ts'
import { EntityNodes } from './entity-nodes.ts'
import { Gate } from './gate.ts'
import { LateCancellations } from './late-cancellations.ts'
import type { Layout } from './layout.ts'
import { freeLeftovers } from './leftovers.ts'
import { LostPosts } from './lost-posts.ts'
import { Overtaking } from './overtaking.ts'
import { asking, BoardReader, listBoard, readingInBatches } from './reading.ts'
import type { BoardRecord } from './records.ts'
import { ResourceFolders } from './resource-folders.ts'
import { Scan } from './scan.ts'
import { SequenceNumbers } from './sequence-numbers.ts'
import { SessionLabels } from './session-labels.ts'
import { sweep } from './sweep.ts'
import { TrashMarks } from './trash-marks.ts'

export interface ZooKeeperBackendOptions extends WantedBoard, Security {
  readonly uri: string
  readonly hosts: string
  readonly layout: Layout
  readonly sessionTimeout?: Duration
  /** The servers' tick: what leases depend on. */
  readonly tick?: Duration
  readonly scanPeriod?: Duration
  /** From which count of children on postings are numbered here; for tests. */
  readonly numbersFrom?: number
  /** The longest answer that is taken from a server; for tests. */
  readonly maxReplyBytes?: number
  readonly log?: Logger
}

/** What there is once the board is open. */
interface Opened {
  readonly record: BoardRecord
  readonly reader: BoardReader
  readonly changer: BoardChanger
  readonly entities: EntityNodes
  readonly gate: Gate
  readonly scan: Scan
  readonly early: EarlyReleases
  readonly marks: TrashMarks
  readonly lateCancellations: LateCancellations
  readonly folders: ResourceFolders
  readonly sink: Sink
}

const EVERYTHING: BackendCapabilities = {
  keys: true,
  resources: true,
  delays: true,
  cancel: true,
  restore: true,
  everyChange: true,
}
/** TaskFlow's services, which know nothing of these, would not keep to them. */
const SHARED: BackendCapabilities = { ...EVERYTHING, keys: false, resources: false, delays: false }

export class ZooKeeperBackend implements Backend {
  readonly uri: string
  readonly #options: ZooKeeperBackendOptions
  readonly #layout: Layout
  readonly #zookeeper: ZooKeeper
  readonly #committer: Committer
  readonly #clock = new ServerClock()
  readonly #overtaking = new Overtaking()
  readonly #labels = new SessionLabels()
  #board: Opened | undefined

  constructor(options: ZooKeeperBackendOptions) {
    const { uri, hosts, layout, sessionTimeout = '10s', log = silent } = options
    this.uri = uri
    this.#options = options
    this.#layout = layout
    this.#zookeeper = new ZooKeeper({ hosts, log, sessionTimeout, ...optional(options) })
    this.#committer = new Committer(this.#zookeeper, layout, {
      patience: milliseconds(sessionTimeout, 'sessionTimeout'),
      clock: (time) => this.#clock.observe(time),
    })
  }

  get capabilities(): BackendCapabilities {
    return this.shared ? SHARED : EVERYTHING
  }

  get shared(): boolean {
    return this.#board?.record.shared === true
  }

  get sessionTimeout(): number | undefined {
    return this.#zookeeper.session?.timeout
  }

  async open(sink: Sink, options: { signal: AbortSignal }): Promise<void> {
    await this.#open(sink, options).catch((error: unknown) => {
      throw atOpening(error, this.#options)
    })
  }

  async #open(sink: Sink, options: { signal: AbortSignal }): Promise<void> {
    const what = `opening ${this.uri}`
    await this.#zookeeper.connect(options).catch((error: unknown) => {
      throw inWordsOf('board', what, error)
    })
    const record = await asking(what, () => openBoardPath(this.#zookeeper, this.#layout, this.#options))
    const board = this.#parts(record, sink)
    this.#board = board
    this.#zookeeper.on('state', (event) => this.#stateChanged(event, sink))
    const handler = {
      events: (batch: readonly WatchEvent[]) => this.#events(batch, board),
      gap: () => this.#attached(board),
    }
    await asking(what, () => this.#zookeeper.watch(this.#layout.path, { mode: 'recursive' }, handler))
    await asking(what, () => this.#committer.prepare())
    this.#attached(board)
    // Whoever has opened a board knows whether it is paused.
    await asking(what, () => board.gate.read())
    board.scan.start()
  }

  async close(): Promise<void> {
    this.#board?.scan.stop()
    await this.#committer.idle()
    await this.#zookeeper.close()
  }

  async post(requests: readonly PostRequest[]): Promise<Result<Posted>[]> {
    return resultOfEach(requests, (request) => this.#opened.changer.post(request))
  }

  async claim(choices: readonly Choice[]): Promise<Result<Granted>[]> {
    return resultOfEach(choices, async (choice) => {
      const granted = await this.#opened.changer.claim(choice)
      return { ...granted, session: this.#labels.of(granted.session) }
    })
  }

  async settle(settlements: readonly Settlement[]): Promise<Result<void>[]> {
    return resultOfEach(settlements, async (settlement) => {
      const session = this.#labels.granting(settlement, { now: this.#zookeeper.session?.id })
      return this.#opened.changer.settle(settlement, session)
    })
  }

  async discard(discarded: Discard): Promise<Result<void>> {
    return resultOf(this.#opened.changer.discard(discarded))
  }

  async freeLeftovers(left: Leftovers): Promise<void> {
    const at = { zookeeper: this.#zookeeper, layout: this.#layout }
    await asking(`freeing what is left of job ${left.posting.uuid}`, () => freeLeftovers(at, left))
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    const { changer } = this.#opened
    if (request.kind === 'cancel') await changer.cancel(request)
    else await changer.setGate(request)
  }

  async restore(entry: TrashedEntry, posting: Posting): Promise<void> {
    await this.#inTrash(entry, (changer) => changer.restore(entry, posting))
  }

  async purge(entry: TrashedEntry): Promise<void> {
    await this.#inTrash(entry, (changer) => changer.purge(entry))
  }

  async list(): Promise<Listing> {
    const { scan } = this.#opened
    const listing = await asking(`listing ${this.uri}`, () => listBoard(this.#zookeeper, this.#layout))
    scan.listed(listing.counts)
    return listing
  }

  async read(ids: readonly string[]): Promise<(Stored | Unreadable | undefined)[]> {
    const { reader, marks, sink } = this.#opened
    const found = await asking(`reading ${this.uri}`, () => reader.read(ids))
    // The event that says how it ended may be lost: it would be taken for consumed. Of an event that came this is a repetition.
    const gone = ids.filter((_, index) => found[index] === undefined)
    const trashed = await asking(`reading ${this.uri}`, () => reader.trashedAmong(gone))
    if (trashed.length > 0) sink.changes(trashed.map((id) => ({ kind: 'trashed', id })))
    marks.wereRead(ids)
    return found
  }

  async owner(id: string): Promise<string | undefined> {
    return asking(`looking for the owner of ${id}`, () => this.#opened.reader.owner(id))
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return asking(`looking for who cancelled ${id}`, () => this.#opened.reader.cancellation(id))
  }

  /** Watch events of a session come before answers that are younger: when a sync is answered, all is heard. */
  async barrier(): Promise<void> {
    await asking(`sync of ${this.uri}`, () => this.#zookeeper.sync(this.#layout.path))
    await Promise.all([this.#opened.early.settled(), this.#opened.gate.settled()])
  }

  async *trashed(): AsyncGenerator<TrashedEntry, void, undefined> {
    const { reader, marks, sink } = this.#opened
    const what = `reading the trash of ${this.uri}`
    const index = await asking(what, async () => {
      await this.#zookeeper.sync(this.#layout.path)
      await marks.settled()
      return reader.trashIndex()
    })
    for (const page of pagesOf(index))
      for (const entry of await asking(what, () => reader.trashPage(page)))
        if (entry instanceof Error) sink.error(entry)
        else yield entry
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    return asking(`looking for ${id} in the trash`, () => this.#opened.reader.trashedEntry(id))
  }

  async register(entity: Entity): Promise<void> {
    await asking(`registering ${entity.kind} ${entity.name}`, () => this.#opened.entities.register(entity))
  }

  async unregister(entity: Entity): Promise<void> {
    await asking(`unregistering ${entity.kind} ${entity.name}`, () => this.#opened.entities.unregister(entity))
  }

  async entities(kind: string): Promise<Entity[]> {
    return asking(`listing every ${kind}`, () => this.#opened.entities.list(kind))
  }

  now(): number {
    return this.#clock.now()
  }

  holdSession(): SessionHold {
    const hold = this.#zookeeper.holdLease()
    return {
      proven: async () => this.#labels.of((await hold.proven()).session),
      [Symbol.dispose]: () => hold.release(),
    }
  }

  alive(session: string): boolean {
    const info = this.#zookeeper.session
    return info !== undefined && this.#labels.of(info.id) === session && info.leaseUntil > monotonic()
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  /** Changes what is in the trash. What was not found there may be marked only, and is moved there first. */
  async #inTrash({ id, posting }: TrashedEntry, change: (changer: BoardChanger) => Promise<void>): Promise<void> {
    const { changer, marks } = this.#opened
    try {
      await change(changer)
    } catch (error) {
      if (!(error instanceof NotFound)) throw error
      await asking(`moving job ${posting.uuid} into the trash`, () => marks.moved(id))
      await change(changer)
    }
  }

  get #opened(): Opened {
    if (this.#board) return this.#board
    throw new InvalidState(`board ${this.uri} is not open`)
  }

  #parts(record: BoardRecord, sink: Sink): Opened {
    const readMany = readingInBatches(this.#zookeeper)
    const parts = { zookeeper: this.#zookeeper, layout: this.#layout, encoding: record.encoding, readMany }
    const reader = new BoardReader({ ...parts, marked: (marked) => marks.seen(marked) })
    const failed = (error: unknown) => this.#failed(error, sink)
    const gate = new Gate({ ...parts, told: (paused) => sink.paused(paused), failed })
    const scan = new Scan({
      ...parts,
      period: milliseconds(this.#options.scanPeriod ?? '10s', 'scanPeriod'),
      missed: () => this.#gap(this.#opened),
      gate: (node) => (node ? gate.saw(node) : gate.look()),
      failed,
      atLeisure: () => sweep({ ...parts, now: this.#clock.now(), holds: (uuid) => sink.holds(uuid) }),
    })
    const { numbersFrom: from } = this.#options
    const numbers = new SequenceNumbers({
      newPosting: this.#layout.newPosting,
      count: () => scan.count,
      ...(from === undefined ? {} : { from }),
    })
    const folders = new ResourceFolders(parts)
    const lateCancellations = new LateCancellations(parts)
    const changer = new BoardChanger({
      ...parts,
      committer: this.#committer,
      reader,
      gate,
      session: () => this.#zookeeper.session,
      now: () => this.#clock.now(),
      overtaking: this.#overtaking,
      folders,
      lostPosts: new LostPosts(reader),
      lateCancellations,
      numbers,
    })
    const marks: TrashMarks = new TrashMarks({
      read: (ids) => this.read(ids),
      move: (marked) => changer.move(marked),
      told: (changes) => sink.changes(changes),
      failed,
    })
    const early = new EarlyReleases({
      ask: () => this.#zookeeper.exists(this.#layout.path),
      released: (changes) => sink.changes(changes),
    })
    const entities = new EntityNodes(parts)
    return { record, reader, changer, entities, gate, scan, early, marks, lateCancellations, folders, sink }
  }

  #events(batch: readonly WatchEvent[], board: Opened): void {
    const { sink, scan, gate, record, early, marks, folders, lateCancellations } = board
    scan.counted(batch)
    folders.changed(batch)
    const changes = this.#layout.changesOf(batch)
    this.#overtaking.changed(changes)
    lateCancellations.changed(changes)
    marks.changed(changes)
    sink.changes(record.shared ? early.sift(changes) : changes)
    const ofGate = batch.filter(({ path }) => path === this.#layout.gate)
    if (ofGate.some(({ type }) => type === 'deleted')) gate.forget()
    if (ofGate.length > 0) gate.look()
  }

  /** Attached to a session, old or new, with the watch armed: from here on every change is told. */
  #attached(board: Opened): void {
    const session = this.#zookeeper.session?.id
    if (session === undefined) return
    this.#gap(board)
    board.sink.session({ state: 'connected', session: this.#labels.of(session) })
  }

  #gap({ sink, scan, gate, early, folders }: Opened): void {
    scan.unlisted()
    folders.forget()
    early.forget()
    sink.gap()
    gate.look()
  }

  /** Without a connection, or with the end of a session, there is a gap to come, and with it another look. */
  #failed(error: unknown, sink: Sink): void {
    if (this.#zookeeper.state !== 'connected' || error instanceof SessionExpired) return
    sink.error(error instanceof Error ? error : new Error(String(error)))
  }

  #stateChanged(event: StateEvent, sink: Sink): void {
    const session = this.#labels.newest
    const reason = event.reason ? { reason: event.reason } : {}
    if (event.state === 'suspended') sink.session({ state: 'disconnected', session, ...reason })
    if (event.state === 'lost' || event.state === 'closed') sink.session({ state: event.state, session, ...reason })
  }
}

/** What the client has defaults of its own for. The ACL is the board's, which is not open yet. */
function optional({ tick, auth, sasl, tls, maxReplyBytes }: ZooKeeperBackendOptions): Partial<ZooKeeperOptions> {
  return {
    ...(tick === undefined ? {} : { tick }),
    ...(maxReplyBytes === undefined ? {} : { maxReplyBytes }),
    ...(auth ? { auth } : {}),
    ...(sasl ? { sasl } : {}),
    ...(tls ? { tls } : {}),
  }
}
