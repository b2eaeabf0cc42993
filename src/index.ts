/**
 * jobboard: post work and have it done by exactly one owner at a time.
 *
 * Boards (`openBoard`), flows (`task`, `linear`, `input`), conductors (`startConductor`, `runConductor`, `runFlow`),
 * logbooks (`openPersistence`), and the errors they throw. The ZooKeeper client alone is at `jobboard/zookeeper`.
 */
export * from './board/index.ts'
export * from './conductor/index.ts'
export * from './core/errors.ts'
export { describeError, describeFailure, type Failure, failureOf, WrappedFailure } from './core/failure.ts'
export type { Logger } from './core/log.ts'
export type { AtomState, FlowState, JobState } from './core/states.ts'
export type { Duration } from './core/time.ts'
export {
  type AnyFlow,
  type Context,
  type Flow,
  input,
  isFlow,
  linear,
  type RevertContext,
  type Task,
  task,
} from './flow/index.ts'
export {
  type AtomDetail,
  type BookDetail,
  type BookQuery,
  type DriverPersistenceOptions,
  type FlowDetail,
  type LogBook,
  openPersistence,
  openPersistenceOver,
  type Persistence,
  type StateChange,
} from './persistence/index.ts'
export type { SqlDriver } from './postgres/index.ts'
