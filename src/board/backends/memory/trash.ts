/** The trash of a memory board. */
import type {
  BackendRestoreOptions,
  BackendTrash,
  DiscardRequest,
  RestoreOutcome,
  TrashedEntry,
  TrashListing,
} from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import type { Dependency } from '../../model/dependencies.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { decodePosting } from '../../model/posting/posting-codec.ts'
import { selectTrash } from '../trash-pages.ts'
import type { BatchSteps } from './batches.ts'
import type { DependencySteps } from './dependencies.ts'
import type { JobSteps } from './jobs.ts'
import type { KeySteps } from './keys.ts'
import type { MemoryBoard } from './store/board.ts'
import { ENCODING, encodeUnlimited, type JobRows, type TrashRows } from './store/rows.ts'

export interface TrashOptions {
  readonly rows: JobRows
  readonly entries: TrashRows
  readonly jobs: JobSteps
  readonly keys: KeySteps
  readonly dependencies: DependencySteps
  readonly batches: BatchSteps
}

export class TrashSteps {
  readonly #options: TrashOptions

  constructor(options: TrashOptions) {
    this.#options = options
  }

  /** Moves an unclaimed job to the trash. @returns the ids of the jobs that were cancelled because of that @throws NotFound, Unclaimable */
  discard(discarded: DiscardRequest): readonly string[] {
    const { rows, jobs } = this.#options
    const { id, revision, posting, history } = discarded
    const bytes = encodeUnlimited(posting)
    return jobs.end(rows.requireUnclaimed(id, revision), { trash: { ...discarded, bytes }, history })
  }

  /** Moves an entry behind the other jobs of its priority. @throws NotFound; Duplicate if its key is taken */
  restore(entry: TrashedEntry, posting: Posting, after: readonly Dependency[]): RestoreOutcome {
    const { entries, jobs, keys, dependencies, batches } = this.#options
    const bytes = encodeUnlimited(posting)
    if (!entries.has(entry.id)) throw notInTrashError(entry)
    const gone = dependencies.findGone(after)
    if (gone.length > 0) return { restored: false, gone }
    const holder = keys.holderOf(posting.key)
    // Its own window does not keep a job in the trash.
    if (holder && holder.inWindowOf !== entry.id) throw refusalError(`job ${posting.uuid}`, { why: 'key' })
    batches.assertRestores(posting, entry.id)
    entries.delete(entry.id)
    batches.restore(posting, entry.id)
    jobs.add({ posting, bytes, after })
    return { restored: true }
  }

  /** @throws NotFound */
  purge(entry: TrashedEntry): void {
    if (!this.#options.entries.delete(entry.id)) throw notInTrashError(entry)
  }

  *list(listing?: TrashListing): Generator<TrashedEntry, void, undefined> {
    for (const id of selectTrash([...this.#options.entries.keys()], listing, (id) => id)) {
      const entry = this.entry(id)
      if (entry) yield entry
    }
  }

  entry(id: string): TrashedEntry | undefined {
    const row = this.#options.entries.get(id)
    if (!row) return undefined
    const { bytes, ...entry } = row
    return { id, revision: 0, posting: decodePosting(bytes, ENCODING), ...entry }
  }

  /** Returns the newest entry with this uuid. */
  find(uuid: string): TrashedEntry | undefined {
    const id = [...this.#options.entries].findLast(([, row]) => row.uuid === uuid)?.[0]
    return id === undefined ? undefined : this.entry(id)
  }
}

export class MemoryTrash implements BackendTrash {
  readonly #board: MemoryBoard<{ readonly trash: TrashSteps }>

  constructor(board: MemoryBoard<{ readonly trash: TrashSteps }>) {
    this.#board = board
  }

  async discard(discarded: DiscardRequest): Promise<void> {
    const { sink } = this.#board.requireOpen()
    const doomed = this.#board.steps.trash.discard(discarded)
    if (doomed.length > 0) sink.doomed(doomed)
  }

  async restore(
    entry: TrashedEntry,
    posting: Posting,
    { after = [] }: BackendRestoreOptions = {},
  ): Promise<RestoreOutcome> {
    return this.#board.steps.trash.restore(entry, posting, after)
  }

  async purge(entry: TrashedEntry): Promise<void> {
    this.#board.steps.trash.purge(entry)
  }

  async *list(listing?: TrashListing): AsyncGenerator<TrashedEntry, void, undefined> {
    yield* this.#board.steps.trash.list(listing)
  }

  async entry(id: string): Promise<TrashedEntry | undefined> {
    return this.#board.steps.trash.entry(id)
  }

  async find(uuid: string): Promise<TrashedEntry | undefined> {
    return this.#board.steps.trash.find(uuid)
  }
}

function notInTrashError({ posting }: TrashedEntry): Error {
  return refusalError(`job ${posting.uuid} (${posting.name})`, { why: 'not in trash' })
}
