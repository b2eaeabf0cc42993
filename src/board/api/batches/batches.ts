/** Creates, finds and lists the batches of a board; cancels or restores all jobs of a batch. */
import { mapInTurns } from '../../../core/async/turns.ts'
import { Duplicate, InvalidArgument, InvalidState, NotFound } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log.ts'
import { assertOptions } from '../../../core/options.ts'
import { backoffDelay, sleep } from '../../../core/time.ts'
import type { Backend, BackendBatches } from '../../contract/index.ts'
import type { Job } from '../../jobs/job.ts'
import { readJobs } from '../../jobs/read-jobs.ts'
import { TrashedJob } from '../../jobs/trashed-job.ts'
import { decodeBatch, encodeBatch } from '../../model/job-batch.ts'
import { unknownBatchError } from '../../model/post-batch.ts'
import type { DependencyResolver } from '../dependency-resolver.ts'
import type { Lookup } from '../lookup.ts'
import type { Poster } from '../posting/poster.ts'
import { tryToRestore } from '../restoring.ts'
import { Batch, type BatchHost, type BatchView, toBatchView } from './batch.ts'
import { type BatchOptions, toBatchDefinition } from './batch-options.ts'
import { BatchWaits } from './batch-waits.ts'

/** The options of `board.batches`. */
export interface BatchesOptions {
  /** The number of batches to return, newest first; 100 by default, at most 10,000. */
  readonly limit?: number
}

export interface BatchesParts {
  readonly backend: Backend
  readonly who: string
  readonly log: Logger
  readonly poster: Poster
  readonly lookup: Pick<Lookup, 'locateAll'>
  readonly dependencies: DependencyResolver
  /** Cancels a job. @throws NotFound */
  readonly cancel: (job: Job, reason: string) => Promise<void>
  /** @throws InvalidState when the board is closed */
  readonly assertRunning: () => void
  /** Fires when the board is closed. */
  readonly signal: AbortSignal
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 10_000
/** The number of jobs that are cancelled, or restored, at the same time. */
const JOBS_AT_ONCE = 200

/** The number of attempts to create a batch whose key belongs to an unreadable batch, and the pauses between them: 2.5 seconds in all. */
const MAX_CREATE_ATTEMPTS = 8
const CREATE_PAUSES_MS = { first: 20, max: 2_000, jitter: 'none' } as const

export class Batches {
  readonly #parts: BatchesParts
  readonly #host: BatchHost
  /** Waits for the ends of batches. */
  readonly waits: BatchWaits

  constructor(parts: BatchesParts) {
    const { backend, who, log, poster, assertRunning, signal } = parts
    this.#parts = parts
    this.waits = new BatchWaits({ backend, signal })
    this.#host = {
      ...{ who, log, poster, assertRunning, waits: this.waits },
      read: async (uuid) => {
        const found = await this.#store.find(uuid)
        if (found) return found
        throw unknownBatchError(uuid)
      },
      change: (uuid, change) => this.#store.change(uuid, change),
      cancelJobs: (uuid, reason) => this.#cancelJobs(uuid, reason),
      restoreJobs: (uuid, begin) => this.#restoreJobs(uuid, begin),
    }
  }

