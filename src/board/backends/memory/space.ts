/**
 * The state that several memory boards of one process share: postings, claims, trash and participants.
 *
 * Every step is one synchronous function, so nothing can run between its check and its change. This is the reference
 * model of the contract: the other backends are tested against it.
 */

import { decode, encode } from '../../../core/codec.ts'
import { defined } from '../../../core/options.ts'
import { type AlarmClock, systemAlarmClock } from '../../../core/time.ts'
import type {
  BatchChange,
  BoardChange,
  BoardListing,
  Cancellation,
  CancelRequest,
  ClaimGrant,
  DiscardRequest,
  Entity,
  JobStatus,
  Posted,
  ReleaseOutcome,
  ReleaseRequest,
  Replaced,
  ReplaceRequest,
  RestoreOutcome,
  Settlement,
  TrashedEntry,
  TrashListing,
  TrashReason,
  Written,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { cascadeCancellation, type Dependency } from '../../model/dependencies.ts'
import type { HistoryEntry } from '../../model/ended-job.ts'
import type { StoredBatch } from '../../model/job-batch.ts'
import type { ClaimLimits } from '../../model/limits.ts'
import { decodePosting, encodePosting, type Posting, toCountedBytes } from '../../model/posting.ts'
import { changesLimits, type RecordChange } from '../../model/record.ts'
import { selectTrash } from '../trash-pages.ts'
import { MemoryBatches } from './batches.ts'
import { MemoryDependencies } from './dependencies.ts'
import { MemoryHistory } from './history.ts'
import { MemoryKeys } from './keys.ts'
import { MemoryLimits } from './limits.ts'
import { Permits } from './permits.ts'
import { MemoryRecords } from './records.ts'

interface MemoryClaim {
  readonly who: string
  readonly session: string
}

/** The fields of a posting that the space needs itself. */
type KeptPosting = Pick<Posting, 'uuid' | 'key' | 'resources' | 'batch'>

interface MemoryJob {
  bytes: Uint8Array
  posting: KeptPosting
  revision: number
  readonly order: bigint
  readonly postedAt: number
  writtenAt: number
  held: MemoryClaim | undefined
  /** The alarms that wake the boards when the delay is over, and when the job expires. */
  readonly alarms: Disposable[]
}

/** A job to post, and the jobs on the board after which it is run. */
export interface MemoryPost {
  readonly posting: Posting
  readonly bytes: Uint8Array
  readonly after?: readonly Dependency[] | undefined
  /** The open job of the batch on whose behalf it is posted. */
  readonly member?: string | undefined
}

/** The end of a job in the trash. */
type Trashing = TrashReason & {
  readonly posting: Posting
  readonly bytes: Uint8Array
  readonly who: string
  readonly at?: Date
}
/** The fields of a posting by which alarms are set. */
type AlarmedPosting = Partial<Pick<Posting, 'delay' | 'expiresAfter' | 'runs'>>

/** An entry of the trash, as one transaction writes it. */
type MemoryTrashEntry = TrashReason & {
  readonly uuid: string
  readonly bytes: Uint8Array
  readonly who: string
  readonly at: Date
}

/** A board that is notified of changes in the space. */
export interface SpaceListener {
  changes(batch: readonly BoardChange[]): void
  paused(paused: boolean): void
}

const ENCODING = 'msgpack'

export class MemorySpace {
  readonly #rows = new Map<string, MemoryJob>()
  readonly #trash = new Map<string, MemoryTrashEntry>()
  readonly keys = new MemoryKeys({ isOnBoard: (id) => this.#rows.has(id), now: () => this.clock.now() })
  readonly #permits = new Permits()
  readonly #cancellations = new Map<string, Cancellation>()
  readonly #entities = new Map<string, { entity: Entity; session: string }>()
  readonly #listeners = new Set<SpaceListener>()
  readonly records = new MemoryRecords()
  readonly limits = new MemoryLimits()
  readonly dependencies = new MemoryDependencies()
  readonly history = new MemoryHistory()
  readonly batches = new MemoryBatches()
  readonly #ownClock: AlarmClock | undefined
  readonly #doomed: string[] = []
  #paused = false
  #sequence = 0
  #sessions = 0
  #fence = 0n

  /** @param options.clock the clock for the delays of jobs; the clock of the process by default */
  constructor(options: { readonly clock?: AlarmClock } = {}) {
    this.#ownClock = options.clock
  }

  get clock(): AlarmClock {
    return this.#ownClock ?? systemAlarmClock
  }

  get paused(): boolean {
    return this.#paused
  }

  newSession(): string {
    this.#sessions += 1
    return `session ${this.#sessions}`
  }

  subscribe(listener: SpaceListener): () => void {
    this.#listeners.add(listener)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  /** Releases everything that the session holds, as the end of a process does. */
  endSession(session: string): void {
    for (const [key, { session: owner }] of this.#entities) if (owner === session) this.#entities.delete(key)
    for (const [id, row] of this.#rows) {
      if (row.held?.session !== session) continue
      this.#release(id, row)
      this.#notify({ kind: 'released', id })
    }
  }

  post(post: MemoryPost): Posted {
    const { posting, bytes, after = [] } = post
    const gone = this.#findGone(after)
    if (gone.length > 0) return { created: false, gone }
    this.batches.assertTakes([post])
    const holder = this.keys.holderOf(posting.key)
    if (holder) return { created: false, ...holder, revision: 0 }
    this.batches.add(posting)
    return { created: true, ...this.#add(posting, bytes, after) }
  }

  #findGone(after: readonly Dependency[]): readonly string[] {
    return after.flatMap(({ id }) => (this.#rows.has(id) ? [] : [id]))
  }

  /** Changes records and posts jobs, or does nothing of it. */
  write(changes: readonly RecordChange[], posts: readonly MemoryPost[]): Written {
    const conflict = this.records.findConflict(changes)
    if (conflict) return { done: false, conflict: { kind: conflict.kind, id: conflict.id } }
    const keys = new Set<string>()
    for (const { key } of posts.map(({ posting }) => posting)) {
      if (key === undefined) continue
      if (keys.has(key) || this.keys.holderOf(key)) return { done: false, conflict: { key } }
      keys.add(key)
    }
    const gone = this.#findGone(posts.flatMap(({ after = [] }) => after))
    if (gone.length > 0) return { done: false, conflict: { gone } }
    this.batches.assertTakes(posts)
    if (changesLimits(changes)) this.limits.noteChange()
    const revisions = this.records.apply(changes)
    return { done: true, revisions, posted: posts.map((post) => this.post(post)) }
  }

  /** Adds any bytes as a posting, as if they were put there by hand. @returns its id */
  putRaw(bytes: Uint8Array): string {
    return this.#add({ uuid: '' }, bytes).id
  }

  /** Removes a posting as if it were removed by hand: its key stays. */
  removeRaw(id: string): void {
    if (this.#rows.delete(id)) this.#notify({ kind: 'gone', id })
  }

  claim(choice: {
    id: string
    revision: number
    bytes: Uint8Array
    held: MemoryClaim
    limits: ClaimLimits | undefined
    isFirstRun: boolean
  }): Omit<ClaimGrant, 'session'> {
    const { id, revision, bytes, held, limits, isFirstRun } = choice
    if (this.#paused) throw refusalError(id, { why: 'paused' })
    const row = this.#requireUnclaimed(id, revision)
    if (this.dependencies.waits(id) && (isFirstRun || !this.#cancellations.has(id)))
      throw refusalError(id, { why: 'waits' })
    this.#permits.acquire(id, row.posting)
    const arrivals = this.#takeLimits(id, row, limits)
    this.#write(row, bytes)
    row.held = held
    this.#fence = nextFence(this.#fence, this.clock.now())
    this.#notify({ kind: 'updated', id }, { kind: 'claimed', id })
    return { revision: row.revision, fence: this.#fence, arrivals }
  }

  #takeLimits(id: string, row: MemoryJob, limits: ClaimLimits | undefined): ClaimGrant['arrivals'] & object {
    if (!limits) return []
    try {
      return this.limits.take(id, limits, this.clock.now())
    } catch (error) {
      this.#permits.release(id, row.posting)
      throw error
    }
  }

  /** @returns false if this session no longer holds the claim at this revision */
  settle(settlement: Settlement, bytes: Uint8Array): boolean {
    const { id, session, revision } = settlement
    const row = this.#rows.get(id)
    if (row?.held?.session !== session || row.revision !== revision) return false
    if (settlement.kind === 'abandon') this.#giveBack(id, row, { posting: settlement.posting, bytes })
    else this.#remove(id, settlement.kind === 'trash' ? { ...settlement, bytes } : undefined, settlement.history)
    return true
  }

  /** Ends the claim of whichever session holds it at this revision. */
  release({ id, revision, posting }: ReleaseRequest, bytes: Uint8Array): ReleaseOutcome {
    const row = this.#rows.get(id)
    if (!row) return 'gone'
    if (row.revision !== revision) return 'changed'
    if (!row.held) return 'unclaimed'
    this.#giveBack(id, row, { posting, bytes })
    return 'released'
  }

  #giveBack(id: string, row: MemoryJob, { posting, bytes }: MemoryPost): void {
    this.#write(row, bytes)
    this.#release(id, row)
    row.posting = toKept(posting)
    this.#notify({ kind: 'updated', id }, { kind: 'released', id })
    this.#setAlarms(posting, row)
  }

  replace({ id, revision, posting, window }: ReplaceRequest, bytes: Uint8Array): Replaced {
    const row = this.#requireUnclaimed(id, revision)
    this.#write(row, bytes)
    row.posting = toKept(posting)
    if (posting.key !== undefined) this.keys.take(posting.key, { id, uuid: posting.uuid }, window)
    this.#notify({ kind: 'updated', id })
    this.#setAlarms(posting, row)
    return { revision: row.revision, bytes: toCountedBytes(bytes, ENCODING) }
  }

  discard(discarded: DiscardRequest, bytes: Uint8Array): void {
    this.#requireUnclaimed(discarded.id, discarded.revision)
    this.#remove(discarded.id, { ...discarded, bytes }, discarded.history)
  }

  cancel({ id, job, who, reason }: CancelRequest): void {
    if (!this.#rows.has(id)) throw refusalError(job, { why: 'gone' })
    if (this.#cancellations.has(id)) return
    this.#cancellations.set(id, { who, reason })
    this.#notify({ kind: 'cancelled', id })
  }

  cancellation(id: string): Cancellation | undefined {
    return this.#cancellations.get(id)
  }

  setPaused(paused: boolean): void {
    this.#paused = paused
    for (const listener of this.#listeners) listener.paused(paused)
  }

  restore(entry: TrashedEntry, { posting, bytes, after = [] }: MemoryPost): RestoreOutcome {
    if (!this.#trash.has(entry.id)) throw notInTrashError(entry)
    const gone = this.#findGone(after)
    if (gone.length > 0) return { restored: false, gone }
    const holder = this.keys.holderOf(posting.key)
    // Its own window does not keep a job in the trash.
    if (holder && holder.inWindowOf !== entry.id) {
      throw refusalError(`job ${posting.uuid}`, { why: 'key' })
    }
    this.batches.assertRestores(posting, entry.id)
    this.#trash.delete(entry.id)
    this.batches.restore(posting, entry.id)
    this.#add(posting, bytes, after)
    return { restored: true }
  }

  changeBatch(uuid: string, change: BatchChange): StoredBatch {
    const { batch, callback } = this.batches.change(uuid, change, this.clock.now())
    this.#postCallback(callback)
    return batch
  }

  #postCallback(posting: Posting | undefined): void {
    if (posting) this.#add(posting, encodePosting(posting, { encoding: ENCODING, limit: Number.POSITIVE_INFINITY }))
  }

  purge(entry: TrashedEntry): void {
    if (!this.#trash.delete(entry.id)) throw notInTrashError(entry)
  }

  list(): BoardListing {
    const claimed = [...this.#rows].flatMap(([id, row]) => (row.held ? [id] : []))
    return {
      jobs: [...this.#rows.keys()],
      claimed: new Set(claimed),
      trashed: new Set(this.#trash.keys()),
      cancelled: new Set(this.#cancellations.keys()),
    }
  }

  read(id: string): Readonly<Omit<MemoryJob, 'held' | 'posting' | 'alarms'>> | undefined {
    return this.#rows.get(id)
  }

  status(id: string): JobStatus {
    const row = this.#rows.get(id)
    if (!row) return this.#trash.has(id) ? 'trashed' : 'gone'
    return { claimed: row.held !== undefined, cancelled: this.#cancellations.has(id), revision: row.revision }
  }

  owner(id: string): string | undefined {
    return this.#rows.get(id)?.held?.who
  }

  *trashed(listing?: TrashListing): Generator<TrashedEntry, void, undefined> {
    for (const id of selectTrash([...this.#trash.keys()], listing, (id) => id)) {
      const entry = this.trashedEntry(id)
      if (entry) yield entry
    }
  }

  trashedEntry(id: string): TrashedEntry | undefined {
    const row = this.#trash.get(id)
    return row && toTrashedEntry(id, row)
  }

  /** Returns the newest entry with this uuid. */
  findTrashed(uuid: string): TrashedEntry | undefined {
    const id = [...this.#trash].findLast(([, row]) => row.uuid === uuid)?.[0]
    return id === undefined ? undefined : this.trashedEntry(id)
  }

  register(entity: Entity, session: string): void {
    const key = JSON.stringify([entity.kind, entity.name])
    const living = this.#entities.get(key)
    if (living && living.entity.instance !== entity.instance) {
      throw refusalError(`registering ${entity.kind} ${entity.name}`, { why: 'name' })
    }
    this.#entities.set(key, { entity: decode(encode(entity, ENCODING), ENCODING) as Entity, session })
  }

  unregister(entity: Entity): void {
    const key = JSON.stringify([entity.kind, entity.name])
    if (this.#entities.get(key)?.entity.instance === entity.instance) this.#entities.delete(key)
  }

  entities(kind: string): Entity[] {
    return [...this.#entities.values()].map(({ entity }) => entity).filter((entity) => entity.kind === kind)
  }

  #add(
    posting: KeptPosting & Pick<Posting, 'keyFor'> & AlarmedPosting,
    bytes: Uint8Array,
    after: readonly Dependency[] = [],
  ): { id: string; revision: number; order: bigint; bytes: number } {
    const id = `job${String(this.#sequence).padStart(10, '0')}`
    const now = this.clock.now()
    const row = { bytes, revision: 0, order: BigInt(this.#sequence), postedAt: now, writtenAt: now }
    this.#sequence += 1
    const added: MemoryJob = { ...row, posting: toKept(posting), held: undefined, alarms: [] }
    this.#rows.set(id, added)
    if (posting.key !== undefined) this.keys.take(posting.key, { id, uuid: posting.uuid }, posting.keyFor)
    this.dependencies.add(id, after)
    this.#notify({ kind: 'posted', id })
    this.#setAlarms(posting, added)
    return { id, revision: row.revision, order: row.order, bytes: toCountedBytes(bytes, ENCODING) }
  }

  #write(row: MemoryJob, bytes: Uint8Array): void {
    row.bytes = bytes
    row.revision += 1
    row.writtenAt = this.clock.now()
    clearAlarms(row)
  }

  #release(id: string, row: MemoryJob): void {
    row.held = undefined
    this.#permits.release(id, row.posting)
    this.limits.free(id)
  }

  #requireUnclaimed(id: string, revision: number): MemoryJob {
    const row = this.#rows.get(id)
    if (!row) throw refusalError(id, { why: 'gone' })
    if (row.held || row.revision !== revision) throw refusalError(id, { why: 'changed' })
    return row
  }

  #remove(id: string, trash: Trashing | undefined, history: HistoryEntry | undefined): void {
    const row = this.#rows.get(id)
    const changes: BoardChange[] = [{ kind: 'gone', id }]
    if (row?.held) {
      this.#release(id, row)
      changes.push({ kind: 'released', id })
    }
    if (row) clearAlarms(row)
    this.#rows.delete(id)
    this.#cancellations.delete(id)
    if (row?.posting.key !== undefined) this.keys.release(row.posting.key, id)
    if (trash) {
      const { posting, bytes, who, reason, failure, at = new Date(this.clock.now()) } = trash
      const entry = { uuid: posting.uuid, bytes, who, reason, at }
      this.#trash.set(id, { ...entry, ...(failure ? { failure } : {}) })
      changes.unshift({ kind: 'trashed', id })
    }
    if (history) this.history.add(history)
    this.#notify(...changes, ...this.#endDependencies(id, trash))
    const counted = { id, trashed: trash !== undefined, now: this.clock.now() }
    if (row) this.#postCallback(this.batches.end(row.posting, counted))
  }

  /** Returns the jobs that ends have cancelled since the last call. */
  takeDoomed(): readonly string[] {
    return this.#doomed.splice(0)
  }

  /** Frees the jobs that depend on one that has ended, or requests to cancel them. */
  #endDependencies(id: string, trash: Trashing | undefined): BoardChange[] {
    const { ready, failed } = this.dependencies.end(id, trash ? 'trashed' : 'done')
    const cancelled = trash ? failed.filter((dependent) => !this.#cancellations.has(dependent)) : []
    for (const dependent of cancelled) if (trash) this.#cancellations.set(dependent, cascadeCancellation(trash))
    this.#doomed.push(...cancelled)
    return [
      ...ready.map((dependent): BoardChange => ({ kind: 'ready', id: dependent })),
      ...cancelled.map((dependent): BoardChange => ({ kind: 'cancelled', id: dependent })),
    ]
  }

  /**
   * Sets the alarms for a job that is delayed or expires, on the space's own clock. Boards set timers of the process themselves; of
   * another clock they know only the current time.
   */
  #setAlarms({ delay, expiresAfter, runs = 0 }: AlarmedPosting, { alarms, postedAt }: MemoryJob): void {
    const clock = this.#ownClock
    if (!clock) return
    const ring = () => this.#notify()
    if (delay !== undefined) alarms.push(clock.alarm(delay, { kind: 'delay', ring }))
    if (expiresAfter === undefined || runs > 0) return
    const left = Math.max(0, postedAt + expiresAfter - clock.now())
    alarms.push(clock.alarm(left, { kind: 'expiry', ring }))
  }

  #notify(...batch: BoardChange[]): void {
    for (const listener of this.#listeners) listener.changes(batch)
  }
}

function clearAlarms({ alarms }: MemoryJob): void {
  for (const alarm of alarms.splice(0)) alarm[Symbol.dispose]()
}

function toKept({ uuid, key, resources, batch }: KeptPosting): KeptPosting {
  return { uuid, ...defined({ key, resources, batch }) }
}

function notInTrashError({ posting }: TrashedEntry): Error {
  return refusalError(`job ${posting.uuid} (${posting.name})`, { why: 'not in trash' })
}

/**
 * Returns the next fence: at least the time in microseconds, so that the space of the next process, which does not know
 * this one, continues with larger fences.
 */
function nextFence(last: bigint, nowMs: number): bigint {
  const micros = BigInt(Math.floor(nowMs * 1_000))
  return micros > last ? micros : last + 1n
}

function toTrashedEntry(id: string, { bytes, ...entry }: MemoryTrashEntry): TrashedEntry {
  return { id, revision: 0, posting: decodePosting(bytes, ENCODING), ...entry }
}
