/** Changes of the board, and of single jobs. */
import type { JobStatus } from './sink.ts'

export interface BackendChanges {
  /**
   * Reports every change and every pause from now on, beginning with a gap, on every connection and in every session until
   * {@link unsubscribe}. The first request is sent before the call returns. Errors: NotConnected, AccessDenied: nothing is reported.
   */
  subscribe(): Promise<void>
  /** Ends what {@link subscribe} began. Resolves also without a connection. */
  unsubscribe(): Promise<void>
  /**
   * Returns the present status of each of these jobs, and reports to `followed` of the sink that it has changed from now on. For a job
   * that is followed already, it returns the status only. A gap means that changes may have been missed: the caller follows the jobs
   * again. Errors: NotConnected.
   */
  follow(ids: readonly string[]): Promise<JobStatus[]>
  /** Ends what {@link follow} began. The end of a job does so, too. Errors: NotConnected. */
  unfollow(ids: readonly string[]): Promise<void>
  /** Resolves when the sink has received every change that was committed before the call. */
  barrier(): Promise<void>
}
