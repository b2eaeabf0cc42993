/**
 * The Postgres backend: what `Backend` asks for, as functions of the database (`functions/`) over a few connections. Who
 * lives: `session.ts`; what is done once: `requests.ts`; what others do: `feed.ts`; who is gone: `clean-up.ts`.
 */

import { unlessAborted } from '../../core/abort.ts'
import { InvalidPosting, InvalidState, NotConnected } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { atMost } from '../../core/time.ts'
import { type PostgresConnection, type PostgresPlace, PostgresPool, warnOfForeignOwner } from '../../postgres/index.ts'
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
  Posted,
  PostedWithin,
  PostRequest,
  Result,
  Sections,
  SessionHold,
  Settlement,
  Sink,
  Stored,
  TransactionState,
  TrashedEntry,
  Unreadable,
} from '../backend.ts'
import type { Posting, SqlClient } from '../posting.ts'
import { resultOf, resultOfEach } from '../results.ts'
import { ServerClock } from '../server-clock.ts'
import { pagesOf } from '../trash-pages.ts'
import type { WindowSize } from '../window-size.ts'
import { openBoardRow } from './board-row.ts'
import { BoardChanger } from './changing.ts'
import { CleanUp } from './clean-up.ts'
import { Feed } from './feed.ts'
import { transactionStateOf } from './outbox.ts'
import { BoardReader } from './reading.ts'
import { Requests } from './requests.ts'
import { BoardSections } from './sections.ts'
import { type Session, SessionKeeper } from './session.ts'
import { asking } from './words.ts'

export interface PostgresBackendOptions extends WindowSize {
  readonly uri: string
  readonly place: PostgresPlace
  /** Of the board, among those of the schema. */
  readonly board: string
  readonly who: string
  readonly create?: boolean
  readonly log?: Logger
  /** In milliseconds, like the next. */
  readonly sessionTimeout: number
  readonly scanPeriod: number
  /** False: notifications are not listened to; for tests. */
  readonly listen?: boolean
}

/** What there is once the board is open. */
interface Opened {
  readonly sink: Sink
  readonly reader: BoardReader
  readonly sections: BoardSections
  readonly changer: BoardChanger
  readonly feed: Feed
  readonly keeper: SessionKeeper
  readonly requests: readonly Requests[]
}

const EVERYTHING: BackendCapabilities = {
  keys: true,
  resources: true,
  delays: true,
  cancel: true,
  restore: true,
  everyChange: true,
}

/** How long after a look that came to nothing the board is listed anew, in milliseconds. */
const LOOK_AGAIN = 250
/** How long what is under way may take when the board is closed, in milliseconds. */
const FAREWELL = 5_000
/** Of jobs with a number that is none. */
const MAX_REPORTED = 1_000

export class PostgresBackend implements Backend {
  readonly uri: string
  readonly capabilities = EVERYTHING
  readonly sessionTimeout: number
  readonly sections: Sections
  readonly #options: PostgresBackendOptions
  readonly #pool: PostgresPool
  readonly #clock = new ServerClock()
  readonly #closing = new AbortController()
  readonly #registering = new Set<Promise<void>>()
  #board: Opened | undefined
  #lookAgain: NodeJS.Timeout | undefined

  constructor(options: PostgresBackendOptions) {
    this.uri = options.uri
    this.sessionTimeout = options.sessionTimeout
    this.#options = options
    this.#pool = new PostgresPool(options.place)
    this.sections = {
      window: options.window,
      windowBytes: options.windowBytes,
      stretch: (asked) => this.#looking(() => this.#sections.stretch(asked)),
      resting: (asked) => this.#looking(() => this.#sections.resting(asked)),
      claimed: () => this.#looking(() => this.#sections.claimed()),
      fates: (ids) => this.#looking(() => this.#sections.fates(ids)),
      find: (uuid) => this.#sections.find(uuid),
    }
  }

