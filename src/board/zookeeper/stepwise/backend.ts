/**
 * The ZooKeeper board over a client that has neither transactions nor persistent watches: the official C client, by way of the
 * `zookeeper` package. It shares its boards with the backend that has both. What it does one step after the other, and which
 * step decides: `changing.ts`; how it knows what is on the board: `mirror.ts`.
 */

import { InvalidState, UnsupportedCapability } from '../../../core/errors.ts'
import { type Duration, milliseconds, monotonic } from '../../../core/time.ts'
import { atOpening, SessionExpired, type StateEvent, type ZooKeeperDriver } from '../../../zookeeper/index.ts'
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
} from '../../backend.ts'
import type { Posting } from '../../posting.ts'
import { resultOf, resultOfEach } from '../../results.ts'
import { ServerClock } from '../../server-clock.ts'
import { pagesOf } from '../../trash-pages.ts'
import { openBoardPath, type WantedBoard } from '../board-path.ts'
import { EntityNodes } from '../entity-nodes.ts'
import { Gate } from '../gate.ts'
import type { Layout } from '../layout.ts'
import { asking, BoardReader } from '../reading.ts'
import { decodeMark } from '../records.ts'
import { SequenceNumbers } from '../sequence-numbers.ts'
import { SessionLabels } from '../session-labels.ts'
import { lacking, StepwiseChanger } from './changing.ts'
import { Locks } from './locks.ts'
import { Mirror } from './mirror.ts'
import { Patrol } from './patrol.ts'
import { Steps } from './steps.ts'

export interface StepwiseBackendOptions extends Pick<WantedBoard, 'create' | 'identified'> {
  readonly uri: string
  /** Not connected yet; closed with the backend. */
  readonly zookeeper: ZooKeeperDriver
  readonly layout: Layout
  readonly scanPeriod?: Duration
}

interface Opened {
  readonly reader: BoardReader
  readonly changer: StepwiseChanger
  readonly entities: EntityNodes
  readonly gate: Gate
  readonly mirror: Mirror
  readonly patrol: Patrol
  readonly sink: Sink
}

const CAPABILITIES: BackendCapabilities = {
  keys: false,
  resources: false,
  delays: true,
  cancel: true,
  restore: false,
  everyChange: false,
}

export class StepwiseBackend implements Backend {
  readonly uri: string
  readonly capabilities = CAPABILITIES
  readonly #options: StepwiseBackendOptions
  readonly #layout: Layout
  readonly #zookeeper: ZooKeeperDriver
  readonly #clock = new ServerClock()
  readonly #labels = new SessionLabels()
  readonly #underWay = new Set<Promise<unknown>>()
  #board: Opened | undefined

