/** The batches of an open board: creates, lists, changes and watches them, and removes old ones. See `store/batch-nodes.ts`. */
import { RetryRounds } from '../../../core/async/retry.ts'
import { NodeExists, NoNode, type Watch, type ZooKeeper, type ZooKeeperError } from '../../../zookeeper/index.ts'
import type { BatchChange, BatchJobs, BatchStore, NewBatch } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { type BatchStatus, decodeBatch, MAX_ENDED_BATCHES, type StoredBatch } from '../../model/job-batch.ts'
import { unknownBatchError } from '../../model/post-batch.ts'
import type { Posting } from '../../model/posting.ts'
import { type BatchCounter, isUnfinished } from './batch-counter.ts'
import type { TransactionCommitter } from './commit/committer.ts'
import {
  BatchChangedSignal,
  createBatchSteps,
  isBatchConflict,
  removeBatchSteps,
  statusStep,
} from './commit/job-batch-steps.ts'
import type { TransactionStep } from './commit/transactions.ts'
import type { BatchNodes, BatchSnapshot } from './store/batch-nodes.ts'
import type { Layout } from './store/layout.ts'
import { missingAsUndefined, translateErrors } from './store/reader.ts'

/** The most batches that one sweep removes, and the most of its znodes that are deleted at the same time. */
const MAX_REMOVED = 100
const DELETES_AT_ONCE = 200

export interface ZooKeeperBatchesOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: Layout
  readonly nodes: BatchNodes
  readonly counter: BatchCounter
  readonly committer: Pick<TransactionCommitter, 'commit'>
  /** Refuses a posting that could not be claimed. @throws PayloadTooLarge */
  readonly assertClaimable: (posting: Posting) => void
  readonly onChanged: (batch: string) => void
}

export class ZooKeeperBatches implements BatchStore {
  readonly #options: ZooKeeperBatchesOptions
  readonly #watches = new Map<string, Promise<Watch>>()

  constructor(options: ZooKeeperBatchesOptions) {
    this.#options = options
  }

