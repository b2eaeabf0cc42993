/** Why connections end, in kinds that can be counted and told apart. */
import { IncompatibleVersion, JobboardError, NotConnected } from '../../core/errors.ts'
import { AuthFailed, SessionExpired } from '../protocol/errors.ts'
import { MalformedBytes } from '../protocol/jute.ts'

/**
 * - `unreachable`: no name, no route, or nobody listens
 * - `tls`: a certificate is not trusted, or one side speaks TLS and the other does not
 * - `hung-up`: the server took the connection and closed it without a word
 * - `late`: no answer to the connect request in time
 * - `closed`, `reset`: an attached connection ended, by its server or by the network
 * - `silent`: nothing was heard on an attached connection for too long
 * - `malformed`: what came makes no sense
 * - `read-only`: the server has lost its quorum and cannot serve this client
 * - `refused`: the server gave no session, or did not do what every connection begins with
 * - `auth`: an identity was not accepted, or the server cannot be told it
 * - `expired`: the session was over
 * - `moved`: this client left for a server that suits it better
 * - `defect`: of this client
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

/** What happened to one connection. */
export class ConnectionFault extends Error {
  override readonly name = 'ConnectionFault'
  readonly kind: FaultKind

  constructor(kind: FaultKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

/** Server after server takes the connection and closes it without a word. The message says what that may mean. */
export class HungUp extends JobboardError {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_HUNG_UP'
  static override readonly retryable = true
}

/** No server speaks TLS with this client, or none without. The message says what the last of them did, and what to change. */
export class TlsFailed extends NotConnected {
  static override readonly code = 'JOBBOARD_ZOOKEEPER_TLS_FAILED'
  static override readonly retryable = false
}

/** What no other server would do better at. */
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
  // What the operating system says has a code: ENOTFOUND, ECONNREFUSED, …
  return error instanceof Error && 'code' in error ? 'unreachable' : 'defect'
}

/** How often the same may happen in a row before it is taken for more than bad luck. */
const MIN_ROUNDS = 2
const MIN_FAILURES = 3

const isPattern = (times: number, servers: number) => times >= Math.max(MIN_FAILURES, MIN_ROUNDS * servers)

/** Recognizes that no server speaks TLS with this client: no other attempt will do better, unless one ever did. */
export class TlsFailureDetector {
  #inARow = 0
  #served = false

  served(): void {
    this.#served = true
  }

  /** The same error, or the one that is final. */
  classify(error: Error, options: { readonly servers: number }): Error {
    this.#inARow = toFaultKind(error) === 'tls' ? this.#inARow + 1 : 0
    if (this.#served || !isPattern(this.#inARow, options.servers)) return error
    return new TlsFailed(error.message, { cause: error.cause ?? error })
  }
}

/** Recognizes servers that will never say why they do not serve. */
export class HangUpDetector {
  #inARow = 0

  /** A connection was attached. */
  served(): void {
    this.#inARow = 0
  }

  /**
   * The same error, or one that explains it better.
   *
   * @param options.servers how many there are
   * @param options.resuming whether a session was to be continued that has seen transactions
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
