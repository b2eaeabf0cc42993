/**
 * A stopped owner is silent for twice its session's timeout, while its backend still holds the session's lock. A stopped
 * backend ends only after it continues. Until then its jobs cannot be claimed by others, because it may still own them.
 */
import { NotConnected } from '../../../core/errors.ts'

/** A stopped owner, as `stopped_owners` in `functions/sessions.ts` returns it. */
export interface StoppedOwner {
  readonly session: number
  readonly who: string
  readonly backend: number
  /** The time since its last heartbeat, in seconds. */
  readonly silent: number
  readonly jobs: number
}

/** Returns the error that names the process to end on the server, and the number of jobs that wait for it. */
export function stoppedOwnerError({ who, backend, silent, jobs }: StoppedOwner): NotConnected {
  return new NotConnected(
    `owner ${who} has been silent for ${Math.round(silent)} s, and its Postgres backend ${backend} does not end: ${jobs} ` +
      `${jobs === 1 ? 'job stays' : 'jobs stay'} claimed until it does; look at process ${backend} on the database's server ` +
      '(stopped, or waiting for a disk?), let it go on (kill -CONT) or restart Postgres',
  )
}
