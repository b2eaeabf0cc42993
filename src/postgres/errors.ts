/** What goes wrong when talking to Postgres, and whether another try may go well. */
import { JobboardError } from '../core/errors.ts'

export class PostgresError extends JobboardError {
  static override readonly code = 'JOBBOARD_POSTGRES'
  /** By what it means, and not by its class. */
  override readonly retryable: boolean
  /** The server's five letters for it; undefined where no server has answered. */
  readonly sqlState: string | undefined
  /**
   * `refused`: the server has said no, and nothing was changed. `unknown`: the connection went, and the statement may
   * have been done, or may still be.
   */
  readonly outcome: 'refused' | 'unknown'
  /**
   * `request`: what was asked cannot be done, whoever asks and whenever. `place`: everything else, from a lost connection to
   * a password that was changed or a right that was taken away.
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

/** The server says so on its way out: whether the statement was done before is not known. */
const SHUTDOWN_STATES = new Set('08 57P01 57P02 57P05'.split(' '))

/** Data that no column or index takes (22, 23, 54), statements that make no sense (42), memory nobody has (XX000). */
const REQUEST_ERROR_STATES = new Set('22 23 42 54 XX000'.split(' '))
/** Of these, what depends on who asks and where: a right (42501), a table that is gone (42P01). */
const LOCATION_ERROR_STATES = new Set('42501 42P01'.split(' '))

/** TLS that is not what was asked for stays so until somebody sees to it. */
const TLS_ERROR_PATTERN = /certificate|ssl|tls/i

/** What this driver throws, as an error that says what it means. Messages name no values: those may be secrets. */
export function toPostgresError(thrown: unknown): PostgresError {
  if (thrown instanceof PostgresError) return thrown
  const { message, code }: { message: string; code?: unknown } =
    thrown instanceof Error ? thrown : { message: String(thrown) }
  const sqlState = typeof code === 'string' && /^[0-9][0-9A-Z]{4}$|^[FHPX][0-9A-Z]{4}$/.test(code) ? code : undefined
  const isIn = (states: ReadonlySet<string>) =>
    sqlState !== undefined && (states.has(sqlState) || states.has(sqlState.slice(0, 2)))
  const isRequest = thrown instanceof TypeError || (isIn(REQUEST_ERROR_STATES) && !isIn(LOCATION_ERROR_STATES))
  // No SQLSTATE: a socket's error, a time that ran out, a driver that says "terminated".
  const among = (states: ReadonlySet<string>) => sqlState === undefined || isIn(states)
  return new PostgresError(message || String(code ?? 'the connection failed'), {
    cause: thrown,
    sqlState,
    retryable:
      !isRequest &&
      among(TRANSIENT_STATES) &&
      !(sqlState === undefined && TLS_ERROR_PATTERN.test(`${code} ${message}`)),
    fault: isRequest ? 'request' : 'place',
    outcome: among(SHUTDOWN_STATES) ? 'unknown' : 'refused',
  })
}
