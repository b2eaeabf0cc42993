/**
 * The knowledge of a view about jobs that are not in it.
 *
 * - {@link WeakJobs}: jobs outside the window, and jobs posted in transactions that are not committed yet. Entries are weak:
 *   dropping the last reference to an entry removes it.
 * - {@link RecentEnds}: how the last jobs left the board, for a post whose answer arrives after its job has ended.
 */
import { keepNewest } from '../../core/collections/keep-newest.ts'
import { compareIds } from '../model/claim-order.ts'
import { type EntryFollower, type JobEntry, newEntry } from '../model/entry.ts'

export type JobEnd = 'COMPLETE' | 'TRASHED'

/** The maximum number of remembered ends of jobs. */
const MAX_ENDS = 1_000

export class WeakJobs {
  readonly #entries = new Map<string, WeakRef<JobEntry>>()
  readonly #follower: EntryFollower | undefined
  readonly #collected = new FinalizationRegistry<string>((id) => {
    if (!this.#entries.get(id)?.deref()) this.#entries.delete(id)
  })

  constructor(options: { readonly follower: EntryFollower | undefined }) {
    this.#follower = options.follower
  }

  get(id: string): JobEntry | undefined {
    return this.#entries.get(id)?.deref()
  }

  /** Returns the entry of the job; a new one where there is none. */
  getOrCreate(id: string): JobEntry {
    return this.get(id) ?? this.add(newEntry(id, { windowStatus: 'outside', follower: this.#follower }))
  }

  add(entry: JobEntry): JobEntry {
    const { id } = entry
    if (id === undefined) return entry
    this.#entries.set(id, new WeakRef(entry))
    this.#collected.register(entry, id)
    return entry
  }

  /** Removes the job and returns its entry. */
  take(id: string): JobEntry | undefined {
    const entry = this.get(id)
    this.#entries.delete(id)
    return entry
  }

  all(): JobEntry[] {
    const entries: JobEntry[] = []
    for (const weak of this.#entries.values()) {
      const entry = weak.deref()
      if (entry) entries.push(entry)
    }
    return entries
  }
}

export class RecentEnds {
  readonly #ends = new Map<string, JobEnd>()
  /** The newest job whose end is no longer remembered. */
  #forgotten: string | undefined
  /** The job whose trash entry was reported last, which happens just before its posting goes. */
  #trashing: string | undefined

  noteTrashing(id: string): void {
    this.#trashing = id
  }

  /** Notes that a job outside the view has left the board, and returns how. */
  noteGone(id: string): JobEnd {
    const end = this.#trashing === id ? 'TRASHED' : 'COMPLETE'
    this.note(id, end)
    return end
  }

  note(id: string, end: JobEnd): void {
    if (this.#ends.has(id)) return
    this.#ends.set(id, end)
    for (const oldest of keepNewest(this.#ends, MAX_ENDS))
      if (!this.#forgotten || compareIds({ id: this.#forgotten }, { id: oldest }) < 0) this.#forgotten = oldest
  }

  get(id: string): JobEnd | undefined {
    return this.#ends.get(id)
  }

  /** Forgets all ends, because from now on they are not reported. */
  forgetAll(): void {
    this.#ends.clear()
    this.#trashing = undefined
    this.#forgotten = undefined
  }

  /** Returns whether the job may have ended so long ago that its end is not remembered. */
  mayHaveForgotten(id: string): boolean {
    return this.#forgotten !== undefined && compareIds({ id }, { id: this.#forgotten }) <= 0
  }
}
