/**
 * The ZooKeeper backend: what `Backend` asks for, as znodes and multis. Where things are: `layout.ts`; what is one
 * transaction: `transactions.ts`; what became of it: `committer.ts`.
 */
import { ClaimLost, Duplicate, InvalidState, NotFound, Unclaimable } from '../../core/errors.ts'
import { type Logger, silent } from '../../core/log.ts'
import { type Duration, milliseconds } from '../../core/time.ts'
import {
  BadVersion,
  NodeExists,
  NoNode,
  type StateEvent,
  ZooKeeper,
  type ZooKeeperError,
} from '../../zookeeper/index.ts'
import type {
  Backend,
  Choice,
  Discard,
  Entity,
  Granted,
  Listing,
  Posted,
  Result,
  Settlement,
  Sink,
  Stored,
  TrashedEntry,
  Unreadable,
  Verdict,
} from '../backend.ts'
import { encodePosting, type Posting } from '../posting.ts'
import { openBoardPath } from './board-path.ts'
import { Committer, type Transaction } from './committer.ts'
import { EntityNodes } from './entity-nodes.ts'
import type { Layout } from './layout.ts'
import { asking, BoardReader } from './reading.ts'
import { type BoardRecord, encodeLock, encodeTrash } from './records.ts'
import * as transactions from './transactions.ts'

/** What a server takes in one frame, as servers ship. */
const FRAME = 1_048_575
/**
 * The most bytes of a posting when it is posted: half a frame, less what else travels with it. Attempts and a failure
 * join it later, so what can be posted can be claimed and trashed.
 */
const LARGEST_POST = Math.floor(FRAME / 2) - 16 * 1_024

export interface ZooKeeperBackendOptions {
  readonly uri: string
  readonly hosts: string
  readonly layout: Layout
  readonly sessionTimeout?: Duration
  readonly log?: Logger
}

/** What there is once the board is open. */
interface Opened {
  readonly encoding: BoardRecord['encoding']
  readonly reader: BoardReader
  readonly entities: EntityNodes
  readonly sink: Sink
}

export class ZooKeeperBackend implements Backend {
  readonly uri: string
  readonly #layout: Layout
  readonly #zookeeper: ZooKeeper
  readonly #committer: Committer
  /** Names for sessions, because their ids are secrets. */
  readonly #labels = new Map<bigint, string>()
  #board: Opened | undefined

  constructor(options: ZooKeeperBackendOptions) {
    const { uri, hosts, layout, sessionTimeout = '10s', log = silent } = options
    this.uri = uri
    this.#layout = layout
    this.#zookeeper = new ZooKeeper({ hosts, log, sessionTimeout })
    const patience = milliseconds(sessionTimeout, 'sessionTimeout')
    this.#committer = new Committer(this.#zookeeper, layout, { patience })
  }

