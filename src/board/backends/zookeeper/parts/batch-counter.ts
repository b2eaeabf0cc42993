/** Counts the jobs of batches in the transactions of posts, ends and restorations, and ends batches: see `store/batch-nodes.ts`. */

import { RetryRounds } from '../../../../core/async/retry.ts'
import { keepNewest } from '../../../../core/collections/keep-newest.ts'
import { asError, NotConnected, OutcomeUnknown } from '../../../../core/errors.ts'
import { BadVersion, type CheckOp, NodeExists, NoNode, type ZooKeeperError } from '../../../../zookeeper/index.ts'
import type { PostRequest } from '../../../contract/index.ts'
import { decodeBatch, toBatchCallback } from '../../../model/job-batch.ts'
import {
  closedBatchError,
  duplicateMemberError,
  duplicateRestoreError,
  unknownBatchError,
} from '../../../model/post-batch.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import type { TransactionCommitter } from '../commit/committer.ts'
import { AGAIN, type Again, TRY_AGAIN, type TransactionPart, untilDone } from '../commit/parts.ts'
import type { RefusalMeaning, RefusedStep, TouchedName, TransactionStep } from '../commit/transaction.ts'
import type { BatchNodes, BatchSnapshot } from '../store/batch-nodes.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import { translateErrors } from '../store/reader.ts'
import {
  type EndingJob,
  endJobSteps,
  finishBatchSteps,
  isBatchChanged,
  openJobSteps,
  restoreJobSteps,
  statusCheckOp,
} from './batch-steps.ts'

/** The greatest number of batches whose newest read is kept. */
const MAX_KNOWN = 1_000

export interface BatchCounterOptions {
  readonly layout: ZooKeeperLayout
  readonly nodes: BatchNodes
  readonly committer: Pick<TransactionCommitter, 'commit'>
  /** Returns the step that creates the callback of a batch. */
  readonly toCallbackStep: (posting: Posting) => TransactionStep
  /** Notes a refused step, which may have created the callback with a number that is taken. */
  readonly noteRefused: (error: ZooKeeperError, step: RefusedStep) => void
  /** Returns the time of the servers' clock in milliseconds since 1970. */
  readonly now: () => number
  readonly onError: (error: unknown) => void
}

/** The part of a transaction by which a post counts its job in a batch. */
export interface BatchOpening<T = never> extends TransactionPart<T | Again> {
  readonly steps: readonly TransactionStep[]
  /** The check of the status, as the guard of a single post. Many transactions share it. */
  readonly guard: CheckOp
}

/** The part and the steps by which the end of a job is counted in its batch. */
export interface BatchEnding {
  readonly part: TransactionPart<Again>
  readonly steps: readonly TransactionStep[]
  /** The steps that end the batch. They can be left out if the transaction would be too large: then the batch is ended afterwards. */
  readonly finish: readonly TransactionStep[]
  /** Called when the transaction is committed. @param options.isFinished whether it had the steps that end the batch */
  counted(options: { readonly isFinished: boolean }): void
}

export class BatchCounter {
  readonly #options: BatchCounterOptions
  /** Batches that are not sealed, as they were read last: posts check that they are still so. */
  readonly #unsealed = new Map<string, BatchSnapshot>()
  /** The batches that are being checked for open jobs, and whether another check follows. */
  readonly #readyChecks = new Map<string, { again: boolean; readonly done: Promise<void> }>()

  constructor(options: BatchCounterOptions) {
    this.#options = options
  }