  async open(sink: Sink, { signal }: { signal: AbortSignal }): Promise<void> {
    const { place, board: name, create, log } = this.#options
    const wanted = { schema: place.schema, name, ...(create === undefined ? {} : { create }) }
    const opening = async () => {
      const number = await openBoardRow(this.#pool, wanted)
      await warnOfForeignOwner(this.#pool, { schema: place.schema, log })
      return number
    }
    const number = await asking(`opening ${this.uri}`, () => unlessAborted(opening(), signal))
    this.#board = this.#parts(number, sink)
    await this.#board.keeper.start({ signal })
  }

  async close(): Promise<void> {
    const board = this.#board
    this.#board = undefined
    clearTimeout(this.#lookAgain)
    this.#closing.abort(new NotConnected(`${this.uri} is closed`))
    if (board) await this.#leave(board)
    await atMost(FAREWELL, this.#pool.close())
  }

  async #leave({ sink, changer, feed, keeper, requests }: Opened): Promise<void> {
    const idle = Promise.all([changer.idle(), ...requests.map((request) => request.idle())])
    await atMost(FAREWELL, idle)
    feed.detach()
    const session = keeper.current
    // The owner first: it has to know before anybody else can claim.
    sink.session({ state: 'closed', session: session?.label ?? 'none' })
    for (const request of requests) if (!session) request.cut(this.#closing.signal.reason)
    await keeper.close()
    await atMost(FAREWELL, Promise.all(requests.map((request) => request.close())))
  }

  async post(requests: readonly PostRequest[]): Promise<Result<Posted>[]> {
    const { changer } = this.#opened
    return resultOfEach(requests, (request) => changer.post(request))
  }

  postWithin(client: SqlClient, request: PostRequest): Promise<PostedWithin> {
    return this.#opened.changer.postWithin(client, request)
  }

  async transactionState(transaction: string): Promise<TransactionState> {
    const { rows } = await asking('looking for the end of a transaction', () =>
      this.#pool.query('SELECT pg_xact_status($1::xid8) AS status', [transaction]),
    )
    return transactionStateOf(rows[0]?.['status'])
  }

  async claim(choices: readonly Choice[]): Promise<Result<Granted>[]> {
    const { changer } = this.#opened
    return resultOfEach(choices, (choice) => changer.claim(choice))
  }

  async settle(settlements: readonly Settlement[]): Promise<Result<void>[]> {
    const { changer } = this.#opened
    return resultOfEach(settlements, (settlement) => changer.settle(settlement))
  }

  async discard(discarded: Discard): Promise<Result<void>> {
    return resultOf(this.#opened.changer.discard(discarded))
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    await this.#opened.changer.request(request)
  }

  async restore(entry: TrashedEntry, posting: Posting): Promise<void> {
    await this.#opened.changer.restore(entry, posting)
  }

  async purge(entry: TrashedEntry): Promise<void> {
    await this.#opened.changer.purge(entry)
  }

  async read(ids: readonly string[]): Promise<(Stored | Unreadable | undefined)[]> {
    return this.#looking(() => asking(`reading ${this.uri}`, () => this.#opened.reader.read(ids)))
  }

  async owner(id: string): Promise<string | undefined> {
    return asking(`looking for the owner of ${id}`, () => this.#opened.reader.owner(id))
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    return asking(`looking for who cancelled ${id}`, () => this.#opened.reader.cancellation(id))
  }

  async barrier(): Promise<void> {
    const session = this.#session('looking')
    await this.#opened.feed.caughtUp()
    if (this.#opened.keeper.current !== session) throw this.#away('looking')
  }

  async *trashed(): AsyncGenerator<TrashedEntry, void, undefined> {
    const { reader, sink } = this.#opened
    const what = `reading the trash of ${this.uri}`
    for (const page of pagesOf(await asking(what, () => reader.trashIndex())))
      for (const entry of await asking(what, () => reader.trashPage(page)))
        if (entry instanceof Error) sink.error(entry)
        else yield entry
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    return asking(`looking for ${id} in the trash`, () => this.#opened.reader.trashedEntry(id))
  }

  async register(entity: Entity): Promise<void> {
    const what = `registering ${entity.kind} ${entity.name}`
    const registered = asking(what, () => this.#opened.reader.register(entity, this.#session(what)))
    const done = registered.catch(() => undefined).finally(() => this.#registering.delete(done))
    this.#registering.add(done)
    await registered
  }

  async unregister(entity: Entity): Promise<void> {
    await asking(`unregistering ${entity.kind} ${entity.name}`, async () => this.#board?.reader.unregister(entity))
  }

  async entities(kind: string): Promise<Entity[]> {
    // Over several connections: those that were asked for before are seen only once they are there.
    await Promise.all(this.#registering)
    return asking(`listing every ${kind}`, () => this.#opened.reader.entities(kind))
  }

  now(): number {
    return this.#clock.now()
  }

  /** A session's heart beats whether or not claims hang on it. */
  holdSession(): SessionHold {
    return { proven: async () => this.#opened.keeper.proven(), [Symbol.dispose]: () => undefined }
  }

  alive(session: string): boolean {
    return this.#board?.keeper.alive(session) === true
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  get #opened(): Opened {
    if (this.#board) return this.#board
    throw new InvalidState(`board ${this.uri} is not open`)
  }

  /** A view that is told nothing must not take itself for current: the next session brings another gap. */
  get #sections(): BoardSections {
    this.#session('listing')
    return this.#opened.sections
  }

  /**
   * A view that cannot look waits for the gap that the connection's return is. It looks over other connections than the
   * session's, though: where the session goes on there is no return, and the gap is ours to tell.
   */
  async #looking<T>(look: () => Promise<T>): Promise<T> {
    try {
      return await look()
    } catch (error) {
      const goesOn = error instanceof NotConnected && this.#board?.keeper.current
      if (goesOn) this.#lookAgain ??= setTimeout(() => this.#missed(), LOOK_AGAIN).unref()
      throw error
    }
  }

  #missed(): void {
    this.#lookAgain = undefined
    if (this.#board?.keeper.current) this.#board.sink.gap()
  }

  #session(what: string): Session {
    const session = this.#opened.keeper.current
    if (session) return session
    throw this.#away(what)
  }

  #away(what: string): NotConnected {
    return new NotConnected(`${what}: there is no session with ${this.uri}`)
  }

  /** Reports each number once; of a great many the first. */
  #reporting(failed: (error: Error) => void): (number: unknown) => void {
    const reported = new Set<unknown>()
    return (number) => {
      if (reported.has(number) || reported.size >= MAX_REPORTED) return
      reported.add(number)
      const what = `the number ${String(number)} of a job in ${this.uri}`
      failed(new InvalidPosting(`${what} is none that a board gives; the job is not claimed here, remove it`))
    }
  }

  #parts(board: number, sink: Sink): Opened {
    const { place, who, sessionTimeout: ttl, scanPeriod: period, listen = true } = this.#options
    const { schema } = place
    const { uri } = this
    const { signal } = this.#closing
    const requesting = { place, uri, signal, patience: ttl }
    const [posts, claims, others] = [new Requests(requesting), new Requests(requesting), new Requests(requesting)]
    const requests = [posts, claims, others]
    const reader = new BoardReader({ driver: this.#pool, schema, board })
    const failed = (error: Error) => sink.error(error)
    const misnumbered = this.#reporting(failed)
    const feed = new Feed({ schema, board, sink, period, misnumbered, observed: (at) => this.#clock.observe(at) })
    const cleanUp = new CleanUp({ driver: this.#pool, schema, board, signal, failed })
    const sourceOf = (connection: PostgresConnection) => ({
      connection,
      failed: (error: unknown) => connection.cut(error),
    })
    const keeper = new SessionKeeper({
      ...{ place, uri, board, who, ttl, listen, failed },
      opened: (_, connection) => feed.attach(sourceOf(connection)),
      suspended: ({ label }, reason) => {
        feed.suspend()
        sink.session({ state: 'disconnected', session: label, reason })
      },
      reattached: (_, connection) => feed.resume(sourceOf(connection)),
      resumed: ({ label }) => sink.session({ state: 'connected', session: label }),
      became: ({ label }) => {
        sink.session({ state: 'connected', session: label })
        sink.gap()
      },
      lost: ({ label }, reason) => {
        feed.detach()
        for (const request of requests) request.cut(reason)
        sink.session({ state: 'lost', session: label, reason })
        // Until there is a session again nothing is heard of, and answers come all the same.
        sink.gap()
      },
      notified: ({ backend }) => {
        // Of what is done here it is looked before anybody hears the answer.
        if (requests.every((request) => request.backend !== backend)) void feed.caughtUp()
      },
      beaten: (expired) => cleanUp.beat(expired),
    })
    const changer = new BoardChanger({
      ...{ schema, board, posts, claims, others, failed },
      session: () => keeper.current,
      over: (session) => keeper.lose(session, new NotConnected(`${uri}: the session was ended by another`)),
      heard: () => feed.caughtUp(),
      gone: (id) => sink.changes([{ kind: 'gone', id, again: true }]),
      fates: (jobs) => reader.fates(jobs),
    })
    const sections = new BoardSections({ driver: this.#pool, schema, board, uri, misnumbered })
    return { sink, reader, sections, changer, feed, keeper, requests }
  }
}
