/** The steps of transactions that change a batch of jobs: see `store/batch-nodes.ts` for the znodes, and what the steps prove. */

import { encodePlain } from '../../../../core/codec.ts'
import {
  BadVersion,
  type CheckOp,
  NodeExists,
  NoNode,
  NotEmpty,
  op,
  type ZooKeeperError,
} from '../../../../zookeeper/index.ts'
import type { BatchStatus } from '../../../model/job-batch.ts'
import type { RefusedStep, TransactionStep } from '../commit/transaction.ts'
import type { BatchSnapshot } from '../store/batch-nodes.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'

/** A job of a batch that ends. */
export interface EndingJob {
  readonly batch: string
  readonly uuid: string
  readonly id: string
  readonly trashed: boolean
}

export function createBatchSteps(layout: ZooKeeperLayout, batch: string, definition: Uint8Array): TransactionStep[] {
  return [
    toStep(op.create(layout.batch(batch), definition)),
    toStep(op.create(layout.batchState(batch), encodeStatus({ sealed: false, generation: 1 }))),
    toStep(op.create(layout.batchOpen(batch), null)),
    toStep(op.create(layout.batchFailed(batch), null)),
  ]
}

/** Returns the check that the status of a batch is as it was read. */
export function statusCheckOp(layout: ZooKeeperLayout, batch: string, { stateVersion }: BatchSnapshot): CheckOp {
  return op.check(layout.batchState(batch), { version: stateVersion })
}

/** @param change.carried the number of jobs that another board has counted, as in {@link BatchSnapshot}; by default as it was */
export function statusStep(
  layout: ZooKeeperLayout,
  batch: string,
  { seen, ...change }: { readonly seen: BatchSnapshot; readonly status: BatchStatus; readonly carried?: number },
): TransactionStep {
  const { status, carried = seen.carried } = change
  const encoded = encodeStatus(carried === 0 ? status : { ...status, carried })
  return toStep(op.setData(layout.batchState(batch), encoded, { version: seen.stateVersion }))
}

/** Returns the steps that open a posted job, beside the check of the status. @param job.by the job that adds it to a sealed batch */
export function openJobSteps(
  layout: ZooKeeperLayout,
  batch: string,
  { uuid, by }: { readonly uuid: string; readonly by: string | undefined },
): TransactionStep[] {
  const created = toStep(op.create(layout.batchMember(batch, uuid), null))
  if (by === undefined) return [created]
  return [toStep(op.check(layout.batchMember(batch, by))), created, noteOpenedStep(layout, batch)]
}

/** Returns the steps that count the end of a job. */
export function endJobSteps(layout: ZooKeeperLayout, { batch, uuid, id, trashed }: EndingJob): TransactionStep[] {
  const ended = toStep(op.delete(layout.batchMember(batch, uuid)))
  return trashed ? [ended, toStep(op.create(layout.failedMember(batch, id), null))] : [ended]
}

/** Returns the steps that open a job which is restored from the trash, where it had this id. */
export function restoreJobSteps(
  layout: ZooKeeperLayout,
  batch: string,
  { seen, uuid, id }: { readonly seen: BatchSnapshot; readonly uuid: string; readonly id: string },
): TransactionStep[] {
  const { sealed, generation, endedAt } = seen.status
  const status = { sealed, generation: generation + 1 }
  return [
    endedAt === undefined ? toStep(statusCheckOp(layout, batch, seen)) : statusStep(layout, batch, { seen, status }),
    toStep(op.delete(layout.failedMember(batch, id))),
    toStep(op.create(layout.batchMember(batch, uuid), null)),
    noteOpenedStep(layout, batch),
  ]
}

/** Returns the steps that end a batch without open jobs, apart from a job that ends in the same transaction. */
export function finishBatchSteps(
  layout: ZooKeeperLayout,
  batch: string,
  { seen, now }: { readonly seen: BatchSnapshot; readonly now: number },
): TransactionStep[] {
  return [
    toStep(op.check(layout.batchOpen(batch), { version: seen.openVersion })),
    statusStep(layout, batch, { seen, status: { ...seen.status, endedAt: now } }),
  ]
}

/** Returns the steps that remove a batch without open jobs; its definition and its failed jobs remain, and mean nothing then. */
export function removeBatchSteps(layout: ZooKeeperLayout, batch: string, seen: BatchSnapshot): TransactionStep[] {
  return [
    toStep(op.delete(layout.batchState(batch), { version: seen.stateVersion })),
    toStep(op.delete(layout.batchOpen(batch))),
  ]
}

/** Returns the step that gives `open` another version, which the end of the last job compares. */
function noteOpenedStep(layout: ZooKeeperLayout, batch: string): TransactionStep {
  return toStep(op.setData(layout.batchOpen(batch), null))
}

/** Returns whether a step was refused because a batch is not as it was read. */
export function isBatchChanged(error: ZooKeeperError, step: RefusedStep): boolean {
  return step !== undefined && [BadVersion, NodeExists, NoNode, NotEmpty].some((type) => error instanceof type)
}

function encodeStatus(status: BatchStatus & { readonly carried?: number }): Uint8Array {
  return encodePlain(status, 'msgpack')
}

function toStep(taken: TransactionStep['op']): TransactionStep {
  return { op: taken }
}
