/** The keys of a memory board, with their windows. */
import type { AlarmClock } from '../../../core/time.ts'
import type { BackendKeys, Replaced, ReplaceRequest } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { toCountedBytes } from '../../model/posting/posting-codec.ts'
import type { MemoryBoard } from './store/board.ts'
import type { ChangeListeners } from './store/change-listeners.ts'
import { ENCODING, encodeWithinLimit, type JobRows, toKept } from './store/rows.ts'

/** The job of a key, and when its window is over, in milliseconds on the board's clock; absent without a window. */
interface HeldKey {
  readonly id: string
  readonly uuid: string
  readonly until?: number
}

/** The job that makes a key unavailable. */
export interface KeyHolder {
  readonly uuid: string
  /** Set if the job has left the board and the window of its key is not over: the id of the job. */
  readonly inWindowOf?: string
}

/** The number of keys without a job that each post examines: their windows may be over. */
const EXAMINED_PER_POST = 2

export interface KeysOptions {
  readonly clock: Pick<AlarmClock, 'now'>
  readonly rows: JobRows
  readonly changes: ChangeListeners
}

export class KeySteps {
  readonly #options: KeysOptions
  readonly #held = new Map<string, HeldKey>()
  /** The keys with a window whose jobs have left the board. */
  readonly #withoutJob = new Set<string>()

  constructor(options: KeysOptions) {
    this.#options = options
  }

  /** Returns the job that has the key; undefined if the key can be taken. */
  holderOf(key: string | undefined): KeyHolder | undefined {
    const held = key === undefined ? undefined : this.#held.get(key)
    if (!held) return undefined
    const { id, uuid, until = 0 } = held
    if (this.#options.rows.find(id)) return { uuid }
    return until > this.#now() ? { uuid, inWindowOf: id } : undefined
  }

  /** Gives the key to a job. @param window in milliseconds from now; undefined for none */
  take(key: string, { id, uuid }: { readonly id: string; readonly uuid: string }, window: number | undefined): void {
    this.#held.set(key, { id, uuid, ...(window === undefined ? {} : { until: this.#now() + window }) })
    this.#withoutJob.delete(key)
    this.#removeOver()
  }

  /** Frees the key of a job that leaves the board, unless its window is not over. */
  free(key: string, id: string): void {
    const held = this.#held.get(key)
    if (held?.id !== id) return
    if ((held.until ?? 0) > this.#now()) this.#withoutJob.add(key)
    else this.#held.delete(key)
  }

  /**
   * Replaces the posting of a job that waits, with the bytes of the new one.
   *
   * @throws NotFound; Unclaimable if it was claimed, changed or cancelled meanwhile
   */
  replace({ id, revision, posting, window }: ReplaceRequest, bytes: Uint8Array): Replaced {
    const { rows, changes } = this.#options
    const row = rows.requireUnclaimed(id, revision)
    if (row.cancellation) throw refusalError(id, { why: 'changed' })
    rows.write(row, bytes)
    row.posting = toKept(posting)
    if (posting.key !== undefined) this.take(posting.key, { id, uuid: posting.uuid }, window)
    changes.notify({ kind: 'updated', id })
    rows.setAlarms(row, posting)
    return { revision: row.revision, bytes: toCountedBytes(bytes, ENCODING) }
  }

  /** Removes keys whose windows are over. The others are examined again after all that are behind them. */
  #removeOver(): void {
    let left = EXAMINED_PER_POST
    for (const key of this.#withoutJob) {
      if (left === 0) return
      left -= 1
      this.#withoutJob.delete(key)
      if ((this.#held.get(key)?.until ?? 0) > this.#now()) this.#withoutJob.add(key)
      else this.#held.delete(key)
    }
  }

  #now(): number {
    return this.#options.clock.now()
  }

  /** The number of keys that are kept, for tests. */
  get size(): number {
    return this.#held.size
  }
}

export class MemoryKeys implements BackendKeys {
  readonly #board: MemoryBoard<{ readonly keys: KeySteps }>

  constructor(board: MemoryBoard<{ readonly keys: KeySteps }>) {
    this.#board = board
  }

  async replace(request: ReplaceRequest): Promise<Replaced> {
    return this.#board.steps.keys.replace(request, encodeWithinLimit(request.posting))
  }
}
