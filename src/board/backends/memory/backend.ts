/**
 * The memory backend: a board inside one process, for tests, for trying things out, and for work that may end with the
 * process.
 */

import { InvalidPosting, InvalidState } from '../../../core/errors.ts'
import { catchError, type Result } from '../../../core/result.ts'
import type { AlarmClock } from '../../../core/time.ts'
import {
  ALL_CAPABILITIES,
  type Backend,
  type BackendSink,
  type BatchStore,
  type BoardListing,
  type Cancellation,
  type CancelRequest,
  type ClaimGrant,
  type ClaimRequest,
  type DiscardRequest,
  type Entity,
  type GateRequest,
  type JobStatus,
  MAX_SHOWN_DEPENDENCIES,
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
import { isFirstRun } from '../../model/dependencies.ts'
import type { EndedJob } from '../../model/ended-job.ts'
import type { LimitUse, TokenRequest, TokensTaken } from '../../model/limits.ts'
import { encodePosting, MAX_POSTING_BYTES, type Posting, readSizedPosting } from '../../model/posting.ts'
import type { RecordName, StoredRecord } from '../../model/record.ts'
import { UnreadableValues } from '../unreadable-values.ts'
import { type MemoryPost, MemorySpace } from './space.ts'

const spacesByName = new Map<string, MemorySpace>()

/**
 * Returns the space of that name, which all boards of this process share. An empty name returns a new space, which is
 * not shared.
 */
export function memorySpace(name: string): MemorySpace {
  if (name === '') return new MemorySpace()
  const space = spacesByName.get(name) ?? new MemorySpace()
  spacesByName.set(name, space)
  return space
}

export class MemoryBackend implements Backend {
  readonly capabilities = ALL_CAPABILITIES
  readonly uri: string
  readonly clock: AlarmClock
  readonly #space: MemorySpace
  #open: { readonly sink: BackendSink; session: string } | undefined
  #unsubscribe: (() => void) | undefined
  readonly #unreadable = new UnreadableValues({ onError: (error) => this.#open?.sink.error(error) })
  readonly #followed = new Set<string>()
  readonly #recordWatches = new Map<string, () => void>()
  readonly #batchWatches = new Map<string, () => void>()
  #unfollow: (() => void) | undefined

  constructor(options: { uri: string; space: MemorySpace }) {
    this.uri = options.uri
    this.#space = options.space
    this.clock = options.space.clock
  }

  readonly batches: BatchStore = {
    create: async (batch) => this.#openSpace().batches.create(batch),
    find: async (uuid) => this.#openSpace().batches.find(uuid),
    list: async ({ limit }) => this.#openSpace().batches.newest(limit),
    change: async (uuid, change) => this.#openSpace().changeBatch(uuid, change),
    jobs: async (uuid) => this.#openSpace().batches.jobs(uuid),
    watch: async (uuid) => {
      const { sink } = this.#requireOpen()
      const onChange = (changed: string) => {
        if (changed === uuid) sink.batchChanged(uuid)
      }
      if (!this.#batchWatches.has(uuid)) this.#batchWatches.set(uuid, this.#space.batches.watch(onChange))
    },
    unwatch: async (uuid) => {
      this.#batchWatches.get(uuid)?.()
      this.#batchWatches.delete(uuid)
    },
  }

  async open(sink: BackendSink): Promise<void> {
    this.#open = { sink, session: this.#space.newSession() }
    sink.session({ state: 'connected', session: this.#open.session })
    sink.paused(this.#space.paused)
  }

  async subscribe(): Promise<void> {
    const { sink } = this.#requireOpen()
    this.#unsubscribe ??= this.#space.subscribe(sink)
    sink.gap()
    sink.paused(this.#space.paused)
  }

  async unsubscribe(): Promise<void> {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
  }

  async follow(ids: readonly string[]): Promise<JobStatus[]> {
    const { sink } = this.#requireOpen()
    const statuses = ids.map((id) => this.#space.status(id))
    for (const [index, id] of ids.entries()) if (typeof statuses[index] === 'object') this.#followed.add(id)
    if (this.#followed.size > 0) this.#unfollow ??= this.#space.subscribe(this.#followedChanges(sink))
    return statuses
  }

  async unfollow(ids: readonly string[]): Promise<void> {
    this.#forget(ids)
  }

  #forget(ids: readonly string[]): void {
    for (const id of ids) this.#followed.delete(id)
    if (this.#followed.size > 0) return
    this.#unfollow?.()
    this.#unfollow = undefined
  }

  #followedChanges(sink: BackendSink): Pick<BackendSink, 'changes' | 'paused'> {
    return {
      changes: (batch) => {
        const followed = batch.filter(({ id }) => this.#followed.has(id))
        if (followed.length > 0) sink.followed(followed)
        for (const { kind, id } of followed) if (kind === 'gone') this.#forget([id])
      },
      paused: () => undefined,
    }
  }

  async close(): Promise<void> {
    const open = this.#open
    if (!open) return
    this.#open = undefined
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#forget([...this.#followed])
    for (const watches of [this.#recordWatches, this.#batchWatches]) {
      for (const unwatch of watches.values()) unwatch()
      watches.clear()
    }
    // The owner is notified first: it must know before another board can claim.
    open.sink.session({ state: 'closed', session: open.session })
    this.#space.endSession(open.session)
  }

  /** Ends the session and begins another one, as when a session expires on a server. Tests of takeovers use it. */
  expireSession(): void {
    const open = this.#requireOpen()
    open.sink.session({ state: 'lost', session: open.session })
    this.#space.endSession(open.session)
    open.session = this.#space.newSession()
    open.sink.session({ state: 'connected', session: open.session })
    open.sink.gap()
  }

  async post(request: PostRequest): Promise<Posted> {
    this.#requireOpen()
    return this.#space.post(toMemoryPost(request))
  }

  async claim(choices: readonly ClaimRequest[]): Promise<Result<ClaimGrant>[]> {
    const { session } = this.#requireOpen()
    return choices.map(({ id, revision, posting, who, limits }) =>
      catchError(() => ({
        session,
        ...this.#space.claim({
          ...{ id, revision, bytes: encodeWithinLimit(posting), held: { who, session }, limits },
          isFirstRun: isFirstRun(posting),
        }),
      })),
    )
  }

  async limitsRevision(): Promise<number> {
    this.#requireOpen()
    return this.#space.limits.revision
  }

  async limitUse(keys?: readonly string[]): Promise<readonly LimitUse[]> {
    this.#requireOpen()
    return this.#space.limits.use(keys)
  }

  async takeTokens(request: TokenRequest): Promise<TokensTaken> {
    this.#requireOpen()
    return this.#space.limits.takeTokens(request, this.clock.now())
  }

  async replace(request: ReplaceRequest): Promise<Replaced> {
    this.#requireOpen()
    return this.#space.replace(request, encodeWithinLimit(request.posting, { limit: MAX_POSTING_BYTES }))
  }

  async settle(settlement: Settlement): Promise<void> {
    const { sink } = this.#requireOpen()
    const isSettled = this.#space.settle(settlement, encodeWithinLimit(settlement.posting))
    this.#reportDoomed(sink)
    if (isSettled) return
    throw refusalError(`job ${settlement.posting.uuid}`, { why: 'lost' })
  }

  async release(request: ReleaseRequest): Promise<ReleaseOutcome> {
    this.#requireOpen()
    return this.#space.release(request, encodeWithinLimit(request.posting))
  }

  async discard(discarded: DiscardRequest): Promise<void> {
    const { sink } = this.#requireOpen()
    this.#space.discard(discarded, encodeWithinLimit(discarded.posting))
    this.#reportDoomed(sink)
  }

  #reportDoomed(sink: BackendSink): void {
    const ids = this.#space.takeDoomed()
    if (ids.length > 0) sink.doomed(ids)
  }

  async request(request: CancelRequest | GateRequest): Promise<void> {
    this.#requireOpen()
    if (request.kind === 'gate') this.#space.setPaused(request.paused)
    else this.#space.cancel(request)
  }

  async restore(entry: TrashedEntry, posting: Posting, { after }: RestoreOptions = {}): Promise<RestoreOutcome> {
    this.#requireOpen()
    return this.#space.restore(entry, { posting, bytes: encodeWithinLimit(posting), after })
  }

  async purge(entry: TrashedEntry): Promise<void> {
    this.#requireOpen()
    this.#space.purge(entry)
  }

  async dependencies(
    id: string,
  ): Promise<{ readonly waitsFor: readonly string[]; readonly dependents: readonly string[] }> {
    this.#requireOpen()
    const { dependencies } = this.#space
    const [waitsFor, dependents] = [dependencies.waitsFor(id), dependencies.dependentsOf(id)]
    return {
      waitsFor: waitsFor.slice(0, MAX_SHOWN_DEPENDENCIES),
      dependents: dependents.slice(0, MAX_SHOWN_DEPENDENCIES),
    }
  }

  async history({ limit }: { readonly limit: number }): Promise<readonly EndedJob[]> {
    this.#requireOpen()
    return this.#space.history.newest(limit, this.#unreadable)
  }

  async endedJobs(uuids: readonly string[]): Promise<readonly (EndedJob | undefined)[]> {
    this.#requireOpen()
    return uuids.map((uuid) => this.#space.history.find(uuid))
  }

  async list(): Promise<BoardListing> {
    this.#requireOpen()
    return this.#space.list()
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    this.#requireOpen()
    return ids.map((id) => {
      const row = this.#space.read(id)
      if (!row) return undefined
      const { bytes, revision, order, postedAt, writtenAt } = row
      const read = catchError(() => readSizedPosting(bytes, 'msgpack'))
      return 'error' in read
        ? { id, error: toUnreadable(id, read.error), bytes: bytes.length }
        : {
            ...{ id, ...read.value, revision, order, postedAt, writtenAt },
            ...(this.#space.dependencies.waits(id) ? { waits: true } : {}),
          }
    })
  }

  async owner(id: string): Promise<string | undefined> {
    this.#requireOpen()
    return this.#space.owner(id)
  }

  async cancellation(id: string): Promise<Cancellation | undefined> {
    this.#requireOpen()
    return this.#space.cancellation(id)
  }

  /** Resolves at once: changes are reported as they happen. */
  async barrier(): Promise<void> {
    this.#requireOpen()
  }

  async *trashed(listing?: TrashListing): AsyncGenerator<TrashedEntry, void, undefined> {
    this.#requireOpen()
    yield* this.#space.trashed(listing)
  }

  async trashedEntry(id: string): Promise<TrashedEntry | undefined> {
    this.#requireOpen()
    return this.#space.trashedEntry(id)
  }

  async findTrashed(uuid: string): Promise<TrashedEntry | undefined> {
    this.#requireOpen()
    return this.#space.findTrashed(uuid)
  }

  async write({ changes, posts }: WriteRequest): Promise<Written> {
    this.#requireOpen()
    return this.#space.write(changes, posts.map(toMemoryPost))
  }

  async records(kind: string): Promise<StoredRecord[]> {
    this.#requireOpen()
    return this.#space.records.list(kind)
  }

  async record(name: RecordName): Promise<StoredRecord | undefined> {
    this.#requireOpen()
    return this.#space.records.get(name)
  }

  async watchRecords(kind: string): Promise<void> {
    const { sink } = this.#requireOpen()
    const onChanges = (names: readonly RecordName[]) => {
      const watched = names.filter((name) => name.kind === kind)
      if (watched.length > 0) sink.records(watched)
    }
    if (!this.#recordWatches.has(kind)) this.#recordWatches.set(kind, this.#space.records.watch(onChanges))
  }

  async unwatchRecords(kind: string): Promise<void> {
    this.#recordWatches.get(kind)?.()
    this.#recordWatches.delete(kind)
  }

  async releaseOrphans(): Promise<void> {
    // Resources are held by the job: without its claim none is left.
  }

  async resourceHolder(): Promise<undefined> {
    // Other programs hold no resources of these boards.
  }

  async register(entity: Entity): Promise<void> {
    this.#space.register(entity, this.#requireOpen().session)
  }

  async unregister(entity: Entity): Promise<void> {
    if (this.#open) this.#space.unregister(entity)
  }

  async entities(kind: string): Promise<Entity[]> {
    this.#requireOpen()
    return this.#space.entities(kind)
  }

  now(): number {
    return this.clock.now()
  }

  async readClock(): Promise<void> {
    // The board uses the clock of this process, which needs no request.
  }

  /** Returns a hold that does nothing: a session of this backend lasts as long as the board object. */
  holdSession(): SessionHold {
    return { whenAlive: async () => this.#requireOpen().session, [Symbol.dispose]: () => undefined }
  }

  alive(session: string): boolean {
    return this.#open?.session === session
  }

  sessionLeft(): number {
    return Number.POSITIVE_INFINITY
  }

  #openSpace(): MemorySpace {
    this.#requireOpen()
    return this.#space
  }

  #requireOpen(): { sink: BackendSink; session: string } {
    if (this.#open) return this.#open
    throw new InvalidState(`board ${this.uri} is not open`)
  }
}

function toMemoryPost({ posting, after, member }: PostRequest): MemoryPost {
  return { posting, bytes: encodeWithinLimit(posting, { limit: MAX_POSTING_BYTES }), after, member }
}

/** Encodes a posting. Only a post is limited: attempts and a failure are added to the posting later. */
function encodeWithinLimit(
  posting: Posting,
  options: { limit: number } = { limit: Number.POSITIVE_INFINITY },
): Uint8Array {
  return encodePosting(posting, { encoding: 'msgpack', ...options })
}

function toUnreadable(id: string, cause: Error): InvalidPosting {
  return new InvalidPosting(`${id} ${cause.message}; it is not claimed here, remove it`, { cause })
}
