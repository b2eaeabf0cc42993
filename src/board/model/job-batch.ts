/**
 * Batches: groups of jobs that are counted to their ends. Each transaction that ends a job of a batch counts it. The transaction that ends
 * the last job ends the batch and posts its callback. A backend keeps the definition of a batch as bytes, and counts itself:
 *
 * | number | changes |
 * |---|---|
 * | open | the jobs on the board: a post and a restoration add one, an end removes one |
 * | failed | the jobs that have ended in the trash: a restoration removes one, a purge none |
 * | done | the others that have ended |
 * | total | the sum |
 *
 * A batch ends when it is sealed and no job of it is open. If a job is restored from the trash afterwards, the batch is open again, in the next
 * generation, and its later end posts a callback of that generation.
 */
import { v5 } from 'uuid'
import { toFields } from '../../core/codec.ts'
import type { BatchRun } from '../../flow/index.ts'
import { checkPosting } from './posting/check-posting.ts'
import type { Posting } from './posting/posting.ts'
import { decodeRecord, encodeRecord } from './record.ts'
import { anything, fieldsOf, isCount, parseStored, text, time } from './stored.ts'

/** The number of ended batches that a board keeps; of the others it keeps all. */
export const MAX_ENDED_BATCHES = 1_000

/** The definition of a batch. It is never changed. */
export interface BatchDefinition {
  readonly uuid: string
  /** The name for people, which need not be unique. */
  readonly name: string
  readonly meta: Readonly<Record<string, unknown>>
  /** The owner name of the board that created it. */
  readonly who: string
  /** The time of its creation in milliseconds since 1970, by the board's clock as its creator knew it. */
  readonly createdAt: number
  /** The job that is posted when all jobs are done; its uuid is replaced. */
  readonly onDone?: Posting
  /** The job that is posted when all jobs have ended, some of them in the trash; its uuid is replaced. */
  readonly onFailed?: Posting
}

export interface BatchCounts {
  readonly total: number
  readonly done: number
  readonly failed: number
  /** The number of jobs that have not ended. */
  readonly open: number
}

/** The fields of a batch that its seal, its cancellation, its end and its reopening change. */
export interface BatchStatus {
  /** Whether only jobs of the batch can add jobs to it. */
  readonly sealed: boolean
  /** 1 for a new batch; one more after each time that it was opened again after its end. */
  readonly generation: number
  /** The request to cancel the batch. */
  readonly cancelled?: { readonly who: string; readonly reason: string }
  /** The time of its end in milliseconds since 1970; absent for a batch that has not ended. */
  readonly endedAt?: number
}

/** A batch as a backend stores it. */
export interface StoredBatch extends BatchCounts, BatchStatus {
  readonly uuid: string
  /** The definition, as {@link encodeBatch} has encoded it. */
  readonly bytes: Uint8Array
}

/** The state of a batch. `open`: not sealed. `running`: sealed. The others: as it has ended, or `cancelled` from the request on. */
export type BatchState = 'open' | 'running' | 'done' | 'failed' | 'cancelled'

/** The end of the batch for which a callback was posted: the field `endedBatch` of its details. */
export interface EndedBatchDetails extends Omit<BatchCounts, 'open'> {
  readonly uuid: string
  readonly name: string
  readonly generation: number
}

/** The version of the layout of a definition. */
const BATCH_FORMAT = 1
const DEFINITION = fieldsOf<
  {
    readonly [K in 'name' | 'who']: string
  } & { readonly createdAt: number; readonly meta?: unknown; readonly onDone?: unknown; readonly onFailed?: unknown }
>({
  ...{ name: text, who: text, createdAt: time, meta: anything, onDone: anything, onFailed: anything },
})
/** The namespace of the uuids of callbacks, and of batches with a key. */
const NAMESPACE = '6f3c7a52-52a8-4ee1-8d04-0c9b6ad3f7c5'

/** Returns the state of a batch. */
export function toBatchState({ sealed, cancelled, endedAt, failed }: BatchStatus & BatchCounts): BatchState {
  if (cancelled) return 'cancelled'
  if (endedAt === undefined) return sealed ? 'running' : 'open'
  return failed > 0 ? 'failed' : 'done'
}

/** Returns the uuid of the batch with this key: the same for all processes, so that one of them creates it. */
export function toBatchUuid(key: string): string {
  return v5(`batch\n${key}`, NAMESPACE)
}

/** @throws InvalidArgument for meta that is not plain data, PayloadTooLarge */
export function encodeBatch(definition: BatchDefinition): Uint8Array {
  return encodeRecord(definition, { kind: 'batch', id: definition.uuid, format: BATCH_FORMAT })
}

/** Decodes a definition. @throws IncompatibleVersion for one of a newer release; InvalidPosting for other bytes */
export function decodeBatch(uuid: string, bytes: Uint8Array): BatchDefinition {
  const value = decodeRecord(bytes, { kind: 'batch', id: uuid, format: BATCH_FORMAT })
  const record = parseStored(value, DEFINITION, `batch ${uuid}`)
  const { name, who, createdAt, meta, onDone, onFailed } = record
  return {
    ...{ uuid, name, who, createdAt, meta: toFields(meta) ?? {} },
    ...(onDone === undefined ? {} : { onDone: checkPosting(Object(onDone)) }),
    ...(onFailed === undefined ? {} : { onFailed: checkPosting(Object(onFailed)) }),
  }
}

/**
 * Returns the job that the end of a batch posts; undefined for none. Its uuid follows from the batch and the generation, so that it is the same
 * whichever process makes it.
 */
export function toBatchCallback(
  { uuid, name, onDone, onFailed }: BatchDefinition,
  { generation, cancelled, total, done, failed }: Omit<StoredBatch, 'bytes' | 'uuid' | 'open'>,
): Posting | undefined {
  const template = failed > 0 ? onFailed : onDone
  if (cancelled || !template) return undefined
  const endedBatch: EndedBatchDetails = { uuid, name, generation, total, done, failed }
  return {
    ...template,
    uuid: v5([uuid, generation].join('\n'), NAMESPACE),
    details: { ...template.details, endedBatch },
  }
}

/** Returns the batch of a job for its tasks: the batch that counts it, or the batch whose end has posted it. */
export function toBatchRun({
  batch,
  details,
}: {
  readonly batch?: string | undefined
  readonly details: Posting['details']
}): BatchRun | undefined {
  if (batch !== undefined) return { uuid: batch }
  const { uuid, name, generation, total, done, failed }: Partial<EndedBatchDetails> = Object(details['endedBatch'])
  // The application may have a field of this name with another meaning.
  if (typeof uuid !== 'string' || typeof name !== 'string') return undefined
  if (!isCount(generation) || !isCount(total) || !isCount(done) || !isCount(failed)) return undefined
  return { uuid, ended: { name, generation, total, done, failed } }
}
