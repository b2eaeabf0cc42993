/** Keeps batches of jobs: see `functions/batches.sql`. */
import { decodeText, encodeText, type Row } from '../../../postgres/index.ts'
import type { BackendBatches, BatchChange, BatchJobs, NewBatch } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { type BatchCounts, type BatchStatus, decodeBatch, type StoredBatch } from '../../model/job-batch.ts'
import { unknownBatchError } from '../../model/post-batch.ts'
import { cutCallback } from '../batch-callback.ts'
import { toPlaceText } from './commit/post-calls.ts'
import type { BoardWriter } from './commit/writer.ts'
import { Watches } from './connection/watches.ts'
import type { PostgresBoard } from './store/board.ts'
import { jobId, readBytes } from './store/rows.ts'
import { batchesChannel } from './store/schema.ts'

/** The number of batches in one answer: each may have a definition of 256 KiB. */
const BATCHES_PER_READ = 100

/** A batch without its definition, as the function `change_batch` returns it. */
interface ChangedBatch {
  readonly generation: number
  readonly sealed: boolean
  readonly endedAt: number | null
  readonly who: string | null
  readonly reason: string | null
  readonly total: number
  readonly open: number
  readonly failed: number
}

export class PostgresBatches implements BackendBatches {
  /** The uuids of the batches whose changes are to be reported. */
  readonly watches: Watches
  readonly #board: PostgresBoard
  readonly #writer: BoardWriter

  constructor(board: PostgresBoard, writer: BoardWriter) {
    this.#board = board
    this.#writer = writer
    this.watches = new Watches(board, {
      channelOf: batchesChannel,
      report: (uuid) => (uuid === undefined || this.watches.has(uuid)) && board.sink.batchChanged(uuid),
    })
  }

  async create({ uuid, bytes }: NewBatch): Promise<void> {
    const definition = decodeBatch(uuid, bytes)
    const callbacks = (['done', 'failed'] as const).flatMap((kind) => {
      const callback = cutCallback(definition, kind)
      return callback ? [{ ...callback, failed: kind === 'failed' }] : []
    })
    const values = [
      encodeText(uuid),
      bytes,
      callbacks.map(({ failed }) => failed),
      callbacks.map(({ posting }) => encodeText(posting.name)),
      callbacks.map(({ posting }) => toPlaceText(posting)),
      callbacks.map(({ posting: { onOwnerLost = null } }) => onOwnerLost),
      callbacks.map(({ posting: { delay = null } }) => delay),
      callbacks.map((callback) => callback.bytes),
      callbacks.map(({ gaps }) => gaps),
    ]
    const answer = await this.#writer.call(`creation of batch ${uuid}`, 'create_batch', values, this.#writer.batches)
    if (answer === 'taken') throw refusalError(`batch ${uuid}`, { why: 'batch' })
  }

  async change(uuid: string, change: BatchChange): Promise<BatchCounts & BatchStatus> {
    const { kind } = change
    const cancelled = kind === 'carry' ? change.cancelled : kind === 'cancel' ? change : undefined
    const request = cancelled ? [encodeText(cancelled.who), encodeText(cancelled.reason)] : [null, null]
    const carried =
      kind === 'carry'
        ? [change.total, change.generation, change.sealed, change.endedAt ?? null]
        : [null, null, null, null]
    const values = [encodeText(uuid), kind, ...request, ...carried]
    const answer = await this.#writer.call(`${kind} of batch ${uuid}`, 'change_batch', values, this.#writer.batches)
    if (answer === 'gone') throw unknownBatchError(uuid)
    return toCountedStatus(answer as ChangedBatch)
  }

  async find(uuid: string): Promise<StoredBatch | undefined> {
    const text = 'SELECT * FROM @.counted_batches(ARRAY(SELECT number FROM @.batches WHERE uuid = $2 AND board = $1))'
    const [row] = await this.#board.ask(`reading batch ${uuid}`, text, [encodeText(uuid)])
    return row && toStoredBatch(row)
  }

  async list({ limit }: { readonly limit: number }): Promise<readonly StoredBatch[]> {
    const what = 'listing batches'
    const newest = 'SELECT number FROM @.batches WHERE board = $1 ORDER BY number DESC LIMIT $2'
    const numbers = (await this.#board.ask(what, newest, [limit])).map(({ number }) => String(number))
    const found: StoredBatch[] = []
    for (let from = 0; from < numbers.length; from += BATCHES_PER_READ) {
      const text = 'SELECT * FROM @.counted_batches($2::bigint[]) WHERE $1::integer IS NOT NULL'
      const rows = await this.#board.ask(what, text, [numbers.slice(from, from + BATCHES_PER_READ)])
      found.push(...rows.map(toStoredBatch))
    }
    return found
  }

  async jobs(uuid: string): Promise<BatchJobs> {
    const text = `SELECT ARRAY(SELECT uuid FROM @.jobs WHERE batch = b.number ORDER BY uuid) AS open,
  ARRAY(SELECT job::text FROM @.batch_failures WHERE batch = b.number ORDER BY job) AS failed
FROM @.batches b WHERE uuid = $2 AND board = $1`
    const [row] = await this.#board.ask(`reading the jobs of batch ${uuid}`, text, [encodeText(uuid)])
    if (!row) throw unknownBatchError(uuid)
    return { open: toTexts(row['open']), failed: toTexts(row['failed']).map(jobId) }
  }

  watch(uuid: string): Promise<void> {
    return this.watches.add(uuid)
  }

  unwatch(uuid: string): Promise<void> {
    return this.watches.remove(uuid)
  }
}

function toStoredBatch(row: Row): StoredBatch {
  const [who, reason, endedAt] = [row['cancelled_by'], row['cancel_reason'], row['ended_at']]
  const status = toCountedStatus({
    generation: Number(row['generation']),
    sealed: row['sealed'] === true,
    endedAt: endedAt === null ? null : Number(endedAt),
    who: typeof who === 'string' ? who : null,
    reason: typeof reason === 'string' ? reason : null,
    ...{ total: Number(row['total']), open: Number(row['open']), failed: Number(row['failed']) },
  })
  return { uuid: decodeText(String(row['uuid'])), bytes: readBytes(row, 'definition') ?? new Uint8Array(), ...status }
}

function toCountedStatus(batch: ChangedBatch): BatchCounts & BatchStatus {
  const { generation, sealed, endedAt, who, reason, total, open, failed } = batch
  return {
    ...{ total, open, failed, done: total - open - failed, generation, sealed },
    ...(endedAt === null ? {} : { endedAt: Number(endedAt) }),
    ...(who === null ? {} : { cancelled: { who: decodeText(who), reason: decodeText(reason ?? '') } }),
  }
}

function toTexts(found: unknown): string[] {
  return Array.isArray(found) ? found.map(String) : []
}
