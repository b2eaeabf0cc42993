/** Errors of Postgres, and whether another attempt may succeed. */
import { isError, JobboardError } from '../core/errors.ts'

export class PostgresError extends JobboardError {
  static override readonly code = 'JOBBOARD_POSTGRES'
  /** Whether the same call may succeed later; it depends on the SQLSTATE, not on the class. */
  override readonly retryable: boolean
  /** The SQLSTATE, five letters; undefined if no server has answered. */
  readonly sqlState: string | undefined
  /**
   * `refused`: the server has refused, and nothing was changed. `unknown`: the connection was lost, and the statement may
   * have been done, or may still be running.
   */
  readonly outcome: 'refused' | 'unknown'
  /**
   * `request`: the statement can never succeed, for any user at any time. `place`: everything else, from a lost connection to a
   * changed password or a revoked right.
   */
  readonly fault: 'request' | 'place'

  constructor(
    message: string,
    options: ErrorOptions & Pick<PostgresError, 'retryable' | 'sqlState' | 'outcome' | 'fault'>,
  ) {
    super(message, options)
    this.retryable = options.retryable
    this.sqlState = options.sqlState
    this.outcome = options.outcome
    this.fault = options.fault
  }
}

/**
 * Passing states, by SQLSTATE or its first two letters: lost connections (08), transactions that stood in each other's
 * way (40), no room or no connection left (53), an object in use (55006, 55P03), a server that stops, starts, has ended
 * the connection or the statement (57), trouble of the machine (58), a server that only reads, after a fail-over (25006).
 */
const TRANSIENT_STATES = new Set('08 40 53 55006 55P03 57 58 25006'.split(' '))

/** The states of a server that shuts down: it is unknown whether the statement was done before. */
const SHUTDOWN_STATES = new Set('08 57P01 57P02 57P05'.split(' '))

/** Data that no column or index takes (22, 23, 54), statements that make no sense (42), too much memory (XX000). */
const REQUEST_ERROR_STATES = new Set('22 23 42 54 XX000'.split(' '))
/** The states among these that depend on the user and the place: a right (42501), a missing table (42P01) or function (42883). */
const LOCATION_ERROR_STATES = new Set('42501 42P01 42883'.split(' '))

/** TLS errors: they persist until the configuration is corrected. */
const TLS_ERROR_PATTERN = /certificate|ssl|tls/i

/** The refusal of a pooler that passes on no settings: it persists until they are left out. */
const SETTINGS_REFUSED = /unsupported startup parameter/i

/** Converts an error of the driver to a PostgresError. Messages name no values, because values may be secrets. */
export function toPostgresError(thrown: unknown): PostgresError {
  if (thrown instanceof PostgresError) return thrown
  const { message, code }: { message: string; code?: unknown } = isError(thrown) ? thrown : { message: String(thrown) }
  const sqlState = typeof code === 'string' && /^[0-9][0-9A-Z]{4}$|^[FHPX][0-9A-Z]{4}$/.test(code) ? code : undefined
  const isIn = (states: ReadonlySet<string>) =>
    sqlState !== undefined && (states.has(sqlState) || states.has(sqlState.slice(0, 2)))
  const isRequest =
    (isError(thrown) && thrown.name === 'TypeError') || (isIn(REQUEST_ERROR_STATES) && !isIn(LOCATION_ERROR_STATES))
  // No SQLSTATE: a socket's error, a time that ran out, a driver that says "terminated".
  const among = (states: ReadonlySet<string>) => sqlState === undefined || isIn(states)
  const isSettingsRefused = SETTINGS_REFUSED.test(message)
  const advice = isSettingsRefused ? '; a pooler refuses settings: add statementTimeout=0s to the URI' : ''
  return new PostgresError(`${message || String(code ?? 'the connection failed')}${advice}`, {
    cause: thrown,
    sqlState,
    retryable:
      !isRequest &&
      !isSettingsRefused &&
      among(TRANSIENT_STATES) &&
      !(sqlState === undefined && TLS_ERROR_PATTERN.test(`${code} ${message}`)),
    fault: isRequest ? 'request' : 'place',
    outcome: among(SHUTDOWN_STATES) ? 'unknown' : 'refused',
  })
}
