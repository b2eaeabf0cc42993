/** Conductors: claim jobs, run their flows, settle them. */

/** @internal For `jobboard logbook destroy`. */
export { isOfOtherBoard } from './book-owner.ts'
export type { Conductor, ConductorEvents, ConductorState } from './conductor.ts'
export type { OnFailure } from './decide.ts'
export type { FailuresOnBoard } from './disclosure.ts'
export type { ConductorOptions } from './options.ts'
export { type RunConductorOptions, runConductor } from './run-conductor.ts'
export { type RunFlowOptions, runFlow } from './run-flow.ts'
export type { ServicesFor, ServicesGiven } from './services.ts'
export type { Settled } from './settle.ts'
export { startConductor } from './start-conductor.ts'
export { type Tracked, type TrackOptions, track } from './track.ts'
export { type Ended, type WaitForJobOptions, waitForJob } from './wait-for-job.ts'
