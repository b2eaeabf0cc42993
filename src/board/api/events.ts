/**
 * The events of a board. Every connected board emits every change, also those of other boards. A board emits nothing for a job
 * that was posted and ended before the board could read it.
 */
import type { SessionState } from '../backend.ts'
import type { Job } from './job.ts'

/** An event of a job, caused by any board object. */
export interface JobEvent {
  readonly job: Job
}

/** The events that `board.on` accepts. */
export interface BoardEvents {
  posted: JobEvent
  claimed: JobEvent
  abandoned: JobEvent
  consumed: JobEvent
  trashed: JobEvent
  /**
   * A flow that no living conductor has known for `unacceptedAfter`, while other jobs wait for the resources of its jobs: from
   * now on they no longer wait for these jobs.
   */
  unaccepted: { readonly flow: string; readonly version: string | undefined; readonly job: Job }
  state: { readonly state: SessionState; readonly reason?: Error }
  /** An error of background work, or one that a listener threw. */
  error: { readonly error: Error }
}