  /**
   * Creates a batch without jobs. With a key, returns the batch with this key if the board keeps one.
   *
   * @throws as {@link toBatchDefinition}; Duplicate if the board has a batch with the given uuid; InvalidState if the batch with the key is damaged
   */
  async create(options: BatchOptions): Promise<Batch> {
    const { poster, who, backend } = this.#parts
    const store = this.#store
    const definition = await toBatchDefinition(options, { poster, who, now: backend.clock.now() })
    const { uuid } = definition
    const bytes = encodeBatch(definition)
    for (let attempt = 1; ; attempt += 1) {
      try {
        await store.create({ uuid, bytes })
        return new Batch(definition, this.#host, { created: true })
      } catch (error) {
        if (options.key === undefined || !(error instanceof Duplicate)) throw error
      }
      const found = await store.find(uuid)
      if (found) return new Batch(decodeBatch(uuid, found.bytes), this.#host)
      // The board removes the batch with this key just now, or its record is damaged: then every attempt would fail.
      if (attempt === MAX_CREATE_ATTEMPTS)
        throw new InvalidState(
          `batch ${uuid} (${definition.name}), which has the key, can neither be read nor created again; remove its record, or use another key`,
        )
      await sleep(backoffDelay(attempt, CREATE_PAUSES_MS), { signal: this.#parts.signal })
    }
  }

  /** Returns the batch with this uuid. @throws NotFound */
  async find(uuid: unknown): Promise<Batch> {
    const store = this.#store
    if (typeof uuid !== 'string' || uuid === '')
      throw new InvalidArgument('findBatch: uuid must be the UUID of a batch, as in board.findBatch(batch.uuid)')
    const found = await store.find(uuid)
    if (!found) throw unknownBatchError(uuid)
    return new Batch(decodeBatch(uuid, found.bytes), this.#host)
  }

  /** Returns the newest batches. @throws InvalidArgument */
  async list(options: BatchesOptions): Promise<readonly BatchView[]> {
    assertOptions(options, { limit: true }, 'batches')
    const { limit = DEFAULT_LIMIT } = options
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
      throw new InvalidArgument(`batches: limit must be a whole number from 1 to ${MAX_LIMIT}, got ${String(limit)}`)
    return mapInTurns(await this.#store.list({ limit }), toBatchView)
  }

  async #cancelJobs(uuid: string, reason: string): Promise<void> {
    const { lookup, cancel } = this.#parts
    const { open } = await this.#store.jobs(uuid)
    for (let from = 0; from < open.length; from += JOBS_AT_ONCE) {
      const entries = (await lookup.locateAll(open.slice(from, from + JOBS_AT_ONCE))).filter((entry) => !!entry)
      const jobs: Job[] = []
      for await (const job of readJobs(entries, this.#parts.backend)) jobs.push(job)
      await Promise.all(jobs.map((job) => cancel(job, reason).catch(ignoreEnded)))
    }
  }

  /** Restores the jobs of a batch that are in the trash. @param begin is called before the first job is restored, if there is one */
  async #restoreJobs(uuid: string, begin: () => Promise<void>): Promise<readonly TrashedJob[]> {
    const { failed } = await this.#store.jobs(uuid)
    const restored: TrashedJob[] = []
    let left = await this.#readTrashed(failed)
    if (left.length > 0) await begin()
    const refusals: unknown[] = []
    // A job that depends on another one in the trash can be restored only after it: so the rest is tried again while any was restored.
    for (let count = -1; left.length > 0 && restored.length > count; ) {
      count = restored.length
      left = await this.#restoreEach(left, { restored, refusals })
    }
    if (refusals.length > 0) throw refusals[0]
    return restored
  }

  async #readTrashed(ids: readonly string[]): Promise<TrashedJob[]> {
    const jobs: TrashedJob[] = []
    for (let from = 0; from < ids.length; from += JOBS_AT_ONCE) {
      const part = ids.slice(from, from + JOBS_AT_ONCE)
      const entries = await Promise.all(part.map((id) => this.#parts.backend.trash.entry(id)))
      jobs.push(...entries.flatMap((entry) => (entry ? [new TrashedJob(entry)] : [])))
    }
    return jobs
  }

  /** Restores the jobs; returns the jobs that depend on others in the trash. Adds to `refusals` why others could not be restored. */
  async #restoreEach(
    jobs: readonly TrashedJob[],
    { restored, refusals }: { readonly restored: TrashedJob[]; readonly refusals: unknown[] },
  ): Promise<TrashedJob[]> {
    const left: TrashedJob[] = []
    for (let from = 0; from < jobs.length; from += JOBS_AT_ONCE) {
      const part = jobs.slice(from, from + JOBS_AT_ONCE)
      await Promise.all(
        part.map(async (job) => {
          const refusal = await tryToRestore(job, this.#restoring)
          if (refusal === undefined) restored.push(job)
          else if (refusal === 'left') return
          else if (refusal instanceof InvalidState) left.push(job)
          else refusals.push(refusal)
        }),
      )
    }
    return left
  }

  get #restoring() {
    return { backend: this.#parts.backend, dependencies: this.#parts.dependencies }
  }

  get #store(): BackendBatches {
    return this.#parts.backend.batches
  }
}

/** Ignores that a job has ended meanwhile. @throws every other error */
function ignoreEnded(error: unknown): void {
  if (!(error instanceof NotFound)) throw error
}
