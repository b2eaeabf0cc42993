/**
 * The jobs that a view knows: those that are in it, by id and by uuid, those outside that somebody holds on to, and how many
 * there are on the board. What they mean for whoever claims is the queue's affair.
 */
import { deferred } from '../../core/abort.ts'
import type { Change } from '../backend.ts'
import { type Entry, newEntry, type Standing } from '../entry.ts'
import type { ClaimQueue } from '../queue/queue.ts'
import { type End, Handles } from './handles.ts'
import { UuidIndex } from './uuid-index.ts'

export class ViewJobs {
  readonly handles = new Handles()
  readonly #queue: ClaimQueue
  /** Nothing has to be read for it any more. */
  readonly #forget: (entry: Entry) => void
  readonly #ended: (entry: Entry, end: End) => void
  readonly #entries = new Map<string, Entry>()
  readonly #uuids = new UuidIndex(() => this.#entries.values())
  /** How many are on the board, where the backend tells: the view may be a part of it. */
  #count: number | undefined

  /** @param options.ended resolves the wait for the end of a job that has left the board */
  constructor(options: {
    queue: ClaimQueue
    forget: (entry: Entry) => void
    ended: (entry: Entry, end: End) => void
  }) {
    this.#queue = options.queue
    this.#forget = options.forget
    this.#ended = options.ended
  }

  get size(): number {
    return this.#entries.size
  }

  /** How many are on the board, readable or not. */
  get onBoard(): number {
    return this.#count ?? this.#entries.size
  }

  /** Those that are in the view. */
  all(): IterableIterator<Entry> {
    return this.#entries.values()
  }

  get(id: string): Entry | undefined {
    return this.#entries.get(id)
  }

  byUuid(uuid: string): Entry | undefined {
    return this.#uuids.get(uuid)
  }

  /** The job with this id, in the view or not. One that is not has to be read by whoever asks. */
  byId(id: string): Entry {
    return this.#entries.get(id) ?? this.handles.of(id)
  }

  /** Whether the entry is this view's, or that of another board object. */
  owns(entry: Entry): boolean {
    return entry.id !== undefined && (this.#entries.get(entry.id) ?? this.handles.get(entry.id)) === entry
  }

  /** It is in the view from now on. */
  add(id: string, standing: Standing): Entry {
    const entry = this.handles.take(id) ?? newEntry(id)
    this.#entries.set(id, entry)
    this.stand(entry, standing)
    this.index(entry)
    return entry
  }

  /** Its posting is known. */
  index(entry: Entry): void {
    if (entry.stored && entry.standing !== 'outside') this.#uuids.add(entry.stored.posting.uuid, entry)
  }

  stand(entry: Entry, standing: Standing): void {
    entry.standing = standing
    this.#queue.update(entry)
  }

  /** It is on the board, and in the view no more. */
  leave(entry: Entry): void {
    this.#dismiss(entry)
    this.stand(entry, 'outside')
    this.handles.keep(entry)
  }

  /** It has left the board. */
  end(entry: Entry, id: string): End {
    this.#dismiss(entry)
    this.handles.take(id)
    const end = entry.trashing ? 'TRASHED' : 'COMPLETE'
    entry.ended = end
    this.handles.ended(id, end)
    this.#queue.update(entry)
    this.#ended(entry, end)
    return end
  }

  /** No end will be heard of any more. */
  giveUp(reason: Error): void {
    for (const entry of [...this.#entries.values(), ...this.handles.all()]) {
      entry.end ??= deferred()
      entry.end.promise.catch(() => undefined)
      entry.end.reject(reason)
    }
  }

  /** So many were on the board after what was told last. */
  counted(jobs: number): void {
    this.#count = jobs
  }

  /** What happens from then on is told once, also while the view cannot apply it. */
  count(batch: readonly Change[]): void {
    if (this.#count === undefined) return
    for (const { kind, id, again } of batch) {
      if (kind === 'posted') this.#count += 1
      else if (kind === 'gone' && (!again || this.#entries.has(id))) this.#count -= 1
    }
  }

  #dismiss(entry: Entry): void {
    if (entry.id !== undefined) this.#entries.delete(entry.id)
    this.#uuids.delete(entry)
    this.#forget(entry)
  }
}
