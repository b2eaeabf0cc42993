/** The flow that every job of the fuzz runs: two tasks, so that a run can be left half done. */
import { input, linear, task } from '../../src/index.ts'
import { FLOW } from './records.ts'

const work = task('work', { execute: () => 'done', revert: () => 'reverted' })
const more = task('more', { execute: () => ({ more: 'done' }) })

export const FLOW_OF_TARGETS = linear(FLOW, input(), work, more)
