/** Limits, pauses, schedules and batches as plain data: an error is its text, of a store only the names are shown, and the rest may be redacted. */
import type { Batch, BatchView, BoardPause, LimitView, QueuePause, ScheduleView } from '../board/index.ts'
import { isNameOfQueue } from '../core/job-names.ts'
import type { Redactor } from '../core/redaction.ts'

export type ShownLimit = Omit<LimitView, 'error'> & { readonly error?: string }

export function limitView({ error, ...limit }: LimitView): ShownLimit {
  return { ...limit, ...(error ? { error: error.message } : {}) }
}

/** The pause of one queue. */
export interface QueuePauseView extends BoardPause {
  /** The pattern that pauses it, such as `tenant-*`; absent if it was paused by its name. */
  readonly pattern?: string
}

/** Returns the pause of a queue; undefined if it is not paused. @param pauses all pauses of the board, as `board.pausedQueues` returns them */
export function pauseOfQueue(queue: string, pauses: readonly QueuePause[]): QueuePauseView | undefined {
  const found = pauses.find((each) => each.queue === queue) ?? pauses.find((each) => isNameOfQueue(each.queue, queue))
  if (!found) return undefined
  const { queue: named, ...pause } = found
  return named === queue ? pause : { ...pause, pattern: named }
}

/** Returns the queues that are paused by their names. */
export function queuesPausedByName(pauses: readonly QueuePause[]): string[] {
  return pauses.flatMap(({ queue }) => (queue.endsWith('*') ? [] : [queue]))
}

export interface ShownSchedule extends Omit<ScheduleView, 'store' | 'error'> {
  /** The names of the inputs of its jobs. */
  readonly inputs?: readonly string[]
  readonly error?: string
}

/** Returns a schedule with all that is known of it. Decodes its store. */
export function scheduleView({ store, error, ...schedule }: ScheduleView): ShownSchedule {
  return { ...schedule, ...(store ? { inputs: Object.keys(store) } : {}), ...(error ? { error: error.message } : {}) }
}

/** The time after which a due schedule counts as not fired. Conductors fire within a second; after the death of a conductor, within a session. */
const LATE_MS = 60_000

export function isLate({ lateMs = 0 }: Pick<ScheduleView, 'lateMs'>): boolean {
  return lateMs > LATE_MS
}

/** Describes by whom a limit or a schedule is declared: `billing, version 3`. */
export function describeDeclaration({ declared }: Pick<LimitView | ScheduleView, 'declared'>): string | undefined {
  return declared && `${declared.owner}, version ${declared.version}`
}

/** Reads the progress of a batch, and returns the batch as it is listed. */
export async function readBatchView(batch: Batch): Promise<BatchView> {
  const { uuid, name, meta, who, createdAt } = batch
  return { ...{ uuid, name, meta, who, createdAt }, ...(await batch.progress()) }
}

/** Returns the batch with its secret values hidden. */
export function batchView(batch: BatchView, redaction: Redactor): BatchView {
  const { meta, reason } = batch
  return {
    ...batch,
    meta: Object(redaction.value(meta)),
    reason: reason === undefined ? undefined : redaction.text(reason),
  }
}
