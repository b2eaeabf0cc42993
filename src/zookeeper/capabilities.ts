/**
 * Capabilities of ZooKeeper drivers. They are data, to be checked before the work begins. A call that needs a missing
 * capability is refused as well; it is never replaced by something weaker.
 */
import { UnsupportedCapability } from '../core/errors.ts'

/** Capabilities of a driver. Boards name the missing capability when they refuse a driver. */
export interface Capabilities {
  /** Several operations as one transaction. */
  readonly multi: boolean
  /** Watches that survive their events and report gaps. */
  readonly persistentWatch: boolean
  /** Watches that report one change. */
  readonly oneShotWatch: boolean
  /** Removal of a one-shot watch. */
  readonly removeWatches: boolean
  /** Creation of a znode with its ACL in the same request. */
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

/** Name of a capability. */
export type Capability = keyof Capabilities

/** Capabilities of the client in this folder. */
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

/** Returns the error for a capability that the driver lacks. */
export function unsupportedError(driver: string, capability: Capability, instead: string): UnsupportedCapability {
  return new UnsupportedCapability(`${driver} lacks ${capability}: ${instead}`, { capability })
}
