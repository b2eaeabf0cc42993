/** The flow of both processes. */
import { input, linear, task } from 'jobboard'

const step = (name: string, work: () => void = () => undefined) =>
  task(name, {
    execute: (_args, { run }) => {
      console.log(`run ${run}: ${name}`)
      work()
    },
  })

/** Returns the flow. @param crash called in the middle of the second task */
export const buildFlow = (crash: () => void) =>
  linear('build', input(), step('fetch'), step('compile', crash), step('package'))
