/**
 * The interface of every ZooKeeper driver.
 *
 * There are two drivers: the client of this folder, and an adapter over the `zookeeper` package (`native/client.ts`).
 * Code that is written against {@link ZooKeeperDriver} runs on either, within the driver's capabilities.
 */
import type { Capabilities } from './capabilities.ts'
import type { ZooKeeper } from './client.ts'
import type { DriverEvents } from './client-events.ts'
import type { Acl, Identity } from './protocol/acl.ts'
import type { Stat } from './protocol/records.ts'

/** Operations of every driver. An operation whose capability is missing rejects with UnsupportedCapability. */
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
  /** ACL of znodes that are created without an `acl` of their own, from now on; needs `aclOnCreate`. */
  acl?: readonly Acl[]
  /** Current session; undefined while there is none. */
  readonly session: { readonly id: bigint; readonly timeout: number; readonly leaseUntil: number } | undefined
  /** Returns the identities of this client, where the driver supports it; needs ZooKeeper 3.7. */
  whoAmI?(): Promise<readonly Identity[]>
  on<E extends keyof DriverEvents>(event: E, listener: (event: DriverEvents[E]) => void): () => void

  /**
   * Creates a znode. Without `data` it has null, or empty data where the driver cannot write null (`nullData`).
   *
   * @throws UnsupportedCapability for an ACL without `aclOnCreate`, for null without `nullData`
   */
  create(...args: Parameters<ZooKeeper['create']>): Promise<{ readonly path: string }>

  /** Replaces the ACL; returns undefined where the driver receives no Stat (`statOnCreate`). */
  setACL(...args: Parameters<ZooKeeper['setACL']>): Promise<Stat | undefined>
}
