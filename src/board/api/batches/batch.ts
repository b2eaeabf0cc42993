/** The object with which users add jobs to a batch, seal it and wait for it. `model/job-batch.ts` says what is counted. */
import { type InspectOptions, inspect } from 'node:util'
import { asError, InvalidArgument } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log.ts'
import { assertOptions } from '../../../core/options.ts'
import { toDate } from '../../../core/time.ts'
import type { Flow } from '../../../flow/index.ts'
import { assertCancelOptions, type CancelOptions, NO_REASON } from '../../claims/claim-options.ts'
import type { BatchChange } from '../../contract/index.ts'
import { assertWaitOptions, type WaitOptions } from '../../jobs/job.ts'
import type { TrashedJob } from '../../jobs/trashed-job.ts'
import {
  type BatchCounts,
  type BatchDefinition,
  type BatchState,
  type BatchStatus,
  decodeBatch,
  type StoredBatch,
  toBatchState,
} from '../../model/job-batch.ts'
import { POST_OPTIONS, type PostOptions } from '../../model/posting/post-options.ts'
import { sealIfLarge, unseal } from '../../model/sealed.ts'
import { type PostManyOptions, type PostManyResult, postMany, type TypedPostItem } from '../posting/post-many.ts'
import type { PostedJob } from '../posting/posted-job.ts'
import type { Poster } from '../posting/poster.ts'
import type { BatchWaits } from './batch-waits.ts'

/** The progress of a batch. `done`, `failed` and `open` are numbers of jobs, and `total` is their sum. */
export interface BatchProgress extends BatchCounts {
  readonly state: BatchState
  readonly sealed: boolean
  /** The number of the lives of the batch: 1, and one more each time that it was opened again after its end. */
  readonly generation: number
  /** The time of its end; undefined for a batch that has not ended. A cancelled batch ends when its running jobs have ended. */
  readonly endedAt: Date | undefined
  /** The reason why it was cancelled; undefined if it was not. */
  readonly reason: string | undefined
}

/** A batch and its progress, as `board.batches` lists it. */
export interface BatchView extends BatchProgress {
  readonly uuid: string
  readonly name: string
  /** Plain data of the application. */
  readonly meta: Readonly<Record<string, unknown>>
  /** The owner name of the board that created it. */
  readonly who: string
  readonly createdAt: Date
  /** The error if this release cannot read what the batch is; its numbers are right nevertheless. */
  readonly error?: Error
}

/** The parts of its board that a batch needs. */
export interface BatchHost {
  readonly who: string
  readonly log: Logger
  readonly poster: Poster
  readonly waits: BatchWaits
  /** @throws InvalidState when the board is closed */
  readonly assertRunning: () => void
  /** @throws NotFound */
  readonly read: (uuid: string) => Promise<StoredBatch>
  readonly change: (uuid: string, change: BatchChange) => Promise<BatchCounts & BatchStatus>
  /** Cancels the open jobs of a batch. */
  readonly cancelJobs: (uuid: string, reason: string) => Promise<void>
  /** Restores the jobs of a batch that are in the trash; returns the restored jobs. */
  readonly restoreJobs: (uuid: string, begin: () => Promise<void>) => Promise<readonly TrashedJob[]>
}

/** A job to post with others to one batch. */
export type BatchPostItem<I extends object> = Omit<TypedPostItem<I>, 'batch'>

/** A group of jobs that is counted to the end of the last one. Returned by `board.batch` and `board.findBatch`. */
export class Batch {
  readonly #definition: BatchDefinition
  readonly #host: BatchHost
  #existing = 0
  /** Whether this call of `board.batch` has created the batch; false if the batch was on the board before. */
  readonly created: boolean

  /** @internal Boards create batches. */
  constructor(definition: BatchDefinition, host: BatchHost, { created = false }: { readonly created?: boolean } = {}) {
    this.#definition = definition
    this.#host = host
    this.created = created
  }

  /**
   * The number of posts through this object whose key was taken by a job outside of the batch. Such a post returns the other job, with
   * `created` false, and the batch does not count this job.
   */
  get existing(): number {
    return this.#existing
  }

