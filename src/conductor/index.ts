/** Conductors: claim jobs, run their flows, settle them. */
export type { Conductor, ConductorEvents, ConductorState } from './conductor.ts'
export type { OnFailure } from './decide.ts'
export { runConductor } from './run-conductor.ts'
export { type RunFlowOptions, runFlow } from './run-flow.ts'
export type { Settled } from './settle.ts'
export { type ConductorOptions, startConductor } from './start-conductor.ts'
