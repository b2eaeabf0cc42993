/**
 * jobboard: post work, and have it done by exactly one owner at a time.
 *
 * Exports boards (`openBoard`), flows (`task`, `retry`, `linear`, `unordered`, `graph`, `input`), engines (`Engine`),
 * conductors (`startConductor`, `runConductor`, `runFlow`), logbooks (`openPersistence`), and the errors that they throw. The
 * ZooKeeper client alone is `jobboard/zookeeper`; helpers for tests of flows are `jobboard/testing`.
 *
 * @module jobboard
 */
export * from './board/index.ts'
export * from './conductor/index.ts'
export * from './core/errors.ts'
export { describeError, describeFailure, type Failure, failureOf, WrappedFailure } from './core/failure.ts'
export type { Logger } from './core/log.ts'
export type { AtomState, EngineState, FlowState, JobState } from './core/states.ts'
export type { Duration } from './core/time.ts'
export { type Ending, Engine, type EngineEvents, type EngineOptions, type Statistics } from './engine/index.ts'
export {
  type AnyFlow,
  type AnyPart,
  type AnyRetry,
  type AnyTask,
  alwaysRevert,
  alwaysRevertAll,
  type BackOffOptions,
  backOff,
  type Context,
  type Decision,
  type Depth,
  type FailureContext,
  type Flow,
  type FlowOptions,
  forEach,
  type GraphOptions,
  graph,
  type History,
  input,
  isFlow,
  type Link,
  linear,
  link,
  mapTask,
  type PostingDefaults,
  parameterizedForEach,
  type Retry,
  type RetryAttempt,
  type RetryContext,
  type RevertContext,
  reduceTask,
  retry,
  type StandardSchema,
  type Task,
  task,
  times,
  toDot,
  toMermaid,
  unordered,
} from './flow/index.ts'
export {
  type AtomDetail,
  type BookDetail,
  type BookQuery,
  type CompressionOptions,
  compressed,
  type DriverPersistenceOptions,
  type EncryptionOptions,
  encrypted,
  type FlowDetail,
  type FlowLog,
  type LogBook,
  type LogbookCodec,
  type OpenPersistenceOptions,
  openPersistence,
  openPersistenceOver,
  type Persistence,
  type RecordPlace,
  type StateChange,
} from './persistence/index.ts'
export type { SqlDriver } from './postgres/index.ts'
