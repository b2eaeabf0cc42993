/**
 * Jobs that are not in the view, for those who hold on to them: jobs beyond a window, and those that are posted in
 * transactions which are not committed yet, and may never be. Who lets go of a job forgets it here, too. And how those jobs
 * ended that have left the board last, for a post whose answer is on its way.
 */
import { compareIds } from '../claim-order.ts'
import { type Entry, newEntry } from '../entry.ts'

export type End = 'COMPLETE' | 'TRASHED'

/** Of how many jobs that ended is remembered how. */
const ENDS_KEPT = 1_000

export class Handles {
  readonly #entries = new Map<string, WeakRef<Entry>>()
  readonly #gone = new FinalizationRegistry<string>((id) => {
    if (!this.#entries.get(id)?.deref()) this.#entries.delete(id)
  })
  readonly #ends = new Map<string, End>()
  /** The youngest of those whose end was forgotten. */
  #forgotten: string | undefined
  /** Its trash entry was seen, which comes just before the posting goes. */
  #trashing: string | undefined

  get(id: string): Entry | undefined {
    return this.#entries.get(id)?.deref()
  }

  /** As it is known, or as somebody knows it from now on. */
  of(id: string): Entry {
    return this.get(id) ?? this.keep(newEntry(id, 'outside'))
  }

  keep(entry: Entry): Entry {
    const { id } = entry
    if (id === undefined) return entry
    this.#entries.set(id, new WeakRef(entry))
    this.#gone.register(entry, id)
    return entry
  }

  /** It is in the view from now on. */
  take(id: string): Entry | undefined {
    const entry = this.get(id)
    this.#entries.delete(id)
    return entry
  }

  all(): Entry[] {
    return [...this.#entries.values()].flatMap((entry) => entry.deref() ?? [])
  }

  trashing(id: string): void {
    this.#trashing = id
  }

  /** A job that is not in the view has left the board: how, as was just told. */
  left(id: string): End {
    const end = this.#trashing === id ? 'TRASHED' : 'COMPLETE'
    this.ended(id, end)
    return end
  }

  ended(id: string, end: End): void {
    if (this.#ends.has(id)) return
    this.#ends.set(id, end)
    const [oldest] = this.#ends.keys()
    if (this.#ends.size <= ENDS_KEPT || oldest === undefined) return
    this.#ends.delete(oldest)
    if (!this.#forgotten || compareIds({ id: this.#forgotten }, { id: oldest }) < 0) this.#forgotten = oldest
  }

  endOf(id: string): End | undefined {
    return this.#ends.get(id)
  }

  /** Whether it may have ended, and nobody remembers. */
  mayHaveEnded(id: string): boolean {
    return this.#forgotten !== undefined && compareIds({ id }, { id: this.#forgotten }) <= 0
  }
}
