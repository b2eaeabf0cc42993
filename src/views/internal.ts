/** Views that load the board: `index.ts` does not, so that commands which do not open a board start fast. */
export { describeKeptSlots, type JobWarning, jobWarnings } from './job-warnings.ts'
