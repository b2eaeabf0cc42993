/** What other folders of this project need of the engine, and users do not. */
export { mergeErrors } from './atom-runner.ts'
