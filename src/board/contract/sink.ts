/** The reports of a backend to its board. */
import type { ClaimOrderKey } from '../model/claim-order.ts'
import type { RecordName } from '../model/record.ts'

/** The receiver of what a backend reports. Called synchronously; never throws. */
export interface BackendSink {
  changes(batch: readonly BoardChange[]): void
  /**
   * Reports that followed jobs have changed. The changes are only hints, because they may be repeated, and any client of some servers can
   * send them: the caller follows the jobs again, which returns their status. `trashed` also says how a job ended that is gone by then,
   * because its trash entry was restored or purged at once.
   */
  followed(batch: readonly BoardChange[]): void
  /**
   * Reports that these records have changed, or may have; without names, that any record of a watched kind may have. The changes are only
   * hints: the receiver reads the records.
   */
  records(names?: readonly RecordName[]): void
  /**
   * Reports that a watched batch has changed, or may have; without a uuid, that each of them may have. A hint: the receiver reads the
   * batch.
   */
  batchChanged(uuid?: string): void
  /** Reports that changes may have been missed: an open view lists the board again. */
  gap(): void
  /** Reports whether the board is paused: once it is known, and, while subscribed, whenever it changes. */
  paused(paused: boolean): void
  session(event: BoardSessionEvent): void
  /** Reports the number of jobs on the board after the last reported change; a backend with sections reports it at each gap. */
  jobCount(jobs: number): void
  /**
   * Reports the jobs that a transaction of this backend object has cancelled because another job ended. Called before the answer to the
   * transaction. Some of the jobs may have run before.
   */
  doomed(ids: readonly string[]): void
  /** Returns whether a job with this uuid may be on the board; false only where all reports so far exclude it. */
  mayExist(uuid: string): boolean
  /** Reports a fault with which the board still works, or the end of such a fault. */
  health(event: HealthEvent): void
  /** Reports an error of the background work. */
  error(error: Error): void
}

/**
 * An event about the health of a backend. `notificationMissed`: changes were read that no notification had announced
 * (`backends/notification-canary.ts`). `notificationsArrive`: notifications arrive again. `backendStopped`: a server process was asked to
 * end, and did not. `emptied`: the servers have lost the data of the board since it was opened, and it was created anew.
 */
export type HealthEvent = 'notificationMissed' | 'notificationsArrive' | 'backendStopped' | 'emptied'

/** The status of a job: on the board, in the trash, or neither. */
export type JobStatus =
  | 'gone'
  | 'trashed'
  | { readonly claimed: boolean; readonly cancelled: boolean; readonly revision: number }

export type BoardChange = {
  /**
   * `ready`: all dependencies of the job are met. `holds`: the job, whose claim was reported before, holds resources or slots; reported only
   * where there are sections.
   */
  readonly kind: 'posted' | 'updated' | 'ready' | 'gone' | 'claimed' | 'holds' | 'released' | 'trashed' | 'cancelled'
  readonly id: string
  /** The queue key of a posted or ready job, or of one whose posting was replaced, where there are sections. */
  readonly at?: QueueKey
  /** Set where the change may have been reported before; it is not counted twice. */
  readonly again?: true
}

/** The place of a job in claim order and its due time: all that decides whether a view has to hold the job. */
export interface QueueKey extends ClaimOrderKey {
  /** The queue; absent for the default one. */
  readonly queue?: string | undefined
  /**
   * The due time in milliseconds on the backend's clock; 0 for at once, as for a job with a cancel request; infinite for a job that waits
   * for others.
   */
  readonly dueAt: number
}

/**
 * The state of a session. `connected`: operations succeed. `disconnected`: no operation succeeds, claims are still held. `lost`: the
 * session has ended, and with it every claim that it held; a new session with another id follows. `closed`: the backend is closed.
 */
export type SessionState = 'connected' | 'disconnected' | 'lost' | 'closed'

export interface BoardSessionEvent {
  readonly state: SessionState
  /** The id of the session, unique among the sessions of this backend object. It is not secret and can be logged. */
  readonly session: string
  readonly reason?: Error
}
