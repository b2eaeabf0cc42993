/** What Postgres says, in the words of boards. */
import { AccessDenied, JobboardError, NotConnected, NotFound } from '../../../core/errors.ts'
import { toPostgresError } from '../../../postgres/index.ts'

/** Who this is, or what it may, is not enough: invalid authorization (28), insufficient privilege (42501). */
const ACCESS_DENIED_STATES = /^28|^42501$/
/** A database that is not there. */
const NO_DATABASE = '3D000'

/**
 * Of what was certainly not done. What may pass is NotConnected: nothing was changed, and another try may go well.
 *
 * @param what was asked for
 */
export function toBoardError(what: string, thrown: unknown): Error {
  if (thrown instanceof JobboardError && thrown.code !== 'JOBBOARD_POSTGRES') return thrown
  const error = toPostgresError(thrown)
  const { message, sqlState = '', retryable } = error
  const text = `${what}: ${message}${sqlState === '' ? '' : ` (SQLSTATE ${sqlState})`}`
  if (ACCESS_DENIED_STATES.test(sqlState))
    return new AccessDenied(`${text}; correct its credentials, or grant it the rights`, { cause: error })
  if (sqlState === NO_DATABASE) return new NotFound(`${text}; make the database first`, { cause: error })
  return retryable || sqlState === '' ? new NotConnected(text, { cause: error }) : error
}

/**
 * What every connection that changes something is told first, whatever the database, or the user, has as its default.
 *
 * - Functions count on each of their statements seeing what was committed before it.
 * - A commit that was answered outlasts a crash of the server: sessions go on after one, and a claim that the server had
 *   forgotten would have two owners. Settings that are stricter than `local` stay as they are.
 */
export const SET_READ_COMMITTED = `SELECT set_config('default_transaction_isolation', 'read committed', false),
  CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'local', false) END`

/** What only looks, or can be done again without harm. */
export async function translateErrors<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw toBoardError(what, error)
  }
}
