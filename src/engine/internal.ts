/** Exports of the engine for other folders of this project, not for users. */
export { mergeErrors } from './atom-runner.ts'
