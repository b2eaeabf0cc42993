/** The memory backend: a board inside one process, for tests, for trying things, and for work that may die with it. */
import { ClaimLost, InvalidPosting, InvalidState } from '../../core/errors.ts'
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
} from '../backend.ts'
import { decodePosting, encodePosting, type Posting } from '../posting.ts'
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

export class MemoryBackend implements Backend {
  readonly uri: string
  readonly #space: MemorySpace
  #open: { readonly sink: Sink; readonly unsubscribe: () => void; session: string } | undefined

  constructor(options: { uri: string; space: MemorySpace }) {
    this.uri = options.uri
    this.#space = options.space
  }

  async open(sink: Sink): Promise<void> {
    const unsubscribe = this.#space.subscribe((batch) => sink.changes(batch))
    this.#open = { sink, unsubscribe, session: this.#space.newSession() }
    sink.session({ state: 'connected', session: this.#open.session })
    sink.gap()
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

  async post(postings: readonly Posting[]): Promise<Result<Posted>[]> {
    this.#opened()
    return postings.map((posting) => attempt(() => this.#space.post(encoded(posting, { limit: LARGEST_POST }))))
  }

  async claim(choices: readonly Choice[]): Promise<Result<Granted>[]> {
    const { session } = this.#opened()
    return choices.map(({ id, revision, posting, who }) =>
      attempt(() => ({
        session,
        ...this.#space.claim({ id, revision, bytes: encoded(posting), held: { who, session } }),
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

  async list(): Promise<Listing> {
    this.#opened()
    return this.#space.list()
  }

  async read(ids: readonly string[]): Promise<(Stored | Unreadable | undefined)[]> {
    this.#opened()
    return ids.map((id) => {
      const row = this.#space.read(id)
      if (!row) return undefined
      const { bytes, revision, order, postedAt } = row
      const posting = attempt(() => decodePosting(bytes, 'msgpack'))
      return 'error' in posting
        ? { id, error: unreadable(id, posting.error) }
        : { id, revision, order, postedAt, posting: posting.value }
    })
  }

  async owner(id: string): Promise<string | undefined> {
    this.#opened()
    return this.#space.owner(id)
  }

  /** Changes are told as they happen. */
  async barrier(): Promise<void> {
    this.#opened()
  }

  async trashed(): Promise<TrashedEntry[]> {
    this.#opened()
    return this.#space.trashed()
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
