/** Conductors: claim jobs, run their flows, settle them. */

export type { ConductorBoard } from './boards/board-entries.ts'
export type { Conductor, ConductorState } from './conductor.ts'
export type { ConductorCounts } from './counters.ts'
export { type RunConductorOptions, runConductor } from './daemon/run-conductor.ts'
export type { ConductorEvents } from './events.ts'
export type { BeforeClaimContext, BeforeClaimHook, ConductorHooks } from './hooks.ts'
export type { ConductorPool } from './isolation/open-pool.ts'
export type { MetricsOptions } from './metrics.ts'
export type { ConductorChanges, ConductorOptions } from './options.ts'
export { type RunFlowOptions, runFlow } from './run-flow.ts'
export type { OnFailure } from './runs/decide.ts'
export type { FailuresOnBoard } from './runs/disclosure.ts'
export type { ErrorHandler, ErrorVerdict, FailedRun } from './runs/on-error.ts'
export type { Settled } from './runs/settle.ts'
export {
  type DefinedServices,
  defineServices,
  type ServiceContext,
  type ServiceDefinition,
  type ServiceOptions,
  type ServiceScope,
  service,
  withServices,
} from './services/define.ts'
export type { ServicesFor, ServicesGiven } from './services/open.ts'
export { startConductor } from './start-conductor.ts'
export { type Tracked, type TrackOptions, track } from './track.ts'
export { type Ended, type WaitForJobOptions, waitForJob } from './wait-for-job.ts'