  async create({ uuid, bytes }: NewBatch): Promise<void> {
    const { zookeeper, layout, assertClaimable } = this.#options
    const { onDone, onFailed } = decodeBatch(uuid, bytes)
    for (const callback of [onDone, onFailed]) if (callback) assertClaimable(callback)
    await this.#commit(`creation of batch ${uuid}`, uuid, createBatchSteps(layout, uuid, bytes), {
      repair: (step, error) =>
        error instanceof NoNode && step.op.path === layout.batch(uuid)
          ? () => zookeeper.mkdirp(layout.batchesFolder)
          : undefined,
      toRejection: (error) =>
        error instanceof NodeExists ? refusalError(`batch ${uuid}`, { why: 'batch' }, error) : error,
    })
  }

  /** Also ends a batch that was left without open jobs by a process that died. */
  async find(uuid: string): Promise<StoredBatch | undefined> {
    const { nodes, counter } = this.#options
    const what = `reading batch ${uuid}`
    const found = await translateErrors(what, () => nodes.readWhole(uuid))
    if (!(found?.sealed && found.endedAt === undefined && found.open === 0)) return found
    await counter.finishIfEmpty(uuid)
    return translateErrors(what, () => nodes.readWhole(uuid))
  }

  list({ limit }: { readonly limit: number }): Promise<readonly StoredBatch[]> {
    return translateErrors('listing the batches', () => this.#options.nodes.newest(limit))
  }

  async change(uuid: string, change: BatchChange): Promise<StoredBatch> {
    const { nodes, counter, layout } = this.#options
    const what = `${change.kind} of batch ${uuid}`
    const rounds = new RetryRounds(what)
    while (true) {
      const seen = await translateErrors(what, () => nodes.readSynced(uuid))
      if (!seen) throw unknownBatchError(uuid)
      const next = toChanged(seen.status, change)
      if (!next) break
      counter.forget(uuid)
      try {
        const counted = change.kind === 'carry' ? { carried: change.total - (seen.counts.total - seen.carried) } : {}
        const step = statusStep(layout, uuid, { seen, status: next, ...counted })
        await this.#commit(what, uuid, [step], { toRejection: toConflict })
        break
      } catch (error) {
        if (!(error instanceof BatchChangedSignal)) throw error
        await rounds.next()
      }
    }
    const found = await this.find(uuid)
    if (found) return found
    throw unknownBatchError(uuid)
  }

  async jobs(uuid: string): Promise<BatchJobs> {
    const found = await translateErrors(`listing the jobs of batch ${uuid}`, () => this.#options.nodes.jobs(uuid))
    if (found) return found
    throw unknownBatchError(uuid)
  }

  async watch(uuid: string): Promise<void> {
    const { zookeeper, layout, onChanged } = this.#options
    if (this.#watches.has(uuid)) return
    const handler = { events: () => onChanged(uuid), gap: () => onChanged(uuid) }
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

  /** Ends the batches that were left without open jobs, and removes those that ended before the newest ones that are kept. */
  async sweep(): Promise<void> {
    const { nodes, counter } = this.#options
    const names = await nodes.listNames()
    const found = await nodes.readEach(names)
    const unfinished = names.filter((_, index) => isUnfinished(found[index]))
    for (const uuid of unfinished) counter.look(uuid)
    const gone = names.filter((_, index) => found[index] === undefined)
    const ended = names.flatMap((uuid, index) => toEnded(uuid, found[index]) ?? [])
    const old = ended.sort((a, b) => b.endedAt - a.endedAt).slice(MAX_ENDED_BATCHES)
    for (const { uuid, seen } of old.slice(-MAX_REMOVED)) await this.#remove(uuid, seen)
    // Another sweep may be removing them, or has died.
    for (const uuid of gone.slice(0, MAX_REMOVED)) await this.#removeRest(uuid)
  }

  async #remove(uuid: string, seen: BatchSnapshot): Promise<void> {
    const steps = removeBatchSteps(this.#options.layout, uuid, seen)
    try {
      await this.#commit(`removal of batch ${uuid}`, uuid, steps, { toRejection: toConflict })
    } catch (error) {
      // It was opened again.
      if (error instanceof BatchChangedSignal) return
      throw error
    }
    await this.#removeRest(uuid)
  }

  async #removeRest(uuid: string): Promise<void> {
    const { zookeeper, layout } = this.#options
    // A newer release may have created it.
    if (await zookeeper.exists(layout.batchState(uuid))) return
    const folder = layout.batchFailed(uuid)
    const names = (await missingAsUndefined(zookeeper.getChildren(folder)))?.names ?? []
    for (let from = 0; from < names.length; from += DELETES_AT_ONCE)
      await Promise.all(names.slice(from, from + DELETES_AT_ONCE).map((name) => this.#delete(`${folder}/${name}`)))
    await this.#delete(folder)
    await this.#delete(layout.batch(uuid))
  }

  async #delete(path: string): Promise<void> {
    await missingAsUndefined(this.#options.zookeeper.delete(path))
  }

  #commit(
    what: string,
    batch: string,
    steps: readonly TransactionStep[],
    on: Pick<Parameters<TransactionCommitter['commit']>[0], 'repair' | 'toRejection'>,
  ): Promise<void> {
    return this.#options.committer.commit<void>({
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

function toConflict(error: ZooKeeperError, step: TransactionStep | 'guard' | undefined): Error {
  return isBatchConflict(error, step) ? new BatchChangedSignal() : error
}

function toEnded(
  uuid: string,
  seen: BatchSnapshot | undefined,
): { readonly uuid: string; readonly seen: BatchSnapshot; readonly endedAt: number } | undefined {
  const { endedAt } = seen?.status ?? {}
  return seen && endedAt !== undefined ? { uuid, seen, endedAt } : undefined
}
