/** What a client may be told, and what holds where it is told nothing. */
import { InvalidArgument } from '../core/errors.ts'
import { assertLogger, type Logger, silentLog } from '../core/log.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import { type Duration, formatDuration, MAX_TIMER_MS, toMilliseconds } from '../core/time.ts'
import { Hosts } from './connection/hosts.ts'
import type { AuthInfo } from './connection/identities.ts'
import { checkSasl, type SaslCredentials } from './connection/sasl.ts'
import { checkTls, type TlsOptions } from './connection/socket.ts'
import type { Acl } from './protocol/acl.ts'
import { assertInteger, assertOneOf } from './protocol/arguments.ts'
import { parseConnectString } from './protocol/connect-string.ts'
import type { SessionOptions } from './session/session-options.ts'

/** How a client connects, who it is, and how patient it is. Durations are milliseconds, or texts such as `'10s'`. */
export interface ZooKeeperOptions {
  /** `host:port,host:port/chroot`. Every address of a name is tried; names are resolved at each attempt. */
  readonly hosts: string
  /**
   * How long the server keeps the session when it hears nothing of it; the server may grant another. 10 s by default, 24
   * days at the most.
   */
  readonly sessionTimeout?: Duration
  /** How long to wait for one server before trying the next; a third of the session's timeout by default. */
  readonly connectTimeout?: Duration
  /**
   * The servers' `tickTime`, which a client cannot find out and which leases depend on (`holdLease`). 2 s by default, as
   * servers ship, or half the session's timeout where that is less. A value that is too small makes leases too long. For
   * observers that follow followers (`observerMasterPort`) name twice the tick: what they hear is passed on twice.
   */
  readonly tick?: Duration
  /**
   * Says at `trace` what is asked, at `debug` what is tried, at `info` that a session is connected, at `warn` that the
   * connection or the session is gone, at `error` what handlers threw and what a server sent that makes no sense; never
   * data, passwords or session ids.
   */
  readonly log?: Logger
  /** Larger answers close the connection. 64 MiB by default: a long list of children is large. */
  readonly maxReplyBytes?: number
  /** Larger requests are refused here. By default what a server takes that was left at its own default. */
  readonly maxRequestBytes?: number
  /**
   * How many requests may be on their way at once; the others wait here, in order. 1,000 by default, as many as servers
   * take before they stop reading. Any number may wait: a producer that is to be slowed down awaits its requests.
   */
  readonly maxInFlight?: number
  /** Whether another session follows one that is lost. `automatic` by default. */
  readonly newSession?: 'automatic' | 'never'
  /**
   * Whether a server without a quorum will do while there is no other. It reads, and refuses to write (ReadOnlyServer);
   * a session that begins there is over when a server that writes is found. False by default.
   */
  readonly readOnly?: boolean
  /** TLS, on the servers' secure port. `{}` checks their certificates against Node's own list. */
  readonly tls?: TlsOptions
  /**
   * SASL DIGEST-MD5. A password that is not accepted is final: AuthFailed. A server without SASL, or that does not know
   * the password, is not used.
   */
  readonly sasl?: SaslCredentials
  /**
   * Given on every connection before anything else is asked: `{ scheme: 'digest', auth: 'user:password' }`. One that is
   * not accepted is final: AuthFailed.
   */
  readonly auth?: readonly AuthInfo[]
  /** Who may do what with znodes that are created without an `acl` of their own; everybody everything by default. */
  readonly acl?: readonly Acl[]
  /**
   * Whether errors name in their `stack` the line that asked. It costs some microseconds a request, which is as much as
   * the rest of it. False by default: the stack ends where the answer was read.
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
export const DEFAULT_MAX_REQUEST_BYTES = 1_048_575
const DEFAULT_MAX_IN_FLIGHT = 1_000

/**
 * Everything that a compiler would have said, and what it cannot know.
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
    throw new InvalidArgument("auth: a list of identities, such as [{ scheme: 'digest', auth: 'user:password' }]")
}

const COUNT_RANGE = { from: 1, to: 2 ** 31 - 1 }

/** @throws InvalidArgument for options that cannot mean anything */
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
    maxInFlight,
    newSession: options.newSession ?? 'automatic',
    log: options.log ?? silentLog,
    tls,
    sasl,
    auth,
    readOnly,
  }
}

/** @throws InvalidArgument for no time at all, too */
export function toPositiveMs(duration: Duration, what: string): number {
  const ms = toTimerMs(duration, what)
  if (ms >= 1) return ms
  throw new InvalidArgument(`${what}: ${formatDuration(duration)} is no time at all; there must be at least 1 ms`)
}

/** @throws InvalidArgument for what is no duration, or one that nobody can wait for */
export function toTimerMs(duration: Duration, what: string): number {
  const ms = toMilliseconds(duration, what)
  if (ms <= MAX_TIMER_MS) return ms
  throw new InvalidArgument(
    `${what}: ${formatDuration(duration)} is more than the ${MAX_TIMER_MS} ms (24 days) there can be`,
  )
}
