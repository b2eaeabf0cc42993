/** Counts the jobs of batches in the transactions of posts, ends and restorations, and ends batches: see `store/batch-nodes.ts`. */
import { RetryRounds } from '../../../core/async/retry.ts'
import { keepNewest } from '../../../core/collections/keep-newest.ts'
import { asError, NotConnected, OutcomeUnknown } from '../../../core/errors.ts'
import { BadVersion, NodeExists, NoNode, type ZooKeeperError } from '../../../zookeeper/index.ts'
import type { PostRequest } from '../../contract/index.ts'
import { decodeBatch, toBatchCallback } from '../../model/job-batch.ts'
import {
  closedBatchError,
  duplicateMemberError,
  duplicateRestoreError,
  unknownBatchError,
} from '../../model/post-batch.ts'
import type { Posting } from '../../model/posting.ts'
import type { TouchedName, Transaction } from './commit/batch.ts'
import type { TransactionCommitter } from './commit/committer.ts'
import {
  BatchChangedSignal,
  type EndingJob,
  endJobSteps,
  finishBatchSteps,
  isBatchConflict,
  openJobSteps,
  restoreJobSteps,
  statusCheckStep,
} from './commit/job-batch-steps.ts'
import type { TransactionStep } from './commit/transactions.ts'
import type { BatchNodes, BatchSnapshot } from './store/batch-nodes.ts'
import type { Layout } from './store/layout.ts'
import { translateErrors } from './store/reader.ts'

/** The greatest number of batches of which the newest read is kept. */
const MAX_KNOWN = 1_000

export interface BatchCounterOptions {
  readonly layout: Layout
  readonly nodes: BatchNodes
  readonly committer: Pick<TransactionCommitter, 'commit'>
  /** Returns the step that creates the callback of a batch. */
  readonly toCallbackStep: (posting: Posting) => TransactionStep
  /** Returns the time of the servers' clock in milliseconds since 1970. */
  readonly now: () => number
  readonly onError: (error: unknown) => void
}

/** The steps that count an opened job in its batch, for the transaction that posts or restores the job. */
export interface BatchOpening {
  /** The check of the status, which many transactions share. */
  readonly check?: TransactionStep
  readonly steps: readonly TransactionStep[]
  readonly touches: readonly TouchedName[]
  /** Returns the error for a refusal; undefined if the batch is not its reason. */
  toRejection(error: ZooKeeperError, step: TransactionStep | 'guard' | undefined): Error | undefined
}

/** The steps that count an ended job in its batch, for the transaction that ends the job. */
export interface BatchEnding {
  readonly steps: readonly TransactionStep[]
  /** The steps that end the batch. They can be left out if the transaction would be too large: then the batch is ended afterwards. */
  readonly finish: readonly TransactionStep[]
  readonly touches: readonly TouchedName[]
}

/** The steps of a post without a batch: none. */
export const NO_OPENING: BatchOpening = { steps: [], touches: [], toRejection: () => undefined }
const NO_ENDING: BatchEnding = { steps: [], finish: [], touches: [] }

export class BatchCounter {
  readonly #options: BatchCounterOptions
  /** Batches that are not sealed, as they were read last: posts check that they are still so. */
  readonly #unsealed = new Map<string, BatchSnapshot>()
  /** The batches that are being looked at, and whether another look follows. */
  readonly #looks = new Map<string, { again: boolean; readonly done: Promise<void> }>()

  constructor(options: BatchCounterOptions) {
    this.#options = options
  }

  /**
   * Returns what a post adds. A transaction that is refused with BatchChangedSignal is tried again with what this returns then.
   *
   * @throws NotFound, InvalidState, NotConnected
   */
  async openPosted({ posting, member }: PostRequest): Promise<BatchOpening> {
    const { batch, uuid } = posting
    if (batch === undefined) return NO_OPENING
    const seen = this.#unsealed.get(batch) ?? (await this.#readForPost(batch, posting))
    const { sealed, cancelled } = seen.status
    if (cancelled || (sealed && member === undefined)) throw closedBatchError(batch, seen.status, posting)
    const { layout } = this.#options
    const check = statusCheckStep(layout, batch, seen)
    const steps = openJobSteps(layout, batch, { uuid, by: sealed ? member : undefined })
    return {
      ...{ check, steps },
      touches: [
        { name: `batch ${batch}`, mode: 'together' },
        { name: `batch ${batch}/${uuid}`, mode: 'alone' },
      ],
      toRejection: (error, step) => {
        if (step === 'guard' || step === check) return isChanged(error) ? this.#toChanged(batch) : undefined
        if (step === undefined || !steps.includes(step)) return undefined
        if (error instanceof NodeExists) return duplicateMemberError(batch, posting)
        if (!isChanged(error)) return undefined
        // The status is as it was read, so the batch is sealed, and the job for which it is posted has ended.
        return step.op.type === 'check' ? closedBatchError(batch, seen.status, posting) : this.#toChanged(batch)
      },
    }
  }

