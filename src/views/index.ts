/** What the command line, the dashboard, the exporter and the doctor show of a board, as plain data: see `job-view.ts`. */
export {
  type ConductorView,
  conductorView,
  conductorViews,
  countSlots,
  describeClock,
  describeQueues,
  doesServe,
  hasFlow,
  type Slots,
} from './conductor-view.ts'
export { exactDuration, formatAge, formatDuration, measureLastRun, type RunDuration } from './duration.ts'
export {
  describeSettings,
  flowSettingsView,
  type SettingText,
  type ShownFlowSettings,
  settingTexts,
} from './flow-settings-view.ts'
export type { InfoView, QueueView, RunningView } from './info-view.ts'
export {
  describeJobSettings,
  type JobSettings,
  type ReplacedOptions,
  readJobSettings,
  replacedOptions,
} from './job-settings.ts'
export {
  type CancellationView,
  cancellationView,
  type JobDetails,
  type JobReport,
  type JobView,
  jobFacts,
  jobView,
  otherQueue,
  type PostingView,
  type PostView,
  postedView,
  postingView,
  postView,
  type TrashView,
  toJobDetails,
  trashReport,
  trashView,
  type WorkView,
  workView,
} from './job-view.ts'
export { type LiveJob, LiveJobs } from './live-jobs.ts'
export {
  type AtomView,
  type BookReport,
  type BookView,
  bookReport,
  bookView,
  type FailureView,
  failureView,
  type LogbookView,
  logbookView,
} from './logbook-view.ts'
export { currentRun, readOpenJob, type WaitingView, waitingView } from './open-job.ts'
export {
  batchView,
  describeDeclaration,
  isLate,
  limitView,
  pauseOfQueue,
  type QueuePauseView,
  queuesPausedByName,
  readBatchView,
  scheduleView,
} from './record-views.ts'
export { parseFlowSettings, parseSettingNames, SETTING_NAMES } from './setting-words.ts'
export { checkpointView, formatCheckpoint, redactResults, type TrackedView, trackedView } from './tracked-view.ts'