  /**
   * Returns what a post to a batch adds.
   *
   * @param post.changed what it means that the batch is not as it was read; by default that the post is made anew
   * @throws NotFound, InvalidState, NotConnected
   */
  async openPosted<T = never>(
    batch: string,
    post: Pick<PostRequest, 'posting' | 'member'> & { readonly changed?: RefusalMeaning<T | Again> },
  ): Promise<BatchOpening<T>> {
    const { posting, member, changed = TRY_AGAIN } = post
    const seen = this.#unsealed.get(batch) ?? (await this.#readForPost(batch, posting))
    const { sealed, cancelled } = seen.status
    if (cancelled || (sealed && member === undefined)) throw closedBatchError(batch, seen.status, posting)
    const { layout } = this.#options
    const { uuid } = posting
    const steps = openJobSteps(layout, batch, { uuid, by: sealed ? member : undefined })
    return {
      ...{ steps, guard: statusCheckOp(layout, batch, seen) },
      touches: [
        { name: `batch ${batch}`, mode: 'together' },
        { name: `batch ${batch}/${uuid}`, mode: 'alone' },
      ],
      onRefused: (error, step) => {
        if (step !== 'guard' && error instanceof NodeExists) return duplicateMemberError(batch, posting)
        if (!isChanged(error)) return undefined
        // If the status is as it was read, the batch is sealed, and the job for which it is posted has ended.
        const isMemberGone = step !== 'guard' && step?.op.type === 'check' && steps.includes(step)
        if (isMemberGone) return closedBatchError(batch, seen.status, posting)
        this.forget(batch)
        return changed
      },
    }
  }

  /**
   * Returns what the restoration of a job of a batch adds; undefined for a job that its batch does not know: it is not counted.
   *
   * @throws Duplicate if a job with its uuid is open in the batch, NotConnected
   */
  async openRestored(
    batch: string,
    posting: Posting,
    { id }: { readonly id: string },
  ): Promise<(TransactionPart<Again> & Pick<BatchOpening, 'steps'>) | undefined> {
    const { uuid } = posting
    const { nodes, layout } = this.#options
    const [seen, { isFailed, isOpen }] = await translateErrors(`reading batch ${batch}`, () =>
      Promise.all([nodes.read(batch), nodes.readMember({ batch, uuid, id })]),
    )
    if (!seen || !isFailed) return undefined
    if (isOpen) throw duplicateRestoreError(batch, posting)
    return {
      steps: restoreJobSteps(layout, batch, { seen, uuid, id }),
      touches: [{ name: `batch ${batch}`, mode: 'alone' }],
      onRefused: (error, step) => {
        if (!isBatchChanged(error, step)) return undefined
        this.forget(batch)
        return TRY_AGAIN
      },
    }
  }

  /** Returns what the ends of a job of a batch add: one call for each try of the transaction. */
  ending(job: EndingJob): () => Promise<BatchEnding | undefined> {
    const { batch } = job
    const rounds = new RetryRounds(`counting job ${job.uuid} of batch ${batch}`)
    let isDoubtful = false
    const refusal: RefusalMeaning<Again> = {
      answer: async () => {
        isDoubtful = true
        await rounds.next()
        return AGAIN
      },
    }
    return async () => {
      const counted = await translateErrors(`reading batch ${batch}`, () => this.#countEnd(job, { isDoubtful })).catch(
        (error: unknown) => {
          // The transaction waits for a connection, and whether it is the last one is looked for afterwards.
          if (error instanceof NotConnected && !isDoubtful) return this.#countEarlierEnd(job)
          throw error
        },
      )
      if (!counted) return undefined
      const { steps, finish, mode } = counted
      return {
        part: {
          steps: [...steps, ...finish],
          touches: [{ name: `batch ${batch}`, mode }],
          onRefused: (error, step) => {
            this.#options.noteRefused(error, step)
            return isBatchChanged(error, step) ? refusal : undefined
          },
        },
        ...{ steps, finish },
        // Others may have ended at the same time, so that no end was the last.
        counted: ({ isFinished }) => {
          if (!isFinished) this.checkReady(batch)
        },
      }
    }
  }

