/** What prints results for people, and the packages that it needs; commands load it when they do not print JSON. */

export { findingLines, verdictLine } from '../../doctor/finding.ts'
export { batchesTable, batchLines } from './batches.ts'
export { appliedSettingsTable, flowSettingsTable } from './flow-settings.ts'
export { infoLines } from './info.ts'
export { limitKeysTable, limitsTable } from './limits.ts'
export {
  conductorsTable,
  configTable,
  flowsTable,
  historyTable,
  jobsTable,
  logbooksTable,
  trashTable,
} from './lists.ts'
export { logbookReport } from './logbook.ts'
export { toScreen } from './paint.ts'
export { reportLines, resultLines } from './report.ts'
export { occurrenceLines, scheduleLines, schedulesTable } from './schedules.ts'
export { trackedLines } from './tracked.ts'
