/** Exports of the conductor for other folders of this project, not for users. */

export { toBoardLabel } from './boards/board-entries.ts'
export { mergeHooks } from './hooks.ts'
export { findTrashedSince, type JobRecord, type Located, locate, readRecord } from './locate.ts'
export { mergeServices } from './services/merge.ts'
