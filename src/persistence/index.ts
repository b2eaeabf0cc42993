/** The public door of the logbooks. */
export type { AtomDetail, FlowDetail, LogBook, Meta } from './models.ts'
export { openPersistence } from './open.ts'
export type { AcquireRequest, FlowLog, Persistence, Transition } from './persistence.ts'
