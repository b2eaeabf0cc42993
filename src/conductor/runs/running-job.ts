/** The job of a run, as its tasks and services see it. */
import type { Job } from '../../board/index.ts'
import type { RunningJob } from '../../flow/index.ts'

/** Returns the job with the details of the application, without its flow and its store. */
export function toRunningJob({ uuid, name, details }: Job): RunningJob {
  const { flow, version, store, ...rest } = details
  return { uuid, name, details: rest }
}
