/** Runs flows: executes, reverts, retries, records, resumes. */
export type { Ending } from './ending.ts'
export { DEFAULT_CONCURRENCY, Engine, type EngineOptions } from './engine.ts'
export type { AtomMove, EngineEvents, FlowMove, ProgressTold } from './events.ts'
export type { Statistics } from './statistics.ts'
