/** Translates errors of Postgres into errors of boards. */
import { AccessDenied, JobboardError, NotConnected, NotFound } from '../../../../core/errors.ts'
import { toPostgresError } from '../../../../postgres/index.ts'

/** SQLSTATEs of denied access: invalid authorization (28), insufficient privilege (42501). */
const ACCESS_DENIED_STATES = /^28|^42501$/
/** SQLSTATE of a database that does not exist. */
const NO_DATABASE = '3D000'

/**
 * Returns the error of a board for an operation that was certainly not done. A temporary error becomes NotConnected: nothing
 * was changed, and a retry may succeed.
 *
 * @param what names the operation
 */
export function toBoardError(what: string, thrown: unknown): Error {
  if (thrown instanceof JobboardError && thrown.code !== 'JOBBOARD_POSTGRES') return thrown
  const error = toPostgresError(thrown)
  const { message, sqlState = '', retryable } = error
  const text = `${what}: ${message}${sqlState === '' ? '' : ` (SQLSTATE ${sqlState})`}`
  if (ACCESS_DENIED_STATES.test(sqlState))
    return new AccessDenied(`${text}; correct its credentials, or grant it the rights`, { cause: error })
  if (sqlState === NO_DATABASE) return new NotFound(`${text}; create the database first`, { cause: error })
  return retryable || sqlState === '' ? new NotConnected(text, { cause: error }) : error
}

/**
 * Settings that every writing connection makes first, independent of the defaults of the database and the user.
 *
 * - Functions rely on the isolation level: each of their statements sees what was committed before it.
 * - An acknowledged commit must survive a crash of the server. Sessions continue after a crash, so a claim that the server
 *   had lost would have two owners. Settings that are stricter than `local` are kept.
 */
export const SET_READ_COMMITTED = `SELECT set_config('default_transaction_isolation', 'read committed', false),
  CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'local', false) END,
  pg_backend_pid() AS backend, (SELECT backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()) AS start`

/** Translates the errors of an operation that only reads, or that can be repeated without harm. */
export async function translateErrors<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw toBoardError(what, error)
  }
}
