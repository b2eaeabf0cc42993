/**
 * The jobs on a memory board, and what begins and ends with them: keys, dependencies, batches, trash, history.
 *
 * A step checks everything before it changes anything. Only a claim applies changed rates of limits first, which count also if it is refused.
 */
import { InvalidPosting } from '../../../core/errors.ts'
import { catchError } from '../../../core/result.ts'
import type { AlarmClock } from '../../../core/time.ts'
import type {
  BackendJobs,
  BoardChange,
  BoardListing,
  JobStatus,
  Posted,
  PostRequest,
  StoredJob,
  TrashReason,
  UnreadableJob,
} from '../../contract/index.ts'
import { cascadeCancellation, type Dependency } from '../../model/dependencies.ts'
import type { HistoryEntry } from '../../model/ended-job.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { readSizedPosting, toCountedBytes } from '../../model/posting/posting-codec.ts'
import type { BatchSteps } from './batches.ts'
import type { DependencySteps } from './dependencies.ts'
import type { HistorySteps } from './history.ts'
import type { KeySteps } from './keys.ts'
import type { MemoryBoard } from './store/board.ts'
import type { ChangeListeners } from './store/change-listeners.ts'
import {
  type AlarmedPosting,
  ENCODING,
  type EncodedPost,
  encodePost,
  encodeUnlimited,
  type JobRows,
  type KeptPosting,
  type MemoryJob,
  type TrashRows,
  toKept,
} from './store/rows.ts'

export interface JobsOptions {
  readonly clock: AlarmClock
  readonly rows: JobRows
  readonly entries: TrashRows
  readonly changes: ChangeListeners
  readonly keys: KeySteps
  readonly dependencies: DependencySteps
  readonly batches: BatchSteps
  readonly history: HistorySteps
}

/** A job to add. */
export interface NewJob {
  readonly posting: KeptPosting & AlarmedPosting & Pick<Posting, 'keyFor'>
  readonly bytes: Uint8Array
  readonly after?: readonly Dependency[] | undefined
}

/** The end of a job. */
export interface JobEnd {
  /** The reason of its move to the trash, its owner then, and its encoded posting; absent for a job that is done. */
  readonly trash?:
    | (TrashReason & {
        readonly who: string
        readonly posting: Posting
        readonly bytes: Uint8Array
        readonly at?: Date
      })
    | undefined
  readonly history?: HistoryEntry | undefined
}

export class JobSteps {
  readonly #options: JobsOptions

  constructor(options: JobsOptions) {
    this.#options = options
  }

  /** @throws NotFound, InvalidState, Duplicate if the batch of the posting refuses it */
  post({ request, bytes }: EncodedPost): Posted {
    const { keys, dependencies, batches } = this.#options
    const { posting, after = [] } = request
    const gone = dependencies.findGone(after)
    if (gone.length > 0) return { created: false, gone }
    batches.assertTakes([request])
    const holder = keys.holderOf(posting.key)
    if (holder) return { created: false, ...holder, revision: 0 }
    batches.add(posting)
    return { created: true, ...this.add({ posting, bytes, after }) }
  }

  add({ posting, bytes, after = [] }: NewJob): { id: string; revision: number; order: bigint; bytes: number } {
    const { rows, changes, keys, dependencies } = this.#options
    const { uuid, key, keyFor } = posting
    const row = rows.add(posting, bytes)
    const { id, revision, order } = row
    if (key !== undefined) keys.take(key, { id, uuid }, keyFor)
    dependencies.add(id, after)
    changes.notify({ kind: 'posted', id })
    rows.setAlarms(row, posting)
    return { id, revision, order, bytes: toCountedBytes(bytes, ENCODING) }
  }

  /** Ends the claim of a job that stays on the board with this posting. */
  giveBack(row: MemoryJob, posting: Posting, bytes: Uint8Array): void {
    const { rows, changes } = this.#options
    const { id } = row
    rows.write(row, bytes)
    row.held = undefined
    row.posting = toKept(posting)
    changes.notify({ kind: 'updated', id }, { kind: 'released', id })
    rows.setAlarms(row, posting)
  }

