/** A client for Apache ZooKeeper that needs nothing but Node: `import { ZooKeeper } from 'jobboard/zookeeper'`. */
export { type SessionEvent, type StateEvent, type Watch, ZooKeeper, type ZooKeeperOptions } from './client.ts'
export { type ConnectString, type Endpoint, parseConnectString } from './connect-string.ts'
export * from './errors.ts'
export {
  type CheckOp,
  type CreateOp,
  type DeleteOp,
  type Op,
  op,
  type ResultOf,
  type ResultsOf,
  type SetDataOp,
} from './multi.ts'
export { checkPath } from './path.ts'
export type { RequestOptions } from './pending.ts'
export { type Acl, OPEN_ACL, PERMISSION, type Stat, type WatchEvent, type WatchEventType } from './records.ts'
export type { CreateMode, WatchMode } from './requests.ts'
export type { SessionInfo } from './session.ts'
export type { ClientState } from './states.ts'
export type { WatchHandler } from './watches.ts'
