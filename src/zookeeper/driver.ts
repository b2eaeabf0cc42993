/**
 * What any way of talking to ZooKeeper has.
 *
 * There are two: the client of this folder, and an adapter over the `zookeeper` package (`native/client.ts`). Code that is
 * written against {@link ZooKeeperDriver} runs on either, as far as the driver's capabilities go.
 */
import type { Capabilities } from './capabilities.ts'
import type { ZooKeeper } from './client.ts'
import type { DriverEvents } from './client-events.ts'
import type { Acl, Identity } from './protocol/acl.ts'
import type { Stat } from './protocol/records.ts'

/** The operations that every driver knows. Those that need a capability reject with UnsupportedCapability without it. */
export interface ZooKeeperDriver
  extends Pick<
      ZooKeeper,
      | 'state'
      | 'connect'
      | 'close'
      | 'delete'
      | 'exists'
      | 'getData'
      | 'setData'
      | 'getChildren'
      | 'getACL'
      | 'sync'
      | 'mkdirp'
      | 'multi'
      | 'watch'
      | 'removeWatches'
      | 'holdLease'
    >,
    AsyncDisposable {
  readonly capabilities: Capabilities
  /** Of what is created from now on without one of its own; only with `aclOnCreate`. */
  acl?: readonly Acl[]
  /** Undefined while there is none. */
  readonly session: { readonly id: bigint; readonly timeout: number; readonly leaseUntil: number } | undefined
  /** Only where the driver can ask; it takes ZooKeeper 3.7. */
  whoAmI?(): Promise<readonly Identity[]>
  on<E extends keyof DriverEvents>(event: E, listener: (event: DriverEvents[E]) => void): () => void

  /**
   * Creates a znode. Without data it has none, or empty data where the driver cannot write none (`nullData`).
   *
   * @throws UnsupportedCapability for an ACL without `aclOnCreate`, for null without `nullData`
   */
  create(...args: Parameters<ZooKeeper['create']>): Promise<{ readonly path: string }>

  /** Undefined where the driver is not told the Stat (`statOnCreate`). */
  setACL(...args: Parameters<ZooKeeper['setACL']>): Promise<Stat | undefined>
}
