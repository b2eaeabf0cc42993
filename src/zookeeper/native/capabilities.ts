/** Capabilities that ZooKeeper's C client lacks behind our interface, with alternatives. */
import { InvalidArgument } from '../../core/errors.ts'
import { type Capabilities, type Capability, unsupportedError } from '../capabilities.ts'

/** Capabilities of the binding. */
export const NATIVE_CAPABILITIES: Capabilities = {
  multi: false,
  persistentWatch: false,
  oneShotWatch: true,
  removeWatches: false,
  aclOnCreate: false,
  nullData: false,
  statOnCreate: false,
  lease: true,
  tls: false,
  sasl: false,
}

/** For errors. */
export const DRIVER_NAME = "the native driver (the package 'zookeeper')"
const ALTERNATIVES: Readonly<Record<Capability, string>> = {
  multi: 'use the ZooKeeper class, or write one znode at a time and be ready for what happens in between',
  oneShotWatch: 'use the ZooKeeper class',
  removeWatches: 'ignore its event, or use the ZooKeeper class',
  persistentWatch: 'use the ZooKeeper class, or read again now and then',
  aclOnCreate: 'use the ZooKeeper class; the binding creates every znode open to the world',
  nullData: 'write empty data instead of none, or use the ZooKeeper class',
  statOnCreate: 'ask for the Stat by exists()',
  lease: 'use the ZooKeeper class',
  tls: 'use the ZooKeeper class',
  sasl: 'use the ZooKeeper class',
}

/** The error for it. */
export function missingCapabilityError(capability: Capability): Error {
  return unsupportedError(DRIVER_NAME, capability, ALTERNATIVES[capability])
}

interface ForeignOptions {
  readonly hosts: string
  readonly tls?: unknown
  readonly sasl?: unknown
  readonly acl?: unknown
  readonly readOnly?: unknown
}

/**
 * Rejects options of our own client that this client would ignore: the caller would believe that they have an effect.
 *
 * @throws UnsupportedCapability for TLS, SASL and an ACL: a caller that asks for them must not be connected in the clear, stay
 * unauthenticated, or create znodes that are open to all
 * @throws InvalidArgument for `readOnly`
 */
export function rejectForeignOptions(options: ForeignOptions): void {
  if (options.tls !== undefined) throw missingCapabilityError('tls')
  if (options.sasl !== undefined) throw missingCapabilityError('sasl')
  if (options.acl !== undefined) throw missingCapabilityError('aclOnCreate')
  if (options.readOnly) throw new InvalidArgument(`readOnly: ${DRIVER_NAME} does not know it; use the ZooKeeper class`)
}