  get uuid(): string {
    return this.#definition.uuid
  }

  get name(): string {
    return this.#definition.name
  }

  /** A copy of the plain data of the application. */
  get meta(): Readonly<Record<string, unknown>> {
    return structuredClone(this.#definition.meta)
  }

  /** The owner name of the board that created the batch. */
  get who(): string {
    return this.#definition.who
  }

  get createdAt(): Date {
    return toDate(this.#definition.createdAt)
  }

  /**
   * Posts a job that belongs to the batch, as `board.post` does.
   *
   * @throws InvalidState if the batch is cancelled, or is sealed and this board has not claimed a job of it; Duplicate if a job with the
   * given `uuid` is open in the batch; NotFound if the batch is not kept any more; otherwise as `board.post`
   */
  async post<I extends object>(
    flow: Flow<I> | string,
    store: NoInfer<I>,
    options: Omit<PostOptions, 'batch'> = {},
  ): Promise<PostedJob> {
    this.#host.assertRunning()
    const { batch: _, ...known } = POST_OPTIONS
    assertOptions<object>(options, known, 'batch.post')
    return this.#note(await this.#host.poster.post(flow, store, { ...options, batch: this.uuid }))
  }

  /** Posts many jobs that belong to the batch, as `board.postMany` does. An item that the batch refuses is answered with an error. */
  async postMany<I extends object>(
    items: Iterable<BatchPostItem<I>> | AsyncIterable<BatchPostItem<I>>,
    options: PostManyOptions = {},
  ): Promise<PostManyResult[]> {
    this.#host.assertRunning()
    const named = isIterable(items) ? withBatch(items, this.uuid) : items
    return this.#host.poster.many((poster) =>
      postMany(named, options, {
        post: async (flow, store, given) => this.#note(await poster.post(flow, store, given)),
        // All of these jobs are created, or none of them: there is no existing job to note.
        postTogether: (given) => poster.postTogether(given),
      }),
    )
  }

  #note(job: PostedJob): PostedJob {
    if (!job.created && job.batch !== this.uuid) this.#existing += 1
    return job
  }

