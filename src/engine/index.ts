/** Runs flows: executes, reverts, retries, records, resumes. */
export type { Ending } from './ending.ts'
export { Engine } from './engine.ts'
export type { EngineEvents } from './events.ts'
export { DEFAULT_CONCURRENCY, type EngineOptions, type Performing } from './options.ts'
export type { Statistics } from './statistics.ts'
