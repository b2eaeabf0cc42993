/** Child processes that do work: started, supervised, replaced and killed. */
export type { Child, ChildState } from './child.ts'
export type { ChildEnd } from './child-end.ts'
export { POOL_LIMITS, type PoolLimits, type PoolSettings, poolSettings } from './options.ts'
export { ChildPool, type ChildStatus, type PoolEvent, type PoolOptions, type WorkOptions } from './pool.ts'
export type { OpenWorker, WorkContext, Worker } from './protocol.ts'
