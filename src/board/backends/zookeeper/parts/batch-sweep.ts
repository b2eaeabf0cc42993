/** Ends batches that were left without open jobs, and removes old ones. See `store/batch-nodes.ts`. */
import type { ZooKeeper } from '../../../../zookeeper/index.ts'
import { MAX_ENDED_BATCHES } from '../../../model/job-batch.ts'
import type { TransactionCommitter } from '../commit/committer.ts'
import type { BatchNodes, BatchSnapshot } from '../store/batch-nodes.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import { missingAsUndefined } from '../store/reader.ts'
import { type BatchCounter, isUnfinished } from './batch-counter.ts'
import { isBatchChanged, removeBatchSteps } from './batch-steps.ts'

/** The most batches that one sweep removes, and the most of its znodes that are deleted at the same time. */
const MAX_REMOVED = 100
const DELETES_AT_ONCE = 200

export interface BatchSweepOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: ZooKeeperLayout
  readonly nodes: BatchNodes
  readonly counter: BatchCounter
  readonly committer: Pick<TransactionCommitter, 'commit'>
}

export class BatchSweep {
  readonly #options: BatchSweepOptions

  constructor(options: BatchSweepOptions) {
    this.#options = options
  }

  /** Ends the batches that were left without open jobs, and removes the ended batches that are older than the kept ones. */
  async run(): Promise<void> {
    const { nodes, counter } = this.#options
    const names = await nodes.listNames()
    const found = await nodes.readEach(names)
    const unfinished = names.filter((_, index) => isUnfinished(found[index]))
    for (const uuid of unfinished) counter.checkReady(uuid)
    const gone = names.filter((_, index) => found[index] === undefined)
    const ended = names.flatMap((uuid, index) => toEnded(uuid, found[index]) ?? [])
    const old = ended.sort((a, b) => b.endedAt - a.endedAt).slice(MAX_ENDED_BATCHES)
    for (const { uuid, seen } of old.slice(-MAX_REMOVED)) await this.#remove(uuid, seen)
    // Another sweep may be removing them, or has died.
    for (const uuid of gone.slice(0, MAX_REMOVED)) await this.#removeRest(uuid)
  }

  async #remove(uuid: string, seen: BatchSnapshot): Promise<void> {
    const { layout, committer } = this.#options
    const isRemoved = await committer.commit<boolean>({
      what: `removal of batch ${uuid}`,
      steps: removeBatchSteps(layout, uuid, seen),
      touches: [{ name: `batch ${uuid}`, mode: 'alone' }],
      onCommitted: () => true,
      onRecovered: () => true,
      // It was opened again.
      onRefused: (error, step) => (isBatchChanged(error, step) ? { answer: () => false } : error),
    })
    if (isRemoved) await this.#removeRest(uuid)
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
}

function toEnded(
  uuid: string,
  seen: BatchSnapshot | undefined,
): { readonly uuid: string; readonly seen: BatchSnapshot; readonly endedAt: number } | undefined {
  const { endedAt } = seen?.status ?? {}
  return seen && endedAt !== undefined ? { uuid, seen, endedAt } : undefined
}