  constructor(options: StepwiseBackendOptions) {
    this.uri = options.uri
    this.#options = options
    this.#layout = options.layout
    this.#zookeeper = options.zookeeper
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
    await this.#zookeeper.connect(options)
    const { encoding, shared } = await asking(what, () => openBoardPath(this.#zookeeper, this.#layout, this.#options))
    if (shared) {
      const message = `${this.uri} is shared with TaskFlow, which takes transactions; open it without client=native`
      throw new UnsupportedCapability(message, { capability: 'shared' })
    }
    const board = this.#parts(encoding, sink)
    this.#board = board
    this.#zookeeper.on('state', (event) => this.#stateChanged(event, board))
    this.#attached(board)
    await asking(what, () => board.gate.read())
    board.patrol.start()
  }

  async close(): Promise<void> {
    this.#board?.patrol.stop()
    while (this.#underWay.size > 0) await Promise.all(this.#underWay)
    this.#board?.mirror.stop()
    await this.#zookeeper.close()
  }

  async post(requests: readonly PostRequest[]): Promise<Result<Posted>[]> {
    return this.#during(resultOfEach(requests, (request) => this.#opened.changer.post(request)))
  }

  async claim(choices: readonly Choice[]): Promise<Result<Granted>[]> {
    return this.#during(
      resultOfEach(choices, async (choice) => {
        const granted = await this.#opened.changer.claim(choice)
        return { ...granted, session: this.#labels.of(granted.session) }
      }),
    )
  }

  async settle(settlements: readonly Settlement[]): Promise<Result<void>[]> {
    return this.#during(
      resultOfEach(settlements, async (settlement) => {
        const session = this.#labels.granting(settlement, { now: this.#zookeeper.session?.id })
        return this.#opened.changer.settle(settlement, session)
      }),
    )
  }

  async discard(discarded: Discard): Promise<Result<void>> {
    return this.#during(resultOf(this.#opened.changer.discard(discarded)))
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    const { changer } = this.#opened
    await this.#during(request.kind === 'cancel' ? changer.cancel(request) : changer.setGate(request))
  }

  async restore(_: TrashedEntry, posting: Posting): Promise<void> {
    const message = `job ${posting.uuid} (${posting.name}): to restore it takes a transaction; open the board without client=native`
    throw new UnsupportedCapability(message, { capability: 'restore' })
  }

  async purge(entry: TrashedEntry): Promise<void> {
    await this.#during(this.#opened.changer.purge(entry))
  }

  async list(): Promise<Listing> {
    return asking(`listing ${this.uri}`, () => this.#opened.mirror.list())
  }

  async read(ids: readonly string[]): Promise<(Stored | Unreadable | undefined)[]> {
    return asking(`reading ${this.uri}`, () => this.#opened.reader.read(ids))
  }

  async owner(id: string): Promise<string | undefined> {
    return asking(`looking for the owner of ${id}`, () => this.#opened.reader.owner(id))
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return asking(`looking for who cancelled ${id}`, () => this.#opened.reader.cancellation(id))
  }

  /** Two round trips, and one where jobs were released or have ended. */
  async barrier(): Promise<void> {
    const { mirror, gate } = this.#opened
    await asking(`sync of ${this.uri}`, async () => {
      await this.#zookeeper.sync(this.#layout.path)
      await mirror.fresh()
    })
    mirror.doubtUnwatched()
    await gate.settled()
  }

  /** What was marked is read by the view, so it is known when that is current. */
  async *trashed(): AsyncGenerator<TrashedEntry, void, undefined> {
    const { reader, mirror, sink } = this.#opened
    await this.barrier()
    const what = `reading the trash of ${this.uri}`
    const index = await asking(what, async () => {
      await reader.read(mirror.unread)
      return reader.trashIndex(mirror.marked)
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

  lacks(posting: Pick<Posting, 'key' | 'resources'>): keyof BackendCapabilities | undefined {
    return lacking(posting)
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

  get #opened(): Opened {
    if (this.#board) return this.#board
    throw new InvalidState(`board ${this.uri} is not open`)
  }

  #parts(encoding: 'msgpack' | 'json', sink: Sink): Opened {
    const zookeeper = this.#zookeeper
    const failed = (error: unknown) => this.#failed(error, sink)
    const parts = { zookeeper, layout: this.#layout, encoding, failed }
    const mirror = new Mirror({
      ...parts,
      told: (changes) => sink.changes(changes),
      isMarked: (id, data) => decodeMark(id, data, encoding) !== undefined,
    })
    const reader = new BoardReader({ ...parts, readMany: mirror.readMany, marked: ({ id }) => mirror.mark(id) })
    const steps = new Steps(parts)
    const patrol: Patrol = new Patrol({
      ...parts,
      mirror,
      period: milliseconds(this.#options.scanPeriod ?? '10s', 'scanPeriod'),
      gate: () => gate.look(),
    })
    const gate = new Gate({ ...parts, zookeeper: patrol.watchingGate, told: (paused) => sink.paused(paused) })
    const changer = new StepwiseChanger({
      ...parts,
      steps,
      mirror,
      reader,
      gate,
      locks: new Locks({ ...parts, steps }),
      numbers: new SequenceNumbers({ newPosting: this.#layout.newPosting, count: () => mirror.versions?.jobs }),
      clock: (time) => this.#clock.observe(time),
      now: () => this.#clock.now(),
    })
    return { reader, changer, entities: new EntityNodes(parts), gate, mirror, patrol, sink }
  }

  /** In a session, old or new: what happened meanwhile is not known. */
  #attached({ sink, gate }: Opened): void {
    const session = this.#zookeeper.session?.id
    if (session === undefined) return
    sink.gap()
    gate.look()
    sink.session({ state: 'connected', session: this.#labels.of(session) })
  }

  #stateChanged(event: StateEvent, board: Opened): void {
    const session = this.#labels.newest
    const reason = event.reason ? { reason: event.reason } : {}
    if (event.state === 'connected') this.#attached(board)
    if (event.state === 'suspended') board.sink.session({ state: 'disconnected', session, ...reason })
    if (event.state !== 'lost' && event.state !== 'closed') return
    board.mirror.forgetWatches()
    board.patrol.forgetWatches()
    board.sink.session({ state: event.state, session, ...reason })
  }

  /** Without a connection, or with the end of a session, there is a gap to come, and with it another look. */
  #failed(error: unknown, sink: Sink): void {
    if (this.#zookeeper.state !== 'connected' || error instanceof SessionExpired) return
    sink.error(error instanceof Error ? error : new Error(String(error)))
  }

  /** What is under way is waited for before the client is closed. */
  async #during<T>(work: Promise<T>): Promise<T> {
    const over = work.then(
      () => undefined,
      () => undefined,
    )
    this.#underWay.add(over)
    void over.finally(() => this.#underWay.delete(over))
    return work
  }
}
