/** The views of a board that the command line and the dashboard show, as plain data. */
export { type ChildView, type ConductorView, conductorView, describeClock } from './conductor-view.ts'
export { formatAge, formatDuration, measureLastRun, type RunDuration } from './duration.ts'
export {
  type AtomView,
  type CancellationView,
  cancellationView,
  type FailureView,
  failureView,
  type JobDetails,
  type JobReport,
  type JobView,
  jobView,
  type LogbookView,
  logbookView,
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
