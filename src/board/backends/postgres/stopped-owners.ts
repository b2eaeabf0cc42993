/**
 * Owners that are silent for twice their session's timeout, and whose backend still holds their session's lock: a backend that
 * is stopped ends only when it goes on. Their jobs cannot be given to others, since they may still be theirs.
 */
import { NotConnected } from '../../../core/errors.ts'

/** What `stopped_owners` in `functions/sessions.ts` returns of each. */
export interface StoppedOwner {
  readonly session: number
  readonly who: string
  readonly backend: number
  /** In seconds. */
  readonly silent: number
  readonly jobs: number
}

/** The error that says which process on the server has to be ended, and what waits for it. */
export function stoppedOwnerError({ who, backend, silent, jobs }: StoppedOwner): NotConnected {
  return new NotConnected(
    `owner ${who} has been silent for ${Math.round(silent)} s, and its Postgres backend ${backend} does not end: ${jobs} ` +
      `${jobs === 1 ? 'job stays' : 'jobs stay'} claimed until it does; look at process ${backend} on the database's server ` +
      '(stopped, or waiting for a disk?), let it go on (kill -CONT) or restart Postgres',
  )
}
