/** What a session is given, and what it tells. */

import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import type { Hosts } from '../connection/hosts.ts'
import type { AuthInfo } from '../connection/identities.ts'
import type { SaslCredentials } from '../connection/sasl.ts'
import type { TlsOptions } from '../connection/socket.ts'
import type { WatchEvent } from '../protocol/records.ts'
import type { Request } from '../protocol/requests.ts'
import type { ClientStateChange } from './states.ts'

export interface SessionOptions {
  readonly hosts: Hosts
  readonly sessionTimeout: number
  readonly connectTimeout: number
  readonly maxReplyBytes: number
  readonly maxInFlight: number
  readonly newSession: 'automatic' | 'never'
  readonly log: Logger
  readonly readOnly?: boolean | undefined
  readonly tick?: number | undefined
  readonly tls?: TlsOptions | undefined
  readonly sasl?: SaslCredentials | undefined
  readonly auth?: readonly AuthInfo[] | undefined
  readonly clock?: Clock
}

/** What a session tells the client around it. Everything is called synchronously. */
export interface SessionOwner {
  stateChanged(event: ClientStateChange & { readonly session?: bigint }): void
  sessionChanged(event: { session: bigint; previous?: bigint }): void
  events(batch: readonly WatchEvent[]): void
  /** The watches are armed on a new connection; what happened since the last one was not told. */
  gap(): void
  /** The requests that arm the watches; at least one, even without watches. */
  arming(lastZxid: bigint): Request<undefined>[]
}

/** What is known of a session. */
export interface SessionInfo {
  readonly id: bigint
  /** What the server granted, in milliseconds. */
  readonly timeout: number
  /** The server has no quorum: it reads, and refuses to write. */
  readonly readOnly: boolean
  /**
   * Until when the session is certain to be alive, on the clock of `monotonic()`. Kept in the future only while somebody
   * relies on it (`holdLease`).
   */
  readonly leaseUntil: number
  /** The newest transaction of the ensemble that the server told of, in answers to pings too: whether anything happened. */
  readonly newestZxid: bigint
}