  /** Removes a job from the board. @returns the ids of the jobs that were cancelled because of its end */
  end(row: MemoryJob, { trash, history }: JobEnd): readonly string[] {
    const { rows, changes, keys, batches } = this.#options
    const { id, posting, held } = row
    rows.delete(row)
    if (posting.key !== undefined) keys.free(posting.key, id)
    if (trash) this.#moveToTrash(id, trash)
    if (history) this.#options.history.add(history)
    const { ready, doomed } = this.#endDependencies(id, trash)
    changes.notify(
      ...(trash ? [{ kind: 'trashed', id } as const] : []),
      { kind: 'gone', id },
      ...(held ? [{ kind: 'released', id } as const] : []),
      ...ready.map((dependent): BoardChange => ({ kind: 'ready', id: dependent })),
      ...doomed.map((dependent): BoardChange => ({ kind: 'cancelled', id: dependent })),
    )
    this.postCallback(batches.end(posting, { id, trashed: trash !== undefined }))
    return doomed
  }

  #moveToTrash(id: string, { posting, bytes, who, reason, failure, at }: NonNullable<JobEnd['trash']>): void {
    const { clock, entries } = this.#options
    const entry = { uuid: posting.uuid, bytes, who, reason, at: at ?? new Date(clock.now()) }
    entries.set(id, { ...entry, ...(failure ? { failure } : {}) })
  }

  /** Frees the jobs that depend on a job that has ended, or requests to cancel them: then they are doomed. */
  #endDependencies(
    id: string,
    trash: JobEnd['trash'],
  ): { readonly ready: readonly string[]; readonly doomed: string[] } {
    const { ready, failed } = this.#options.dependencies.end(id, trash ? 'trashed' : 'done')
    const doomed = failed.filter((dependent) => {
      const row = this.#options.rows.find(dependent)
      if (!trash || !row || row.cancellation) return false
      row.cancellation = cascadeCancellation(trash)
      return true
    })
    return { ready, doomed }
  }

  /** Posts the callback of a batch, if there is one. */
  postCallback(posting: Posting | undefined): void {
    if (posting) this.add({ posting, bytes: encodeUnlimited(posting) })
  }

  list(): BoardListing {
    const { rows, entries } = this.#options
    // One loop: a board may have 100,000 jobs, and the process does nothing else meanwhile.
    const jobs: string[] = []
    const claimed = new Set<string>()
    const cancelled = new Set<string>()
    for (const { id, held, cancellation } of rows.all()) {
      jobs.push(id)
      if (held) claimed.add(id)
      if (cancellation) cancelled.add(id)
    }
    return { jobs, claimed, trashed: new Set(entries.keys()), cancelled }
  }

  read(id: string): StoredJob | UnreadableJob | undefined {
    const { rows, dependencies } = this.#options
    const row = rows.find(id)
    if (!row) return undefined
    const { bytes, revision, order, postedAt, writtenAt } = row
    const read = catchError(() => readSizedPosting(bytes, ENCODING))
    if ('error' in read) return { id, error: toUnreadable(id, read.error), bytes: bytes.length }
    const waits = dependencies.waits(id) ? ({ waits: true } as const) : {}
    return { id, ...read.value, revision, order, postedAt, writtenAt, ...waits }
  }

  status(id: string): JobStatus {
    const { rows, entries } = this.#options
    const row = rows.find(id)
    if (!row) return entries.has(id) ? 'trashed' : 'gone'
    return { claimed: row.held !== undefined, cancelled: row.cancellation !== undefined, revision: row.revision }
  }
}

export class MemoryJobs implements BackendJobs {
  readonly #board: MemoryBoard<{ readonly jobs: JobSteps }>

  constructor(board: MemoryBoard<{ readonly jobs: JobSteps }>) {
    this.#board = board
  }

  async post(request: PostRequest): Promise<Posted> {
    return this.#board.steps.jobs.post(encodePost(request))
  }

  async list(): Promise<BoardListing> {
    return this.#board.steps.jobs.list()
  }

  async read(ids: readonly string[]): Promise<(StoredJob | UnreadableJob | undefined)[]> {
    const { jobs } = this.#board.steps
    return ids.map((id) => jobs.read(id))
  }
}

function toUnreadable(id: string, cause: Error): InvalidPosting {
  return new InvalidPosting(`${id} ${cause.message}; it is not claimed here, remove it`, { cause })
}
