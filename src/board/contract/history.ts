/** Jobs that have ended. */
import type { EndedJob } from '../model/ended-job.ts'

export interface BackendHistory {
  /** Returns the newest jobs of the history, newest first, at most `limit`. Errors: NotConnected. */
  newest(options: { readonly limit: number }): Promise<readonly EndedJob[]>
  /** Returns the newest record of each of these jobs in the history. Errors: NotConnected. */
  find(uuids: readonly string[]): Promise<readonly (EndedJob | undefined)[]>
}
