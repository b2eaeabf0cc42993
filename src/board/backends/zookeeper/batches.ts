/** The batches of a board: creates, lists, changes and watches them. See `store/batch-nodes.ts`. */

import { RetryRounds } from '../../../core/async/retry.ts'
import { NodeExists, NoNode, type Watch } from '../../../zookeeper/index.ts'
import type { BackendBatches, BatchChange, BatchJobs, NewBatch } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { type BatchStatus, decodeBatch, type StoredBatch } from '../../model/job-batch.ts'
import { unknownBatchError } from '../../model/post-batch.ts'
import { AGAIN, type Again, untilDone } from './commit/parts.ts'
import type { Transaction, TransactionStep } from './commit/transaction.ts'
import { createBatchSteps, isBatchChanged, statusStep } from './parts/batch-steps.ts'
import type { BoardHandle } from './parts/board-handle.ts'
import { translateErrors } from './store/reader.ts'

export class ZooKeeperBatches implements BackendBatches {
  readonly #board: BoardHandle
  readonly #watches = new Map<string, Promise<Watch>>()

  constructor(board: BoardHandle) {
    this.#board = board
  }

  async create({ uuid, bytes }: NewBatch): Promise<void> {
    const { zookeeper, layout } = this.#board
    const { postings } = this.#board.components
    const { onDone, onFailed } = decodeBatch(uuid, bytes)
    for (const callback of [onDone, onFailed]) if (callback) postings.assertClaimable(callback)
    await this.#commit(`creation of batch ${uuid}`, uuid, createBatchSteps(layout, uuid, bytes), {
      repair: (step, error) =>
        error instanceof NoNode && step.op.path === layout.batch(uuid)
          ? () => zookeeper.mkdirp(layout.batchesFolder)
          : undefined,
      onRefused: (error) =>
        error instanceof NodeExists ? refusalError(`batch ${uuid}`, { why: 'batch' }, error) : error,
    })
  }

  /** Returns the batch. Ends it before if a process that died has left it without open jobs. */
  async find(uuid: string): Promise<StoredBatch | undefined> {
    const { batchNodes: nodes, batches: counter } = this.#board.components
    const what = `reading batch ${uuid}`
    const found = await translateErrors(what, () => nodes.readWhole(uuid))
    if (!(found?.sealed && found.endedAt === undefined && found.open === 0)) return found
    await counter.finishIfEmpty(uuid)
    return translateErrors(what, () => nodes.readWhole(uuid))
  }

  list({ limit }: { readonly limit: number }): Promise<readonly StoredBatch[]> {
    return translateErrors('listing the batches', () => this.#board.components.batchNodes.newest(limit))
  }

  async change(uuid: string, change: BatchChange): Promise<StoredBatch> {
    const { layout } = this.#board
    const { batchNodes: nodes, batches: counter } = this.#board.components
    const what = `${change.kind} of batch ${uuid}`
    const rounds = new RetryRounds(what)
    await untilDone<undefined>(async () => {
      const seen = await translateErrors(what, () => nodes.readSynced(uuid))
      if (!seen) throw unknownBatchError(uuid)
      const next = toChanged(seen.status, change)
      if (!next) return
      counter.forget(uuid)
      const counted = change.kind === 'carry' ? { carried: change.total - (seen.counts.total - seen.carried) } : {}
      const step = statusStep(layout, uuid, { seen, status: next, ...counted })
      return this.#commit<Again | undefined>(what, uuid, [step], {
        onRefused: (error, step) =>
          isBatchChanged(error, step) ? { answer: () => rounds.next().then(() => AGAIN) } : error,
      })
    })
    const found = await this.find(uuid)
    if (found) return found
    throw unknownBatchError(uuid)
  }

  async jobs(uuid: string): Promise<BatchJobs> {
    const found = await translateErrors(`listing the jobs of batch ${uuid}`, () =>
      this.#board.components.batchNodes.jobs(uuid),
    )
    if (found) return found
    throw unknownBatchError(uuid)
  }

  async watch(uuid: string): Promise<void> {
    const { zookeeper, layout } = this.#board
    const { sink } = this.#board.components
    if (this.#watches.has(uuid)) return
    const handler = { events: () => sink.batchChanged(uuid), gap: () => sink.batchChanged(uuid) }
    const watching = zookeeper.watch(layout.batchState(uuid), { mode: 'persistent' }, handler)
    this.#watches.set(uuid, watching)
    try {
      await translateErrors(`watching batch ${uuid}`, () => watching)
    } catch (error) {
      this.#watches.delete(uuid)
      throw error
    }
  }

  async unwatch(uuid: string): Promise<void> {
    const watching = this.#watches.get(uuid)
    this.#watches.delete(uuid)
    const watch = await watching?.catch(() => undefined)
    await watch?.remove().catch(() => undefined)
  }

  #commit<T extends Again | undefined>(
    what: string,
    batch: string,
    steps: readonly TransactionStep[],
    on: Pick<Transaction<T>, 'repair' | 'onRefused'>,
  ): Promise<T | undefined> {
    return this.#board.committer.commit<T | undefined>({
      ...{ what, steps, touches: [{ name: `batch ${batch}`, mode: 'alone' }] },
      ...{ onCommitted: () => undefined, onRecovered: () => undefined },
      ...on,
    })
  }
}

/** Returns the status after a change; undefined if it has no effect. */
function toChanged(status: BatchStatus, change: BatchChange): BatchStatus | undefined {
  const { sealed, generation, cancelled, endedAt } = status
  switch (change.kind) {
    case 'seal':
      return sealed ? undefined : { ...status, sealed: true }
    case 'cancel': {
      const { who, reason } = change
      return cancelled || endedAt !== undefined ? undefined : { ...status, sealed: true, cancelled: { who, reason } }
    }
    case 'reopen':
      return sealed ? { sealed: false, generation: endedAt === undefined ? generation : generation + 1 } : undefined
    case 'carry': {
      const { kind: _, total: __, ...carried } = change
      return carried
    }
  }
}
