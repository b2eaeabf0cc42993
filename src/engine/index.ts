/** Runs flows: executes, reverts, retries, records, resumes. */

export { Engine } from './engine.ts'
export type { Ending, EngineEvents } from './events.ts'
export { DEFAULT_CONCURRENCY, type EngineOptions, type Performing } from './options.ts'
export type { Statistics } from './statistics.ts'
