/** Creates, reads and changes batches of jobs. */
import type { BackendBatches, BatchChange, BatchJobs, NewBatch } from '../../contract/index.ts'
import { refusalError } from '../../contract/refusals.ts'
import { rank } from '../../model/claim-order.ts'
import {
  type BatchCounts,
  type BatchDefinition,
  type BatchStatus,
  decodeBatch,
  type StoredBatch,
} from '../../model/job-batch.ts'
import { unknownBatchError } from '../../model/post-batch.ts'
import { DEFAULT_QUEUE } from '../../model/queues.ts'
import { cutCallback } from '../batch-callback.ts'
import type { RedisBoard } from './commit/board.ts'
import { type ScriptStep, SMALL_STEP_BYTES } from './commit/steps.ts'
import { decodeCancellation, decodeText, encodeCancellation } from './store/encodings.ts'
import { toList, toTexts } from './store/replies.ts'

/** The number of batches in one answer: each may have a definition of 256 KiB. */
const BATCH_PAGE_SIZE = 100
const JOBS_PAGE_SIZE = 5_000
const COLON = 58

export class RedisBatches implements BackendBatches {
  readonly #board: RedisBoard

  constructor(board: RedisBoard) {
    this.#board = board
  }

  async create(batch: NewBatch): Promise<void> {
    const { done } = await this.#board.submit(createStep(batch))
    if (!done) throw refusalError(`batch ${batch.uuid}`, { why: 'batch' })
  }

  async change(uuid: string, change: BatchChange): Promise<BatchCounts & BatchStatus> {
    const { done, details } = await this.#board.submit(changeStep(uuid, change))
    if (!done) throw unknownBatchError(uuid)
    const [generation, sealed, endedAt, open, failed, total, who, reason] = details
    return {
      ...toCounts({ open: Number(open), failed: Number(failed), total: Number(total) }),
      ...{ generation: Number(generation), sealed: sealed === true },
      ...(Number(endedAt) === 0 ? {} : { endedAt: Number(endedAt) }),
      ...(typeof who === 'string' ? { cancelled: { who, reason: String(reason) } } : {}),
    }
  }

  async find(uuid: string): Promise<StoredBatch | undefined> {
    return (await this.#read([uuid]))[0]
  }

  async list({ limit }: { readonly limit: number }): Promise<readonly StoredBatch[]> {
    const newest = await this.#board.command('zrevrange', 'batch-order', '0', String(limit - 1))
    const uuids = toTexts(newest)
    const found: StoredBatch[] = []
    for (let from = 0; from < uuids.length; from += BATCH_PAGE_SIZE)
      for (const batch of await this.#read(uuids.slice(from, from + BATCH_PAGE_SIZE))) if (batch) found.push(batch)
    return found
  }

  async jobs(uuid: string): Promise<BatchJobs> {
    if (!(await this.find(uuid))) throw unknownBatchError(uuid)
    return { open: await this.#names(`${uuid}:o`), failed: await this.#names(`${uuid}:f`) }
  }

  watch(uuid: string): Promise<void> {
    return this.#board.open.session.watch('batches', uuid)
  }

  unwatch(uuid: string): Promise<void> {
    return this.#board.open.session.unwatch('batches', uuid)
  }

  /** Returns the batches; undefined for a batch that is not kept. */
  async #read(uuids: readonly string[]): Promise<(StoredBatch | undefined)[]> {
    const values = toList(
      await this.#board.command('hmget', 'batches', ...uuids.flatMap((uuid) => [uuid, `${uuid}:state`])),
    )
    return uuids.map((uuid, index) => parseBatch(uuid, values[2 * index], values[2 * index + 1]))
  }

  /** Returns the names of the jobs whose entries begin with the prefix and a colon: the part after the colon. */
  async #names(prefix: string): Promise<string[]> {
    const names: string[] = []
    for (let after = `[${prefix}:`; ; ) {
      const range = [after, `(${prefix};`, 'LIMIT', '0', String(JOBS_PAGE_SIZE)]
      const page = toTexts(await this.#board.command('zrangebylex', 'batch-jobs', ...range))
      for (const name of page) names.push(name.slice(prefix.length + 1))
      if (page.length < JOBS_PAGE_SIZE) return names
      after = `(${page.at(-1)}`
    }
  }
}

/** @throws PayloadTooLarge for a callback that could not be posted */
function createStep({ uuid, bytes }: NewBatch): ScriptStep {
  const definition = decodeBatch(uuid, bytes)
  const [done, failed] = [encodeCallback(definition, 'done'), encodeCallback(definition, 'failed')]
  return {
    arguments: ['createBatch', uuid, bytes, done, failed],
    what: `creation of batch ${uuid} (${definition.name})`,
    bytes: SMALL_STEP_BYTES + bytes.length + (done?.length ?? 0) + (failed?.length ?? 0),
    grows: true,
  }
}

function changeStep(uuid: string, change: BatchChange): ScriptStep {
  const { kind } = change
  const cancelled = kind === 'carry' ? change.cancelled : kind === 'cancel' ? change : undefined
  const request = cancelled ? encodeCancellation(cancelled) : null
  const carried = kind === 'carry' ? [change.total, change.generation, change.sealed, change.endedAt ?? 0] : []
  return {
    arguments: ['changeBatch', uuid, kind, request, ...carried],
    what: `${kind} of batch ${uuid}`,
    bytes: SMALL_STEP_BYTES + (request?.length ?? 0),
  }
}

/** Encodes a callback for the script, which cannot decode a posting: see `scripts/shared/batches.lua`. */
function encodeCallback(definition: BatchDefinition, kind: 'done' | 'failed'): Uint8Array | null {
  const callback = cutCallback(definition, kind)
  if (!callback) return null
  const { priority, delay = '', queue = DEFAULT_QUEUE } = callback.posting
  // As hexadecimal digits: the name may have a colon.
  const inQueue = queue === DEFAULT_QUEUE ? '' : `;${Buffer.from(queue).toString('hex')}`
  return Buffer.concat([Buffer.from(`${rank(priority)}:${delay}${inQueue}:${callback.gaps}:`), callback.bytes])
}

/** Parses the definition and the state of a batch, as `putBatch` writes it; undefined for anything else. */
function parseBatch(uuid: string, bytes: unknown, state: unknown): StoredBatch | undefined {
  if (!(bytes instanceof Uint8Array) || !(state instanceof Uint8Array)) return undefined
  const parts: number[] = []
  let from = 0
  for (let at = state.indexOf(COLON); at >= 0 && parts.length < 6; at = state.indexOf(COLON, from)) {
    parts.push(Number(decodeText(state.subarray(from, at))))
    from = at + 1
  }
  const [generation = 0, sealed, endedAt = 0, open = 0, failed = 0, total = 0] = parts
  if (parts.length < 6 || !parts.every(Number.isSafeInteger)) return undefined
  return {
    ...{ uuid, bytes, generation, sealed: sealed === 1 },
    ...toCounts({ open, failed, total }),
    ...(endedAt === 0 ? {} : { endedAt }),
    ...(from === state.length ? {} : { cancelled: decodeCancellation(state.subarray(from)) }),
  }
}

function toCounts({ open, failed, total }: Omit<BatchCounts, 'done'>): BatchCounts {
  return { total, failed, open, done: total - failed - open }
}