  /**
   * Seals the batch: from now on only its own jobs can add jobs to it, and it ends when no job of it is open; at once if none is. Does
   * nothing to a batch that is sealed already. Takes one transaction. Logs a warning if {@link existing} is not 0.
   *
   * @throws NotFound when the batch is not kept any more; OutcomeUnknown: seal it again
   */
  async seal(): Promise<BatchProgress> {
    this.#host.assertRunning()
    const { log, change } = this.#host
    const sealed = await change(this.uuid, { kind: 'seal' })
    if (this.#existing > 0) {
      const message =
        'a batch does not count jobs whose keys were taken by jobs outside of it; see created and batch of the posted jobs'
      log.warn({ batch: this.uuid, existing: this.#existing, total: sealed.total }, message)
    }
    return toProgress(sealed)
  }

  /** Returns its present state and the numbers of its jobs. Takes one round trip. @throws NotFound if the batch is not kept any more */
  async progress(): Promise<BatchProgress> {
    this.#host.assertRunning()
    return toProgress(await this.#host.read(this.uuid))
  }

  /**
   * Resolves with the state in which the batch has ended. A batch that is neither sealed nor cancelled does not end. The batch may have
   * ended before the call.
   *
   * @throws Timeout; NotFound when the batch is not kept any more
   * @example if ((await batch.wait({ timeout: '1h' })) === 'failed') await batch.retryFailed()
   */
  async wait(options: WaitOptions = {}): Promise<'done' | 'failed' | 'cancelled'> {
    this.#host.assertRunning()
    assertWaitOptions(options)
    return this.#host.waits.wait(this, () => this.#host.read(this.uuid), options)
  }

  /**
   * Cancels the batch and its jobs: it takes no more jobs and posts no callback, and its jobs are cancelled as by `board.cancel`. It ends
   * when its running jobs have ended. Does nothing to a batch that has ended. If this process ends meanwhile, cancel the batch again.
   *
   * @throws NotFound when the batch is not kept any more
   */
  async cancel(options: CancelOptions = {}): Promise<BatchProgress> {
    this.#host.assertRunning()
    assertCancelOptions(options)
    const { reason = NO_REASON } = options
    const cancelled = await this.#host.change(this.uuid, { kind: 'cancel', who: this.#host.who, reason })
    if (cancelled.open > 0) await this.#host.cancelJobs(this.uuid, `batch ${this.uuid} (${this.name}): ${reason}`)
    return this.progress()
  }

  /**
   * Restores the jobs of the batch that are in the trash, and returns them. Works on a cancelled batch, too. Meanwhile the batch is open
   * and posts no callback; afterwards it is sealed if it was sealed before. If this process ends meanwhile, the batch stays open: call this
   * again, and seal the batch. Jobs that were purged from the trash stay counted as failed.
   *
   * @throws NotFound if the batch is not kept any more. If some jobs cannot be restored, the others are, and the first error is thrown:
   * NotFound if a job on which it depends is not known any more; Duplicate if its key is taken, or a job with its uuid is open in the batch
   */
  async retryFailed(): Promise<readonly TrashedJob[]> {
    this.#host.assertRunning()
    const { sealed } = await this.#host.read(this.uuid)
    let isReopened = false
    try {
      return await this.#host.restoreJobs(this.uuid, async () => {
        await this.#host.change(this.uuid, { kind: 'reopen' })
        isReopened = true
      })
    } finally {
      if (isReopened && sealed) await this.#host.change(this.uuid, { kind: 'seal' })
    }
  }

  /** Returns the definition of the batch without `meta`, as `JSON.stringify` writes it. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { uuid, name, who, createdAt } = this
    return { uuid, name, who, createdAt }
  }

  /** Returns the text for `console.log`, without `meta`. */
  [inspect.custom](_depth: number, options: InspectOptions): string {
    return `Batch ${inspect(this.toJSON(), options)}`
  }

  /** Returns the uuid and the name of the batch, for messages. */
  toString(): string {
    return `batch ${this.uuid} (${this.name})`
  }
}

/** Returns the progress of a batch as users see it. */
function toProgress(batch: BatchCounts & BatchStatus): BatchProgress {
  const { total, done, failed, open, sealed, generation, endedAt, cancelled } = batch
  return {
    ...{ total, done, failed, open, sealed, generation, state: toBatchState(batch) },
    endedAt: endedAt === undefined ? undefined : toDate(endedAt),
    reason: cancelled?.reason,
  }
}

/** Returns a batch as `board.batches` lists it. */
export function toBatchView(batch: StoredBatch): BatchView {
  const { uuid, bytes } = batch
  const progress = toProgress(batch)
  try {
    const { name, meta, who, createdAt } = decodeBatch(uuid, bytes)
    // A list may have ten thousand batches: large data stays encoded until it is read.
    const kept = unseal(sealIfLarge(meta, { kept: [], recordBytes: bytes.length }))
    return { ...{ uuid, name, meta: kept, who, createdAt: toDate(createdAt) }, ...progress }
  } catch (error) {
    return {
      ...{ uuid, name: 'unreadable', meta: {}, who: '', createdAt: new Date(0) },
      ...progress,
      error: asError(error),
    }
  }
}

function isIterable(items: unknown): boolean {
  return (
    typeof Object(items)[Symbol.iterator] === 'function' || typeof Object(items)[Symbol.asyncIterator] === 'function'
  )
}

/** @throws InvalidArgument for an item that names a batch */
async function* withBatch<I extends object>(
  items: Iterable<BatchPostItem<I>> | AsyncIterable<BatchPostItem<I>>,
  batch: string,
): AsyncGenerator<TypedPostItem<I>, void, undefined> {
  for await (const item of items) {
    if ('batch' in Object(item)) throw new InvalidArgument('batch.postMany: an item has the option batch; omit it')
    yield { ...item, batch }
  }
}
