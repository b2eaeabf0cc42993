/** Exports of the conductor for other folders of this project, not for users. */

export { toBoardLabel } from './boards/board-entries.ts'
export { mergeHooks } from './hooks.ts'
export { findInTrash, type JobRecord, type Located, locate, readRecord } from './locate.ts'
export { isOfOtherBoard } from './runs/book-owner.ts'
export { mergeServices } from './services/merge.ts'
