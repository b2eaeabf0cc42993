/** Options and callbacks of a session. */

import type { Logger } from '../../core/log.ts'
import type { Clock } from '../../core/time.ts'
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
  readonly maxRequestBytes: number
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

/** Callbacks of a session to the client around it. All are called synchronously. */
export interface SessionOwner {
  stateChanged(event: ClientStateChange & { readonly session?: bigint }): void
  sessionChanged(event: { session: bigint; previous?: bigint }): void
  events(batch: readonly WatchEvent[]): void
  /** Reports that the watches are armed on a new connection; changes since the last one were not reported. */
  gap(): void
  /** Returns the requests that arm the watches; at least one, even without watches. */
  arming(lastZxid: bigint): Request<undefined>[]
}

/** Snapshot of a session. */
export interface SessionInfo {
  readonly id: bigint
  /** Granted timeout, in milliseconds. */
  readonly timeout: number
  /** Whether the server has no quorum: it answers reads and refuses writes. */
  readonly readOnly: boolean
  /**
   * Instant until which the session is certain to be alive, on the clock of `monotonic()`. It is kept in the future
   * only while there is a hold on the lease (`holdLease`).
   */
  readonly leaseUntil: number
  /**
   * The newest transaction of the ensemble that the server reported, in answers to pings too: shows whether anything
   * changed.
   */
  readonly newestZxid: bigint
}
