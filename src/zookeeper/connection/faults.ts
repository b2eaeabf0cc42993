/** Reasons why connections end, in kinds that are counted. */
import { IncompatibleVersion, isError, JobboardError, NotConnected } from '../../core/errors.ts'
import { AuthFailed, SessionExpired } from '../protocol/errors.ts'
import { MalformedBytes } from '../protocol/jute.ts'

/**
 * Kind of a fault.
 *
 * - `unreachable`: no name, no route, or no process listens
 * - `tls`: a certificate is not trusted, or one side speaks TLS and the other does not
 * - `hung-up`: the server accepted the connection and closed it without an answer
 * - `late`: no answer to the connect request in time
 * - `closed`, `reset`: an attached connection ended, by its server or by the network
 * - `silent`: nothing was received on an attached connection for too long
 * - `malformed`: the received bytes cannot be decoded
 * - `read-only`: the server has lost its quorum and cannot serve this client
 * - `refused`: the server granted no session, or refused the handshake
 * - `auth`: an identity was not accepted, or could not be sent to the server
 * - `expired`: the session was over
 * - `moved`: this client left for a server that suits it better
 * - `defect`: a defect of this client
 */
export type FaultKind =
  | 'unreachable'
  | 'tls'
  | 'hung-up'
  | 'late'
  | 'closed'
  | 'reset'
  | 'silent'
  | 'malformed'
  | 'read-only'
  | 'refused'
  | 'auth'
  | 'expired'
  | 'moved'
  | 'defect'

/** The end of one connection, with its kind. */
export class ConnectionFault extends Error {
  override readonly name = 'ConnectionFault'
  readonly kind: FaultKind

  constructor(kind: FaultKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

/** Several servers in a row close the connection without an answer. The message lists possible reasons. */
export class HungUp extends JobboardError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_HUNG_UP'
  static override readonly retryable = true
}

/**
 * No server speaks TLS with this client, or none without. The message has the last server's error and what to change.
 */
export class TlsFailed extends NotConnected {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_TLS_FAILED'
  static override readonly retryable = false
}

/** Faults that no other server would avoid. */
export type FinalFault = IncompatibleVersion | AuthFailed | TlsFailed

export function isFinal(error: unknown): error is FinalFault {
  return error instanceof IncompatibleVersion || error instanceof AuthFailed || error instanceof TlsFailed
}

export function toFaultKind(error: unknown): FaultKind {
  if (error instanceof ConnectionFault) return error.kind
  if (error instanceof MalformedBytes) return 'malformed'
  if (error instanceof AuthFailed) return 'auth'
  if (error instanceof SessionExpired) return 'expired'
  if (error instanceof NotConnected) return error.cause === undefined ? 'refused' : toFaultKind(error.cause)
  if (error instanceof JobboardError) return 'refused'
  // Errors of the operating system have a code: ENOTFOUND, ECONNREFUSED, …
  return isError(error) && 'code' in error ? 'unreachable' : 'defect'
}

/** Numbers of equal faults in a row that make a pattern. */
const MIN_ROUNDS = 2
const MIN_FAILURES = 3

const isPattern = (times: number, servers: number) => times >= Math.max(MIN_FAILURES, MIN_ROUNDS * servers)

/** Detects that no server speaks TLS with this client: no other attempt will succeed, unless one ever did. */
export class TlsFailureDetector {
  #inARow = 0
  #served = false

  served(): void {
    this.#served = true
  }

  /** Returns the same error, or the final one. */
  classify(error: Error, options: { readonly servers: number }): Error {
    this.#inARow = toFaultKind(error) === 'tls' ? this.#inARow + 1 : 0
    if (this.#served || !isPattern(this.#inARow, options.servers)) return error
    return new TlsFailed(error.message, { cause: error.cause ?? error })
  }
}

/** Detects servers that close connections without a reason. */
export class HangUpDetector {
  #inARow = 0

  /** Records that a connection was attached. */
  served(): void {
    this.#inARow = 0
  }

  /**
   * Returns the same error, or an error that explains it better.
   *
   * @param options.servers the number of servers
   * @param options.resuming whether the session to be continued has seen transactions
   */
  classify(error: Error, options: { readonly servers: number; readonly resuming: boolean }): Error {
    this.#inARow = toFaultKind(error) === 'hung-up' ? this.#inARow + 1 : 0
    if (!isPattern(this.#inARow, options.servers)) return error
    const reasons = [
      ...(options.resuming
        ? ['they do not know the newest transaction of this session (was their data lost or restored from a backup?)']
        : []),
      'there are too many connections from this address (maxClientCnxns)',
      'they have no quorum',
      'they expect TLS on this port, or do not',
    ]
    return new HungUp(
      `${error.message} (${this.#inARow} times in a row: servers do so when ${reasons.join('; or ')})`,
      { cause: error.cause ?? error },
    )
  }
}
