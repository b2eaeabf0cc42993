/** Options of a client, their defaults and their checks. */
import { InvalidArgument } from '../core/errors.ts'
import { assertLogger, type Logger, silentLog } from '../core/log.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import { type Duration, formatDuration, toTimerMs } from '../core/time.ts'
import { Hosts } from './connection/hosts.ts'
import type { AuthInfo } from './connection/identities.ts'
import { checkSasl, type SaslCredentials } from './connection/sasl.ts'
import { checkTls, type TlsOptions } from './connection/socket.ts'
import type { Acl } from './protocol/acl.ts'
import { assertInteger, assertOneOf } from './protocol/arguments.ts'
import { parseConnectString } from './protocol/connect-string.ts'
import { MAX_INT32 } from './protocol/jute.ts'
import type { SessionOptions } from './session/session-options.ts'

/** Options for connecting, credentials, limits and times. Durations are milliseconds, or texts such as `'10s'`. */
export interface ZooKeeperOptions {
  /** Servers as `host:port,host:port/chroot`. Every address of a name is tried; names are resolved at each attempt. */
  readonly hosts: string
  /**
   * Time after which the server expires a silent session; the server may grant another. 10 s by default, at most 24
   * days.
   */
  readonly sessionTimeout?: Duration
  /** Time limit for one server before the next one is tried; a third of the session's timeout by default. */
  readonly connectTimeout?: Duration
  /**
   * `tickTime` of the servers, which a client cannot find out and on which leases depend (`holdLease`). 2 s by default,
   * as servers ship, or half the session's timeout if that is less. A value that is too small makes leases too long.
   * For observers that follow followers (`observerMasterPort`) give twice the tick: touches of sessions are relayed
   * twice.
   */
  readonly tick?: Duration
  /**
   * Log. Requests are logged at `trace`, connection attempts at `debug`, connected sessions at `info`, lost connections
   * and sessions at `warn`, errors of handlers and unreadable messages of servers at `error`; never data, passwords or
   * session ids.
   */
  readonly log?: Logger
  /** Limit for replies; larger ones close the connection. 64 MiB by default: long lists of children are large. */
  readonly maxReplyBytes?: number
  /**
   * Limit for requests; larger ones are refused by the client. The servers' own default by default (`jute.maxbuffer`). A server
   * whose limit is smaller is measured when it closes a connection because of a large request.
   */
  readonly maxRequestBytes?: number
  /**
   * Maximum number of requests in flight; others wait in the client, in order. 1,000 by default, which is the number
   * after which servers stop reading. The number of waiting requests is not limited: to slow a producer down, await its
   * requests.
   */
  readonly maxInFlight?: number
  /** Whether a new session follows a lost one. `automatic` by default. */
  readonly newSession?: 'automatic' | 'never'
  /**
   * Whether a server without a quorum is acceptable while no other is available. It answers reads and refuses writes
   * (ReadOnlyServer); a session that begins there ends when a server that writes is found. False by default.
   */
  readonly readOnly?: boolean
  /** TLS, on the servers' secure port. `{}` checks their certificates against Node's own list. */
  readonly tls?: TlsOptions
  /**
   * SASL DIGEST-MD5 credentials. A rejected password is final: AuthFailed. A server without SASL, or a server that does not
   * know the password itself, is not used.
   */
  readonly sasl?: SaslCredentials
  /**
   * Identities that are added on every connection before any other request: `{ scheme: 'digest', auth: 'user:password'
   * }`. A rejected one is final: AuthFailed.
   */
  readonly auth?: readonly AuthInfo[]
  /** ACL of znodes that are created without an `acl` of their own; open to all by default. */
  readonly acl?: readonly Acl[]
  /**
   * Whether the `stack` of errors names the caller's line. It costs some microseconds per request, as much as the rest
   * of the request. False by default: the stack ends where the answer was read.
   */
  readonly traceCallers?: boolean
}

const KNOWN_OPTIONS: KnownOptions<ZooKeeperOptions> = {
  hosts: true,
  sessionTimeout: true,
  connectTimeout: true,
  tick: true,
  log: true,
  maxReplyBytes: true,
  maxRequestBytes: true,
  maxInFlight: true,
  newSession: true,
  readOnly: true,
  tls: true,
  sasl: true,
  auth: true,
  acl: true,
  traceCallers: true,
}

export const DEFAULT_SESSION_TIMEOUT_MS = 10_000
const DEFAULT_MAX_REPLY_BYTES = 64 * 1_024 * 1_024
/** `jute.maxbuffer` as servers ship. */
const DEFAULT_MAX_REQUEST_BYTES = 1_048_575
const DEFAULT_MAX_IN_FLIGHT = 1_000

/**
 * Checks the options, for callers that do not use the compiler too.
 *
 * @throws InvalidArgument naming the option
 */
export function checkOptions(options: ZooKeeperOptions): void {
  assertOptions(options, KNOWN_OPTIONS, 'a ZooKeeper client')
  const { tls, sasl, auth, log, newSession, maxReplyBytes, maxRequestBytes, maxInFlight } = options
  const numbers = { maxReplyBytes, maxRequestBytes, maxInFlight }
  for (const [name, value] of Object.entries(numbers)) if (value !== undefined) assertInteger(value, name, COUNT_RANGE)
  if (newSession !== undefined) assertOneOf(newSession, ['automatic', 'never'], 'newSession')
  for (const name of ['readOnly', 'traceCallers'] as const) {
    if (options[name] !== undefined) assertOneOf(options[name], [true, false], name)
  }
  if (log !== undefined) assertLogger(log)
  if (tls !== undefined) checkTls(tls)
  if (sasl !== undefined) checkSasl(sasl)
  if (auth !== undefined && !Array.isArray(auth))
    throw new InvalidArgument(
      "auth must be a list of identities, such as [{ scheme: 'digest', auth: 'user:password' }]",
    )
}

const COUNT_RANGE = { from: 1, to: MAX_INT32 }

/**
 * Converts the options of users into the options of a session.
 *
 * @throws InvalidArgument for invalid options
 */
export function toSessionOptions(options: ZooKeeperOptions): SessionOptions {
  const { tls, sasl, auth, readOnly, maxInFlight = DEFAULT_MAX_IN_FLIGHT } = options
  const sessionTimeout = toPositiveMs(options.sessionTimeout ?? DEFAULT_SESSION_TIMEOUT_MS, 'sessionTimeout')
  return {
    hosts: new Hosts(parseConnectString(options.hosts).endpoints),
    sessionTimeout,
    connectTimeout:
      options.connectTimeout === undefined
        ? sessionTimeout / 3
        : toPositiveMs(options.connectTimeout, 'connectTimeout'),
    tick: options.tick === undefined ? undefined : toPositiveMs(options.tick, 'tick'),
    maxReplyBytes: options.maxReplyBytes ?? DEFAULT_MAX_REPLY_BYTES,
    maxRequestBytes: options.maxRequestBytes ?? DEFAULT_MAX_REQUEST_BYTES,
    maxInFlight,
    newSession: options.newSession ?? 'automatic',
    log: options.log ?? silentLog,
    tls,
    sasl,
    auth,
    readOnly,
  }
}

/**
 * Converts a duration to milliseconds.
 *
 * @throws InvalidArgument for less than 1 ms, or more than a timer can wait
 */
export function toPositiveMs(duration: Duration, what: string): number {
  const ms = toTimerMs(duration, what)
  if (ms >= 1) return ms
  throw new InvalidArgument(`${what} must be at least 1 ms, got ${formatDuration(duration)}`)
}
