/** The rows of a memory board: the jobs that are on it, which the steps of several roles read and write, and the jobs in its trash. */
import { defined } from '../../../../core/options.ts'
import type { AlarmClock } from '../../../../core/time.ts'
import type { Cancellation, PostRequest, TrashReason } from '../../../contract/index.ts'
import { refusalError } from '../../../contract/refusals.ts'
import type { Posting } from '../../../model/posting/posting.ts'
import { encodePosting, MAX_POSTING_BYTES } from '../../../model/posting/posting-codec.ts'

export const ENCODING = 'msgpack'

/** The fields of a posting that the board needs itself. */
export type KeptPosting = Pick<Posting, 'uuid' | 'key' | 'resources' | 'batch'>
/** The fields of a posting by which alarms are set. */
export type AlarmedPosting = Partial<Pick<Posting, 'delay' | 'expiresAfter' | 'runs'>>

export interface MemoryJob {
  readonly id: string
  bytes: Uint8Array
  posting: KeptPosting
  revision: number
  readonly order: bigint
  readonly postedAt: number
  writtenAt: number
  /** The claim of the job. */
  held: { readonly who: string; readonly session: string } | undefined
  cancellation: Cancellation | undefined
  /** The alarms that wake the boards when the delay is over, and when the job expires. */
  readonly alarms: Disposable[]
}

/** An entry of the trash, as one transaction writes it. */
export type MemoryTrashEntry = TrashReason & {
  readonly uuid: string
  readonly bytes: Uint8Array
  readonly who: string
  readonly at: Date
}

/** The entries of the trash by their ids, oldest first. */
export type TrashRows = Map<string, MemoryTrashEntry>

export class JobRows {
  readonly #clock: AlarmClock
  readonly #alarms: AlarmClock | undefined
  readonly #onAlarm: () => void
  readonly #rows = new Map<string, MemoryJob>()
  #sequence = 0

  /**
   * @param options.alarms the clock on which the alarms of jobs are set. Boards set timers of the process themselves; of another clock they
   *   know only the current time.
   */
  constructor(options: {
    readonly clock: AlarmClock
    readonly alarms: AlarmClock | undefined
    readonly onAlarm: () => void
  }) {
    this.#clock = options.clock
    this.#alarms = options.alarms
    this.#onAlarm = options.onAlarm
  }

  /** Returns the jobs in the order of their posts. */
  all(): Iterable<MemoryJob> {
    return this.#rows.values()
  }

  find(id: string): MemoryJob | undefined {
    return this.#rows.get(id)
  }

  /** @throws NotFound; Unclaimable for a job that is claimed, or is at another revision */
  requireUnclaimed(id: string, revision: number): MemoryJob {
    const row = this.find(id)
    if (!row) throw refusalError(id, { why: 'gone' })
    if (row.held || row.revision !== revision) throw refusalError(id, { why: 'changed' })
    return row
  }

  add(posting: KeptPosting, bytes: Uint8Array): MemoryJob {
    const now = this.#clock.now()
    // Field by field: with spreads, making the row took a fifth of the time of a post.
    const row: MemoryJob = {
      id: `job${String(this.#sequence).padStart(10, '0')}`,
      bytes,
      posting: toKept(posting),
      revision: 0,
      order: BigInt(this.#sequence),
      postedAt: now,
      writtenAt: now,
      held: undefined,
      cancellation: undefined,
      alarms: [],
    }
    this.#sequence += 1
    this.#rows.set(row.id, row)
    return row
  }

  write(row: MemoryJob, bytes: Uint8Array): void {
    row.bytes = bytes
    row.revision += 1
    row.writtenAt = this.#clock.now()
    clearAlarms(row)
  }

  delete(row: MemoryJob): void {
    clearAlarms(row)
    this.#rows.delete(row.id)
  }

  /** Sets the alarms for a job that is delayed or expires. */
  setAlarms({ alarms, postedAt }: MemoryJob, { delay, expiresAfter, runs = 0 }: AlarmedPosting): void {
    const clock = this.#alarms
    if (!clock) return
    const ring = this.#onAlarm
    if (delay !== undefined) alarms.push(clock.alarm(delay, { kind: 'delay', ring }))
    if (expiresAfter === undefined || runs > 0) return
    const left = Math.max(0, postedAt + expiresAfter - clock.now())
    alarms.push(clock.alarm(left, { kind: 'expiry', ring }))
  }
}

function clearAlarms({ alarms }: MemoryJob): void {
  for (const alarm of alarms.splice(0)) alarm[Symbol.dispose]()
}

export function toKept({ uuid, key, resources, batch }: KeptPosting): KeptPosting {
  return { uuid, ...defined({ key, resources, batch }) }
}

/** A posting with its bytes: it is encoded before its step begins. */
export interface EncodedPost {
  readonly request: PostRequest
  readonly bytes: Uint8Array
}

/** @throws PayloadTooLarge, InvalidArgument */
export function encodePost(request: PostRequest): EncodedPost {
  return { request, bytes: encodeWithinLimit(request.posting) }
}

/** Encodes a posting of a job that is posted or replaced. @throws PayloadTooLarge, InvalidArgument */
export function encodeWithinLimit(posting: Posting): Uint8Array {
  return encodePosting(posting, { encoding: ENCODING, limit: MAX_POSTING_BYTES })
}

/** Encodes a posting that may have grown: attempts and a failure are added to it later. @throws InvalidArgument */
export function encodeUnlimited(posting: Posting): Uint8Array {
  return encodePosting(posting, { encoding: ENCODING, limit: Number.POSITIVE_INFINITY })
}
