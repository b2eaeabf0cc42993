/** Views that load the board: `index.ts` does not, so that commands which do not open a board start fast. */
export { InfoReader, longestRunning } from './info-view.ts'
export { describeKeptSlots, type JobWarning, jobWarnings } from './job-warnings.ts'
export { deathsOf, type ListContext, nextStartsOf, reasonOf, stateOf } from './listed-job.ts'
