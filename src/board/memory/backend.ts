/** The memory backend: a board inside one process, for tests, for trying things, and for work that may die with it. */
import type { AlarmClock } from '../../core/alarm-clock.ts'
import { ClaimLost, InvalidPosting, InvalidState } from '../../core/errors.ts'
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
} from '../backend.ts'
import { encodePosting, type Posting, readSizedPosting } from '../posting.ts'
import { MemorySpace } from './space.ts'

/** As large as a posting may be on ZooKeeper: what works here in a test works there. */
const LARGEST_POST = 507_903

const named = new Map<string, MemorySpace>()

/** The space of that name, shared by all of this process; a new one, shared with nobody, for the empty name. */
export function memorySpace(name: string): MemorySpace {
  if (name === '') return new MemorySpace()
  const space = named.get(name) ?? new MemorySpace()
  named.set(name, space)
  return space
}

const EVERYTHING: BackendCapabilities = {
  keys: true,
  resources: true,
  delays: true,
  cancel: true,
  restore: true,
  everyChange: true,
}

export class MemoryBackend implements Backend {
  readonly capabilities = EVERYTHING
  readonly uri: string
  readonly clock: AlarmClock
  readonly #space: MemorySpace
  #open: { readonly sink: Sink; readonly unsubscribe: () => void; session: string } | undefined

  constructor(options: { uri: string; space: MemorySpace }) {
    this.uri = options.uri
    this.#space = options.space
    this.clock = options.space.clock
  }

  async open(sink: Sink): Promise<void> {
    const unsubscribe = this.#space.subscribe(sink)
    this.#open = { sink, unsubscribe, session: this.#space.newSession() }
    sink.session({ state: 'connected', session: this.#open.session })
    sink.gap()
    sink.paused(this.#space.paused)
  }

  async close(): Promise<void> {
    const open = this.#open
    if (!open) return
    this.#open = undefined
    open.unsubscribe()
    // The owner first: it has to know before anybody else can claim.
    open.sink.session({ state: 'closed', session: open.session })
    this.#space.endSession(open.session)
  }

  /** Ends the session and begins another, as an expired one would on a server: what a test of take-overs needs. */
  expireSession(): void {
    const open = this.#opened()
    open.sink.session({ state: 'lost', session: open.session })
    this.#space.endSession(open.session)
    open.session = this.#space.newSession()
    open.sink.session({ state: 'connected', session: open.session })
    open.sink.gap()
  }

  async post(requests: readonly PostRequest[]): Promise<Result<Posted>[]> {
    this.#opened()
    return requests.map(({ posting }) =>
      attempt(() => this.#space.post(posting, encoded(posting, { limit: LARGEST_POST }))),
    )
  }

  async claim(choices: readonly Choice[]): Promise<Result<Granted>[]> {
    const { session } = this.#opened()
    return choices.map(({ id, revision, posting, who }) =>
      attempt(() => ({
        session,
        ...this.#space.claim({ id, revision, posting, bytes: encoded(posting), held: { who, session } }),
      })),
    )
  }

  async settle(settlements: readonly Settlement[]): Promise<Result<void>[]> {
    this.#opened()
    return settlements.map((settlement) =>
      attempt(() => {
        if (this.#space.settle(settlement, encoded(settlement.posting))) return
        throw new ClaimLost(`job ${settlement.posting.uuid}: the claim is gone; stop and write nothing`)
      }),
    )
  }

  async discard(discarded: Discard): Promise<Result<void>> {
    this.#opened()
    return attempt(() => this.#space.discard(discarded, encoded(discarded.posting)))
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    this.#opened()
    if (request.kind === 'gate') this.#space.setPaused(request.paused)
    else this.#space.cancel(request)
  }

  async restore(entry: TrashedEntry, posting: Posting): Promise<void> {
    this.#opened()
    this.#space.restore(entry, posting, encoded(posting))
  }

  async purge(entry: TrashedEntry): Promise<void> {
    this.#opened()
    this.#space.purge(entry)
  }

  async list(): Promise<Listing> {
    this.#opened()
    return this.#space.list()
  }

  async read(ids: readonly string[]): Promise<(Stored | Unreadable | undefined)[]> {
    this.#opened()
    return ids.map((id) => {
      const row = this.#space.read(id)
      if (!row) return undefined
      const { bytes, revision, order, postedAt, writtenAt } = row
      const read = attempt(() => readSizedPosting(bytes, 'msgpack'))
      return 'error' in read
        ? { id, error: unreadable(id, read.error), bytes: bytes.length }
        : { id, ...read.value, revision, order, postedAt, writtenAt }
    })
  }

  async owner(id: string): Promise<string | undefined> {
    this.#opened()
    return this.#space.owner(id)
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    this.#opened()
    return this.#space.cancellation(id)
  }

  /** Changes are told as they happen. */
  async barrier(): Promise<void> {
    this.#opened()
  }

  async *trashed(): AsyncGenerator<TrashedEntry, void, undefined> {
    this.#opened()
    yield* this.#space.trashed()
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    this.#opened()
    return this.#space.trashedEntry(id)
  }

  async register(entity: Entity): Promise<void> {
    this.#space.register(entity, this.#opened().session)
  }

  async unregister(entity: Entity): Promise<void> {
    if (this.#open) this.#space.unregister(entity)
  }

  async entities(kind: string): Promise<Entity[]> {
    this.#opened()
    return this.#space.entities(kind)
  }

  now(): number {
    return this.clock.now()
  }

  /** A session here lasts as long as the board object. */
  holdSession(): SessionHold {
    return { proven: async () => this.#opened().session, [Symbol.dispose]: () => undefined }
  }

  alive(session: string): boolean {
    return this.#open?.session === session
  }

  #opened(): { sink: Sink; session: string } {
    if (this.#open) return this.#open
    throw new InvalidState(`board ${this.uri} is not open`)
  }
}

/** Attempts and a failure join a posting later: only the post itself is limited. */
function encoded(posting: Posting, options: { limit: number } = { limit: Number.POSITIVE_INFINITY }): Uint8Array {
  return encodePosting(posting, { encoding: 'msgpack', ...options })
}

function unreadable(id: string, cause: Error): InvalidPosting {
  return new InvalidPosting(`${id} ${cause.message}; it is not claimed here, remove it`, { cause })
}

function attempt<T>(step: () => T): Result<T> {
  try {
    return { value: step() }
  } catch (error) {
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }
}
