/**
 * A client for Apache ZooKeeper that needs nothing but Node: `import { ZooKeeper } from 'jobboard/zookeeper'`.
 *
 * @module jobboard/zookeeper
 */
export {
  IncompatibleVersion,
  InvalidArgument,
  InvalidState,
  JobboardError,
  NotConnected,
  UnsupportedCapability,
} from '../core/errors.ts'
export type { Logger } from '../core/log.ts'
export { type Duration, monotonic } from '../core/time.ts'
// Of boards and logbooks, which are on ZooKeeper in the same way.
export { accessDeniedError, type Tenant, toOpenError, toTenantError } from './access.ts'
export { ACL, type Acl, digestId, type Identity, PERMISSION } from './acl.ts'
export { ALL_CAPABILITIES, type Capabilities, type Capability } from './capabilities.ts'
export {
  type ExactlyOnceClient,
  type ExactlyOnceDriver,
  idempotentDelete,
  protectedCreate,
  type TraceableWrite,
  versionedSetData,
  type WriteOutcome,
  writeExactlyOnce,
} from './certain.ts'
export { ZooKeeper, type ZooKeeperOptions } from './client.ts'
export type { DriverEvents, SessionEvent, StateEvent } from './client-events.ts'
export { type ConnectString, type Endpoint, parseConnectString } from './connect-string.ts'
export type { ClientCounters, OperationCounts } from './counters.ts'
export type { ContainerMode, Created, CreateMode, ExpiringMode, OrdinaryMode } from './create.ts'
export type { ZooKeeperDriver } from './driver.ts'
export type { EnsembleConfig, Reconfiguration } from './ensemble.ts'
export * from './errors.ts'
export { type FaultKind, HungUp, TlsFailed } from './faults.ts'
export type { HandlerFault } from './handler-faults.ts'
export type { AuthInfo } from './identities.ts'
export type { LeaseHold, ProvenLease } from './lease-keeper.ts'
export { type NativeOptions, NativeZooKeeper } from './native.ts'
export { NATIVE_CAPABILITIES } from './native-capabilities.ts'
export type { OneShotHandler, WatchLost } from './one-shots.ts'
export {
  type CheckOp,
  type CreatedInMulti,
  type CreateOp,
  type DeleteOp,
  type GetChildrenOp,
  type GetDataOp,
  type Op,
  op,
  type ReadOp,
  type ReadResult,
  type ReadResultOf,
  type ReadResultsOf,
  type ResultOf,
  type ResultsOf,
  type SetDataOp,
} from './ops.ts'
export { type ClientCredentials, findOwnEntries } from './own-identities.ts'
export { checkPath } from './path.ts'
export type { RequestOptions } from './pending.ts'
export { LOCATION_PARAMETERS, parseZooKeeperLocation, type ZooKeeperLocation } from './place.ts'
export type { Stat, WatchEvent, WatchEventType } from './records.ts'
export type { ReadData, WatchKind, WatchMode } from './requests.ts'
export type { SaslCredentials } from './sasl.ts'
export type { Security, SecurityOptions } from './security.ts'
export type { SessionInfo } from './session-options.ts'
export type { TlsOptions } from './socket.ts'
export type { ClientState } from './states.ts'
export {
  existingTreeAcl,
  findStrangers,
  isOpenToAll,
  isSameAcl,
  newTreeAcl,
  type WantedAcl,
  warnOfStrangers,
} from './tree-acl.ts'
export type { WatchHandler } from './watches.ts'
export type { ReadOptions, Watch } from './watching.ts'