  /**
   * Returns what a restoration adds; as {@link openPosted}. A job that its batch does not know is not counted.
   *
   * @throws Duplicate if a job with its uuid is open in the batch, NotConnected
   */
  async openRestored(posting: Posting, { id }: { readonly id: string }): Promise<BatchOpening> {
    const { uuid, batch } = posting
    if (batch === undefined) return NO_OPENING
    const { nodes, layout } = this.#options
    const [seen, { isFailed, isOpen }] = await translateErrors(`reading batch ${batch}`, () =>
      Promise.all([nodes.read(batch), nodes.readMember({ batch, uuid, id })]),
    )
    if (!seen || !isFailed) return NO_OPENING
    if (isOpen) throw duplicateRestoreError(batch, posting)
    const steps = restoreJobSteps(layout, batch, { seen, uuid, id })
    return {
      steps,
      touches: [{ name: `batch ${batch}`, mode: 'alone' }],
      toRejection: (error, step) => (isBatchConflict(error, step) ? this.#toChanged(batch) : undefined),
    }
  }

  /**
   * Ends a job of a batch, and the batch with the last one.
   *
   * @param job undefined for a job without a batch
   * @param commit ends the job, with these steps; returns whether those that end the batch were among them. @throws BatchChangedSignal if a
   * step was refused
   */
  async end(job: EndingJob | undefined, commit: (ending: BatchEnding) => Promise<boolean>): Promise<void> {
    if (!job) {
      await commit(NO_ENDING)
      return
    }
    const rounds = new RetryRounds(`counting job ${job.uuid} of batch ${job.batch}`)
    let isDoubtful = false
    while (true) {
      const ending = await translateErrors(`reading batch ${job.batch}`, () =>
        this.#toEnding(job, { isDoubtful }),
      ).catch((error: unknown) => {
        // The transaction waits for a connection, and whether it is the last one is looked for afterwards.
        if (error instanceof NotConnected && !isDoubtful) return this.#toEarlierEnding(job)
        throw error
      })
      try {
        const isFinished = await commit(ending)
        // Others may have ended at the same time, so that nobody was the last.
        if (!isFinished && ending !== NO_ENDING) this.look(job.batch)
        return
      } catch (error) {
        if (!(error instanceof BatchChangedSignal)) throw error
        isDoubtful = true
        await rounds.next()
      }
    }
  }

  /** Ends the batch if it is sealed and no job of it is open. @throws NotConnected, OutcomeUnknown */
  async finishIfEmpty(batch: string): Promise<void> {
    const { nodes, committer } = this.#options
    const what = `end of batch ${batch}`
    const rounds = new RetryRounds(what)
    while (true) {
      const steps = await translateErrors(what, async () => {
        const seen = await nodes.read(batch)
        return isUnfinished(seen) ? this.#toFinish(batch, seen, { failed: 0 }) : []
      })
      if (steps.length === 0) return
      try {
        await committer.commit<void>({
          ...{ what, steps, touches: [{ name: `batch ${batch}`, mode: 'alone' }] },
          ...{ onCommitted: () => undefined, onRecovered: () => undefined },
          toRejection: (error, step) => (isBatchConflict(error, step) ? new BatchChangedSignal() : error),
        })
        return
      } catch (error) {
        if (!(error instanceof BatchChangedSignal)) throw error
        await rounds.next()
      }
    }
  }

  /** Ends the batch in the background if no job of it is open. Jobs that end at the same time share the look. */
  look(batch: string): void {
    const looking = this.#looks.get(batch)
    if (looking) looking.again = true
    else this.#looks.set(batch, { again: false, done: this.#lookUntilQuiet(batch) })
  }

  /** Resolves when no batch is being looked at. */
  async idle(): Promise<void> {
    while (this.#looks.size > 0) await Promise.all([...this.#looks.values()].map(({ done }) => done))
  }

  /** Forgets what is known of a batch that this client has changed. */
  forget(batch: string): void {
    this.#unsealed.delete(batch)
  }

  async #lookUntilQuiet(batch: string): Promise<void> {
    let looking: { again: boolean } | undefined
    do {
      if (looking) looking.again = false
      // Without a connection, the sweep of a board does it.
      await this.finishIfEmpty(batch).catch((error: unknown) => {
        if (!(error instanceof NotConnected || error instanceof OutcomeUnknown)) this.#options.onError(error)
      })
      looking = this.#looks.get(batch)
    } while (looking?.again)
    this.#looks.delete(batch)
  }

  async #readForPost(batch: string, posting: Posting): Promise<BatchSnapshot> {
    const { nodes } = this.#options
    const seen = await translateErrors(`post to batch ${batch}`, () => nodes.readSynced(batch))
    if (!seen) throw unknownBatchError(batch, posting)
    if (seen.status.sealed) return seen
    this.#unsealed.set(batch, seen)
    keepNewest(this.#unsealed, MAX_KNOWN)
    return seen
  }

  /** @param options.isDoubtful whether a transaction was refused, so that the job may not be in the batch as it should */
  async #toEnding(job: EndingJob, { isDoubtful }: { readonly isDoubtful: boolean }): Promise<BatchEnding> {
    const { nodes, layout } = this.#options
    const { batch } = job
    const [seen, member] = await Promise.all([nodes.read(batch), isDoubtful ? nodes.readMember(job) : undefined])
    // The batch is not kept any more, or somebody has removed the znode by hand.
    if (!seen || member?.isOpen === false) return NO_ENDING
    const isFailed = job.trashed && !member?.isFailed
    if (seen.counts.open !== 1 || seen.status.endedAt !== undefined)
      return this.#toEarlierEnding({ ...job, trashed: isFailed })
    const steps = endJobSteps(layout, { ...job, trashed: isFailed })
    const touches: readonly TouchedName[] = [{ name: `batch ${batch}`, mode: 'alone' }]
    // If the batch is sealed meanwhile, this end is the last one.
    if (!seen.status.sealed) return { ...NO_ENDING, steps: [statusCheckStep(layout, batch, seen), ...steps], touches }
    return { steps, touches, finish: await this.#toFinish(batch, seen, { failed: isFailed ? 1 : 0 }) }
  }

  /** Returns what the end of a job adds that is not the last of its batch. */
  #toEarlierEnding(job: EndingJob): BatchEnding {
    const steps = endJobSteps(this.#options.layout, job)
    return { steps, finish: [], touches: [{ name: `batch ${job.batch}`, mode: 'together' }] }
  }

  /** Returns the steps that end the batch; none if this release cannot read its definition. @param more the jobs that end with it */
  async #toFinish(
    batch: string,
    seen: BatchSnapshot,
    more: { readonly failed: number },
  ): Promise<readonly TransactionStep[]> {
    const { nodes, layout, now, toCallbackStep, onError } = this.#options
    const bytes = await nodes.readDefinition(batch)
    const { total, failed: before } = seen.counts
    const failed = before + more.failed
    try {
      const ended = { ...seen.status, total, failed, done: total - failed }
      const callback = bytes && toBatchCallback(decodeBatch(batch, bytes), ended)
      return [...finishBatchSteps(layout, batch, { seen, now: now() }), ...(callback ? [toCallbackStep(callback)] : [])]
    } catch (error) {
      // A newer release has created it, and ends it.
      onError(asError(error))
      return []
    }
  }

  #toChanged(batch: string): BatchChangedSignal {
    this.#unsealed.delete(batch)
    return new BatchChangedSignal()
  }
}

/** Whether a batch has to be ended: a process died, or two jobs ended at the same time. */
export function isUnfinished(seen: BatchSnapshot | undefined): seen is BatchSnapshot {
  return seen?.status.sealed === true && seen.status.endedAt === undefined && seen.counts.open === 0
}

function isChanged(error: ZooKeeperError): boolean {
  return error instanceof BadVersion || error instanceof NoNode
}

/** Returns the check of an opening as the guard of its transaction. */
export function toGuard({ check }: BatchOpening): Pick<Transaction<unknown>, 'guard'> {
  return check?.op.type === 'check' ? { guard: check.op } : {}
}
