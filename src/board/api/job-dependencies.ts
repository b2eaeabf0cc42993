/** Reads which jobs a job waits for, and which wait for it. */
import type { Backend } from '../contract/index.ts'
import { Job } from '../jobs/job.ts'
import { readJobs } from '../jobs/read-jobs.ts'
import type { Lookup } from './lookup.ts'

/** The jobs on the board around one: see `JobBoard.dependencies`. */
export interface JobDependencies {
  /** The jobs for which it still waits. */
  readonly waitsFor: readonly Job[]
  /** The jobs that are run after it. */
  readonly dependents: readonly Job[]
}

/** Reads the jobs around one: one round trip for the ids, and some for the postings. */
export async function readJobDependencies(
  job: Job,
  { backend, lookup }: { readonly backend: Backend; readonly lookup: Pick<Lookup, 'toOwnEntry' | 'byId'> },
): Promise<JobDependencies> {
  const { id } = Job.entryFor(await lookup.toOwnEntry(job))
  if (id === undefined) return { waitsFor: [], dependents: [] }
  const found = await backend.dependencies.of(id)
  const read = async (ids: readonly string[]) => {
    const jobs: Job[] = []
    for await (const each of readJobs(ids.map(lookup.byId), backend)) jobs.push(each)
    return jobs
  }
  const [waitsFor, dependents] = await Promise.all([read(found.waitsFor), read(found.dependents)])
  return { waitsFor, dependents }
}
