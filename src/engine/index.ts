/** Runs flows: executes, reverts, records, resumes. */
export type { Ending } from './ending.ts'
export { Engine, type EngineOptions } from './engine.ts'
