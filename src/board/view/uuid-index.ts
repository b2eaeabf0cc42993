/** The jobs of a view by their uuids. Of one that was posted twice the first is found, and once that has gone the other. */
import type { Entry } from '../entry.ts'

export class UuidIndex {
  readonly #entries: () => Iterable<Entry>
  readonly #byUuid = new Map<string, Entry>()
  readonly #postedTwice = new Set<string>()

  /** @param entries all there are, to be looked at where one of two with the same uuid has gone */
  constructor(entries: () => Iterable<Entry>) {
    this.#entries = entries
  }

  get(uuid: string): Entry | undefined {
    return this.#byUuid.get(uuid)
  }

  add(uuid: string, entry: Entry): void {
    const other = this.#byUuid.get(uuid)
    if (other && other !== entry) this.#postedTwice.add(uuid)
    else this.#byUuid.set(uuid, entry)
  }

  /** To be called when the entry is none of the view's any more. */
  delete(entry: Entry): void {
    const uuid = entry.stored?.posting.uuid
    if (uuid === undefined || this.#byUuid.get(uuid) !== entry) return
    this.#byUuid.delete(uuid)
    if (!this.#postedTwice.delete(uuid)) return
    for (const other of this.#entries()) if (other.stored?.posting.uuid === uuid) this.add(uuid, other)
  }
}
