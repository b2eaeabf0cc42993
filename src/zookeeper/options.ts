/** What a client may be told, and what holds where it is told nothing. */
import { InvalidArgument } from '../core/errors.ts'
import { type Logger, silent } from '../core/log.ts'
import { type Duration, milliseconds, printableDuration } from '../core/time.ts'
import type { Acl } from './acl.ts'
import { parseConnectString } from './connect-string.ts'
import { Hosts } from './hosts.ts'
import type { AuthInfo } from './identities.ts'
import type { SaslCredentials } from './sasl.ts'
import type { SessionOptions } from './session-options.ts'
import { checkTls, type TlsOptions } from './socket.ts'

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
  /** Says at `debug` what becomes of connections and at `trace` what is asked; never data, passwords or session ids. */
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
}

export const DEFAULT_SESSION_TIMEOUT = 10_000
const DEFAULT_MAX_REPLY = 64 * 1_024 * 1_024
const DEFAULT_MAX_IN_FLIGHT = 1_000

/** @throws InvalidArgument for options that cannot mean anything */
export function sessionOptions(options: ZooKeeperOptions): SessionOptions {
  const { tls, sasl, auth, readOnly, maxInFlight = DEFAULT_MAX_IN_FLIGHT } = options
  const sessionTimeout = waitable(options.sessionTimeout ?? DEFAULT_SESSION_TIMEOUT, 'sessionTimeout')
  if (sessionTimeout < 1) throw new InvalidArgument('sessionTimeout: a session must last longer than no time')
  if (!(maxInFlight >= 1)) throw new InvalidArgument('maxInFlight: at least one request must be allowed on its way')
  if (tls) checkTls(tls)
  return {
    hosts: new Hosts(parseConnectString(options.hosts).endpoints),
    sessionTimeout,
    connectTimeout: waitable(options.connectTimeout ?? sessionTimeout / 3, 'connectTimeout'),
    tick: options.tick === undefined ? undefined : milliseconds(options.tick, 'tick'),
    maxReplyBytes: options.maxReplyBytes ?? DEFAULT_MAX_REPLY,
    maxInFlight,
    newSession: options.newSession ?? 'automatic',
    log: options.log ?? silent,
    tls,
    sasl,
    auth,
    readOnly,
  }
}

/** What a timer of Node can wait; the protocol has as much room for a session's timeout. */
const LONGEST = 2 ** 31 - 1

/** @throws InvalidArgument for what is no duration, or one that nobody can wait for */
export function waitable(duration: Duration, what: string): number {
  const ms = milliseconds(duration, what)
  if (ms <= LONGEST) return ms
  throw new InvalidArgument(
    `${what}: ${printableDuration(duration)} is more than the ${LONGEST} ms (24 days) there can be`,
  )
}
