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
} from '../core/errors.ts'
export type { Logger } from '../core/log.ts'
export { type Duration, monotonic } from '../core/time.ts'
// Helpers for boards and logbooks.
export { accessDeniedError, type Tenant, toOpenError, toTenantError } from './access.ts'
export { ZooKeeper, type ZooKeeperOptions } from './client.ts'
export type { ClientEvents, SessionEvent, StateEvent } from './client-events.ts'
export type { ClientCounters, OperationCounts } from './connection/counters.ts'
export { type FaultKind, HungUp, TlsFailed } from './connection/faults.ts'
export type { AuthInfo } from './connection/identities.ts'
export type { RequestOptions } from './connection/pending.ts'
export type { SaslCredentials } from './connection/sasl.ts'
export type { TlsOptions } from './connection/socket.ts'
export type { EnsembleConfig, Reconfiguration } from './ensemble.ts'
export { assertLocationParameters, parseZooKeeperLocation, type ZooKeeperLocation } from './location.ts'
export { type ClientCredentials, findOwnEntries } from './own-identities.ts'
export { ACL, type Acl, digestId, type Identity, PERMISSION } from './protocol/acl.ts'
export { type ConnectString, type Endpoint, parseConnectString } from './protocol/connect-string.ts'
export type { ContainerMode, Created, CreateMode, ExpiringMode, OrdinaryMode } from './protocol/create.ts'
export {
  AuthFailed,
  BadArguments,
  BadVersion,
  ConnectionLoss,
  connectionLossError,
  EphemeralOnLocalSession,
  InvalidAcl,
  NO_NODE,
  NoAuth,
  NoChildrenForEphemerals,
  NodeExists,
  NoNode,
  NotEmpty,
  NotSent,
  NoWatcher,
  type Outcome,
  QuotaExceeded,
  ReadOnlyServer,
  ReconfigRefused,
  RequestTooLarge,
  SessionExpired,
  SessionMoved,
  Throttled,
  toError,
  Unimplemented,
  ZooKeeperError,
  type ZooKeeperErrorOptions,
} from './protocol/errors.ts'
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
} from './protocol/ops.ts'
export { checkPath } from './protocol/path.ts'
export type { Stat, WatchEvent, WatchEventType } from './protocol/records.ts'
export type { ReadData, WatchKind, WatchMode } from './protocol/requests.ts'
export {
  type ExactlyOnceClient,
  idempotentDelete,
  protectedCreate,
  versionedSetData,
} from './recipes/exactly-once-writes.ts'
export type { Security, SecurityOptions } from './security.ts'
export type { LeaseHold, ProvenLease } from './session/lease-keeper.ts'
export type { SessionInfo } from './session/session-options.ts'
export type { ClientState } from './session/states.ts'
export {
  existingTreeAcl,
  findStrangers,
  isOpenToAll,
  isSameAcl,
  newTreeAcl,
  type WantedAcl,
  warnOfStrangers,
} from './tree-acl.ts'
export type { HandlerFault } from './watches/handler-faults.ts'
export type { OneShotHandler, WatchLost } from './watches/one-shot-watches.ts'
export type { ReadOptions, Watch } from './watches/watch-manager.ts'
export type { WatchHandler } from './watches/watches.ts'