  async open(sink: Sink, options: { signal: AbortSignal }): Promise<void> {
    await this.#zookeeper.connect(options)
    const { encoding } = await asking(`opening ${this.uri}`, () => openBoardPath(this.#zookeeper, this.#layout))
    const parts = { zookeeper: this.#zookeeper, layout: this.#layout, encoding }
    this.#board = { encoding, reader: new BoardReader(parts), entities: new EntityNodes(parts), sink }
    this.#zookeeper.on('state', (event) => this.#stateChanged(event, sink))
    const handler = {
      events: (batch: Parameters<Layout['changesOf']>[0]) => sink.changes(this.#layout.changesOf(batch)),
      gap: () => this.#attached(sink),
    }
    await asking(`opening ${this.uri}`, () => this.#zookeeper.watch(this.#layout.path, { mode: 'recursive' }, handler))
    this.#attached(sink)
  }

  async close(): Promise<void> {
    await this.#committer.idle()
    await this.#zookeeper.close()
  }

  async post(postings: readonly Posting[]): Promise<Result<Posted>[]> {
    return each(postings, (posting) =>
      this.#committer.commit<Posted>({
        what: `post of job ${posting.uuid} (${posting.name})`,
        ops: transactions.post(this.#layout, this.#encoded(posting, { limit: LARGEST_POST })),
        done: ({ zxid, results: [created] }) => {
          const id = created && 'path' in created ? { id: this.#layout.idOf(created.path) } : {}
          return { ...id, revision: 0, order: zxid }
        },
        recovered: (zxid) => this.#postedIn(zxid, posting.uuid),
        refused: (error) => error,
      }),
    )
  }

  /** Where the answer to a post was lost: the job may have been claimed, done or trashed by others since. */
  async #postedIn(zxid: bigint, uuid: string): Promise<Posted> {
    const { reader } = this.#opened
    return asking('looking for a job just posted', async () => {
      const id = await reader.postedIn(zxid)
      if (id !== undefined) return { id, revision: 0, order: zxid }
      const trash = await reader.trashed()
      const trashed = trash.some((entry) => !(entry instanceof Error) && entry.posting.uuid === uuid)
      return { trashed, revision: 0, order: zxid }
    })
  }

  async claim(choices: readonly Choice[]): Promise<Result<Granted>[]> {
    return each(choices, ({ id, who, revision, posting }) => {
      const what = `claim of job ${posting.uuid} (${posting.name})`
      const lock = encodeLock(who, this.#opened.encoding)
      const granted = (zxid: bigint, session: bigint) => {
        return { session: this.#label(session), revision: revision + 1, fence: zxid }
      }
      return this.#committer.commit<Granted>({
        what,
        ops: transactions.claim(this.#layout, id, { revision, posting: this.#encoded(posting), lock }),
        done: ({ zxid }, session) => granted(zxid, session),
        recovered: granted,
        refused: (error) => notClaimed(what, error),
      })
    })
  }

  async settle(settlements: readonly Settlement[]): Promise<Result<void>[]> {
    return each(settlements, (settlement) => {
      const { posting, kind } = settlement
      const what = `${kind} of job ${posting.uuid} (${posting.name})`
      const session = this.#sessionOf(settlement.session)
      if (session === undefined)
        throw new ClaimLost(`${what}: the session that claimed it is over; stop and write nothing`)
      const refused = (cause: ZooKeeperError) => notSettled(what, cause)
      return this.#committer.commit({ ...effect(what, this.#settleOps(settlement)), session, refused })
    })
  }

  async discard(discarded: Discard): Promise<Result<void>> {
    const { id, revision, posting } = discarded
    const what = `removal of job ${posting.uuid} (${posting.name})`
    return resultOf(() => {
      const ops = transactions.discard(this.#layout, id, { revision, entry: this.#trashEntry(discarded) })
      const refused = (error: ZooKeeperError) => {
        const inTrash = error instanceof NodeExists && error.index === 0
        return inTrash
          ? new Duplicate(`${what}: the trash holds ${id} already; remove one of the two`)
          : notClaimed(what, error)
      }
      return this.#committer.commit({ ...effect(what, ops), refused })
    })
  }

  async list(): Promise<Listing> {
    return asking(`listing ${this.uri}`, () => this.#opened.reader.list())
  }

  async read(ids: readonly string[]): Promise<(Stored | Unreadable | undefined)[]> {
    return asking(`reading ${this.uri}`, () => Promise.all(ids.map((id) => this.#opened.reader.read(id))))
  }

  async owner(id: string): Promise<string | undefined> {
    return asking(`looking for the owner of ${id}`, () => this.#opened.reader.owner(id))
  }

  /** Watch events of a session come before answers that are younger: when a sync is answered, all is heard. */
  async barrier(): Promise<void> {
    await asking(`sync of ${this.uri}`, () => this.#zookeeper.sync(this.#layout.path))
  }

  async trashed(): Promise<TrashedEntry[]> {
    const { reader, sink } = this.#opened
    const entries = await asking(`reading the trash of ${this.uri}`, () => reader.trashed())
    return entries.flatMap((entry) => {
      if (!(entry instanceof Error)) return entry
      sink.error(entry)
      return []
    })
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

  // --- Inside -----------------------------------------------------------------------------------------------------

  get #opened(): Opened {
    if (this.#board) return this.#board
    throw new InvalidState(`board ${this.uri} is not open`)
  }

  /** Attached to a session, old or new, with the watch armed: from here on every change is told. */
  #attached(sink: Sink): void {
    const session = this.#zookeeper.session?.id
    if (session === undefined) return
    sink.gap()
    sink.session({ state: 'connected', session: this.#label(session) })
  }

  #stateChanged(event: StateEvent, sink: Sink): void {
    const session = [...this.#labels.values()].at(-1) ?? ''
    const reason = event.reason ? { reason: event.reason } : {}
    if (event.state === 'suspended') sink.session({ state: 'disconnected', session, ...reason })
    if (event.state === 'lost' || event.state === 'closed') sink.session({ state: event.state, session, ...reason })
  }

  #label(session: bigint): string {
    const label = this.#labels.get(session) ?? `session ${this.#labels.size + 1}`
    this.#labels.set(session, label)
    return label
  }

  /** The session of that name, if it is the one there is now. */
  #sessionOf(label: string): bigint | undefined {
    const id = this.#zookeeper.session?.id
    return id !== undefined && this.#labels.get(id) === label ? id : undefined
  }

  #settleOps(settlement: Settlement): Transaction<void>['ops'] {
    const { id, revision, posting } = settlement
    switch (settlement.kind) {
      case 'consume':
        return transactions.consume(this.#layout, id, { revision })
      case 'abandon':
        return transactions.abandon(this.#layout, id, { revision, posting: this.#encoded(posting) })
      case 'trash':
        return transactions.trash(this.#layout, id, { revision, entry: this.#trashEntry(settlement) })
    }
  }

  #encoded(posting: Posting, options: { limit: number } = { limit: FRAME }): Uint8Array {
    return encodePosting(posting, { encoding: this.#opened.encoding, ...options })
  }

  #trashEntry(entry: Verdict & { posting: Posting; who: string }): Uint8Array {
    return encodeTrash({ ...entry, at: new Date() }, { encoding: this.#opened.encoding, limit: FRAME })
  }
}

/** A transaction of which nothing but its effect is wanted. */
function effect(what: string, ops: Transaction<void>['ops']): Omit<Transaction<void>, 'refused'> {
  return { what, ops, done: () => undefined, recovered: () => undefined }
}

function notClaimed(what: string, cause: ZooKeeperError): Error {
  if (cause instanceof NoNode) return new NotFound(`${what}: it has left the board`, { cause })
  const raced = cause instanceof BadVersion || cause instanceof NodeExists
  return raced ? new Unclaimable(`${what}: it was claimed or changed by another`, { cause }) : cause
}

/** Only the posting and the lock prove that a claim is gone; a server that says no for another reason leaves it as it is. */
function notSettled(what: string, cause: ZooKeeperError): Error {
  const gone = cause instanceof BadVersion || (cause instanceof NoNode && !cause.path?.includes('/.trash/'))
  return gone ? new ClaimLost(`${what}: the claim is gone; stop and write nothing`, { cause }) : cause
}

/** One result per element, whatever becomes of its neighbours. */
function each<T, R>(elements: readonly T[], step: (element: T) => Promise<R>): Promise<Result<R>[]> {
  return Promise.all(elements.map((element) => resultOf(() => step(element))))
}

async function resultOf<T>(step: () => T | Promise<T>): Promise<Result<T>> {
  try {
    return { value: await step() }
  } catch (error) {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }
}
