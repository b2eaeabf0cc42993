/** Finds jobs of a view by uuid, which any program may have used twice. */
import type { JobEntry } from '../model/entry.ts'

/** The jobs of a view by uuid. Of two jobs with one uuid the first is found, and the other once that one has left. */
export class UuidIndex {
  readonly #entries: () => Iterable<JobEntry>
  readonly #byUuid = new Map<string, JobEntry>()
  readonly #ambiguous = new Set<string>()

  /** @param entries all jobs of the view, which are searched when one of two jobs with the same uuid has left */
  constructor(entries: () => Iterable<JobEntry>) {
    this.#entries = entries
  }

  get(uuid: string): JobEntry | undefined {
    return this.#byUuid.get(uuid)
  }

  add(uuid: string, entry: JobEntry): void {
    const other = this.#byUuid.get(uuid)
    if (other && other !== entry) this.#ambiguous.add(uuid)
    else this.#byUuid.set(uuid, entry)
  }

  /** Removes an entry that has left the view. */
  delete(entry: JobEntry): void {
    const uuid = entry.stored?.posting.uuid
    if (uuid === undefined || this.#byUuid.get(uuid) !== entry) return
    this.#byUuid.delete(uuid)
    if (!this.#ambiguous.delete(uuid)) return
    for (const other of this.#entries()) if (other.stored?.posting.uuid === uuid) this.add(uuid, other)
  }
}