  /** Ends the batch if it is sealed and no job of it is open. @throws NotConnected, OutcomeUnknown */
  async finishIfEmpty(batch: string): Promise<void> {
    const { nodes, committer } = this.#options
    const what = `end of batch ${batch}`
    const rounds = new RetryRounds(what)
    await untilDone<undefined>(async () => {
      const steps = await translateErrors(what, async () => {
        const seen = await nodes.read(batch)
        return isUnfinished(seen) ? this.#toFinish(batch, seen, { failed: 0 }) : []
      })
      if (steps.length === 0) return
      return committer.commit<Again | undefined>({
        ...{ what, steps, touches: [{ name: `batch ${batch}`, mode: 'alone' }] },
        ...{ onCommitted: () => undefined, onRecovered: () => undefined },
        onRefused: (error, step) => {
          this.#options.noteRefused(error, step)
          return isBatchChanged(error, step) ? { answer: () => rounds.next().then(() => AGAIN) } : error
        },
      })
    })
  }

  /** Ends the batch in the background if no job of it is open. Jobs that end at the same time share the check. */
  checkReady(batch: string): void {
    const check = this.#readyChecks.get(batch)
    if (check) check.again = true
    else this.#readyChecks.set(batch, { again: false, done: this.#checkUntilQuiet(batch) })
  }

  /** Resolves when no batch is being checked. */
  async idle(): Promise<void> {
    while (this.#readyChecks.size > 0) await Promise.all([...this.#readyChecks.values()].map(({ done }) => done))
  }

  /** Forgets what is known of a batch that this client has changed. */
  forget(batch: string): void {
    this.#unsealed.delete(batch)
  }

  async #checkUntilQuiet(batch: string): Promise<void> {
    let check: { again: boolean } | undefined
    do {
      if (check) check.again = false
      // Without a connection, the sweep of a board does it.
      await this.finishIfEmpty(batch).catch((error: unknown) => {
        if (!(error instanceof NotConnected || error instanceof OutcomeUnknown)) this.#options.onError(error)
      })
      check = this.#readyChecks.get(batch)
    } while (check?.again)
    this.#readyChecks.delete(batch)
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

  /**
   * Returns the steps that count the end of a job; undefined if they would count nothing.
   *
   * @param options.isDoubtful whether a transaction was refused, so that the job may not be in the batch as it should
   */
  async #countEnd(job: EndingJob, { isDoubtful }: { readonly isDoubtful: boolean }): Promise<CountedEnd | undefined> {
    const { nodes, layout } = this.#options
    const { batch } = job
    const [seen, member] = await Promise.all([nodes.read(batch), isDoubtful ? nodes.readMember(job) : undefined])
    // The batch is not kept any more, or its znode was removed by hand.
    if (!seen || member?.isOpen === false) return undefined
    const counted = { ...job, trashed: job.trashed && !member?.isFailed }
    if (seen.counts.open !== 1 || seen.status.endedAt !== undefined) return this.#countEarlierEnd(counted)
    const steps = endJobSteps(layout, counted)
    // If the batch is sealed meanwhile, this end is the last one.
    if (!seen.status.sealed)
      return { mode: 'alone', steps: [{ op: statusCheckOp(layout, batch, seen) }, ...steps], finish: [] }
    return { mode: 'alone', steps, finish: await this.#toFinish(batch, seen, { failed: counted.trashed ? 1 : 0 }) }
  }

  /** Returns the steps that count an end that is not the last of its batch. */
  #countEarlierEnd(job: EndingJob): CountedEnd {
    return { mode: 'together', steps: endJobSteps(this.#options.layout, job), finish: [] }
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
}

/** The steps that count the end of a job, and the steps that end its batch. */
interface CountedEnd extends Pick<TouchedName, 'mode'> {
  readonly steps: readonly TransactionStep[]
  readonly finish: readonly TransactionStep[]
}

/** Returns whether a batch has to be ended: a process died, or two jobs ended at the same time. */
export function isUnfinished(seen: BatchSnapshot | undefined): seen is BatchSnapshot {
  return seen?.status.sealed === true && seen.status.endedAt === undefined && seen.counts.open === 0
}

function isChanged(error: ZooKeeperError): boolean {
  return error instanceof BadVersion || error instanceof NoNode
}
