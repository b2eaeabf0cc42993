/**
 * What only some ways of talking to ZooKeeper have. It is data, to be asked for before the work begins; a call of what is
 * missing is refused all the same, and never imitated by something weaker.
 */
import { UnsupportedCapability } from '../core/errors.ts'

/** What a driver can do. Boards refuse by name what theirs cannot. */
export interface Capabilities {
  /** Several operations as one transaction. */
  readonly multi: boolean
  /** Watches that stay, and tell of gaps. */
  readonly persistentWatch: boolean
  /** Watches that are told of one change. */
  readonly oneShotWatch: boolean
  /** Taking a one-shot watch away again. */
  readonly removeWatches: boolean
  /** A znode that has its ACL from the first moment on. */
  readonly aclOnCreate: boolean
  /** Writing no data at all, as opposed to empty data. */
  readonly nullData: boolean
  /** A Stat in the answers to create and setACL. */
  readonly statOnCreate: boolean
  /** An instant until which the session is certain to be alive. */
  readonly lease: boolean
  readonly tls: boolean
  readonly sasl: boolean
}

/** The name of one of them. */
export type Capability = keyof Capabilities

/** What the client of this folder has. */
export const ALL_CAPABILITIES: Capabilities = {
  multi: true,
  persistentWatch: true,
  oneShotWatch: true,
  removeWatches: true,
  aclOnCreate: true,
  nullData: true,
  statOnCreate: true,
  lease: true,
  tls: true,
  sasl: true,
}

/** The error for what a driver does not have. */
export function unsupportedError(driver: string, capability: Capability, instead: string): UnsupportedCapability {
  return new UnsupportedCapability(`${driver} lacks ${capability}: ${instead}`, { capability })
}
