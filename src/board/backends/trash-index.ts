/**
 * Finds entries of the trash by uuid, for boards whose servers keep them by id. The first search reads the whole trash; each later one asks
 * which entries have arrived since, and reads only these. So a status page needs one or two round trips for each uuid, however long the
 * trash is. Only processes that search keep the index, which takes about 200 bytes for each entry.
 */
import type { TrashedEntry } from '../contract/index.ts'

/** The trash of the servers. */
export interface TrashSource {
  /**
   * Returns the ids of the entries that have arrived since `position`, which is from an earlier answer; without it, the ids of all entries.
   * The answer may contain older ids, too. It also has the position after these entries and the number of all entries. Takes one round trip
   * if nothing has changed.
   */
  arrivedSince(position: string | undefined): Promise<TrashArrivals>
  /** Returns the uuids of these entries; leaves out missing and unreadable entries. */
  readUuids(ids: readonly string[]): Promise<ReadonlyMap<string, string>>
}

/** The ids of entries that have arrived in the trash, the position after them, and the number of all entries. */
export interface TrashArrivals {
  readonly ids: readonly string[]
  readonly position: string
  readonly count: number
}

/** The index is read anew when it has more ids than twice the entries of the trash plus this number. */
const MAX_STALE_IDS = 1_000

/** An index of the trash by uuid, in the memory of this process. */
export class TrashIndex {
  readonly #source: TrashSource
  /** The uuid of each entry that was read; undefined where it is unreadable. */
  readonly #uuids = new Map<string, string | undefined>()
  readonly #idsByUuid = new Map<string, readonly string[]>()
  #position: string | undefined
  #running: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined

  constructor(source: TrashSource) {
    this.#source = source
  }

  /** Returns the ids that entries with this uuid have or had, the newest first. */
  async idsOf(uuid: string): Promise<readonly string[]> {
    await this.#refresh()
    return this.#idsByUuid.get(uuid) ?? []
  }

  /** Reads the whole trash at the next search: the servers may have lost what they acknowledged last. */
  forget(): void {
    this.#position = undefined
    this.#uuids.clear()
    this.#idsByUuid.clear()
  }

  /**
   * Starts a refresh after the present one. A refresh that has begun may have read before the caller's entry arrived, so callers that come
   * meanwhile share the next one.
   */
  #refresh(): Promise<void> {
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#running = this.#next ?? this.#running
        this.#next = undefined
        return this.#read()
      })
    return this.#next
  }

  async #read(): Promise<void> {
    const arrived = await this.#source.arrivedSince(this.#position)
    if (this.#uuids.size > 2 * arrived.count + MAX_STALE_IDS) {
      this.forget()
      return this.#read()
    }
    const ids = arrived.ids.filter((id) => !this.#uuids.has(id))
    const uuids = ids.length > 0 ? await this.#source.readUuids(ids) : new Map<string, string>()
    for (const id of ids) this.#add(id, uuids.get(id))
    this.#position = arrived.position
  }

  #add(id: string, uuid: string | undefined): void {
    this.#uuids.set(id, uuid)
    if (uuid === undefined) return
    const others = this.#idsByUuid.get(uuid) ?? []
    this.#idsByUuid.set(uuid, [id, ...others].sort(compareNewestFirst))
  }
}

/** Returns the newest entry of a uuid that is still in the trash. */
export async function findByUuid(
  uuid: string,
  { index, read }: { readonly index: TrashIndex; readonly read: (id: string) => Promise<TrashedEntry | undefined> },
): Promise<TrashedEntry | undefined> {
  for (const id of await index.idsOf(uuid)) {
    const entry = await read(id)
    if (entry?.posting.uuid === uuid) return entry
  }
  return undefined
}

/** Orders ids by their numbers, the newest first: each post gets a larger number. */
function compareNewestFirst(a: string, b: string): number {
  const [first, second] = [digitsOf(a), digitsOf(b)]
  return second.length - first.length || (first < second ? 1 : first > second ? -1 : 0)
}

function digitsOf(id: string): string {
  return id.replace(/^\D+0*/, '')
}
