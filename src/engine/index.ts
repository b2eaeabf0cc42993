/** Runs flows: executes, reverts, retries, records, resumes. */

export { Engine } from './engine.ts'
export type { Ending, EngineEvents } from './events.ts'
export { type AtomIsolator, IN_PROCESS, type IsolatedAtom, type Performing } from './isolated.ts'
export { DEFAULT_CONCURRENCY, type EngineOptions } from './options.ts'
export type { Statistics } from './statistics.ts'
