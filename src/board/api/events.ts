/**
 * What a board tells. Every connected board hears of every change, whoever made it; of a job that came and went faster
 * than a board could read it, that board says nothing.
 */
import type { SessionState } from '../backend.ts'
import type { Job } from './job.ts'

/** Something happened to a job, on whatever board. */
export interface JobEvent {
  readonly job: Job
}

/** What `board.on` can listen to. */
export interface BoardEvents {
  posted: JobEvent
  claimed: JobEvent
  abandoned: JobEvent
  consumed: JobEvent
  trashed: JobEvent
  /**
   * No living conductor has known the flow for `unacceptedAfter`, and other jobs wait for what its jobs want: from now on they
   * wait no longer.
   */
  unaccepted: { readonly flow: string; readonly version: string | undefined; readonly job: Job }
  state: { readonly state: SessionState; readonly reason?: Error }
  /** Something failed in the background, or a listener threw. */
  error: { readonly error: Error }
}
