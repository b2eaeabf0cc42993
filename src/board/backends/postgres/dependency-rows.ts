/**
 * Makes the arguments of the functions that post and restore jobs from dependencies, and reads the dependencies of a job: see
 * `functions/dependencies.sql`.
 */
import type { SqlDriver } from '../../../postgres/index.ts'
import { MAX_SHOWN_DEPENDENCIES } from '../../contract/index.ts'
import type { Dependency } from '../../model/dependencies.ts'
import { jobId, jobNumbers } from './records.ts'

/** The bytes that a dependency counts as in a batch: its part of the arguments, and its row. */
export const DEPENDENCY_BYTES = 64

/**
 * Returns the dependencies of jobs as arguments, as lists: the index of the job from 1, the number of the other job, and whether an end in
 * the trash meets the dependency.
 */
export function toDependencyParameters(
  jobs: readonly { readonly after?: readonly Dependency[] }[],
): [number[], number[], boolean[]] {
  const all = jobs.flatMap(({ after = [] }, index) => after.map((dependency) => ({ ...dependency, index })))
  return [all.map(({ index }) => index + 1), ...toAfterParameters(all)]
}

/** Returns the dependencies of one job as arguments. */
export function toAfterParameters(after: readonly Dependency[]): [number[], boolean[]] {
  return [jobNumbers(after.map(({ id }) => id)), after.map(({ on }) => on === 'settled')]
}

/** Returns the jobs for which this one waits, and those that wait for it. */
export async function readDependencies(
  id: string,
  { driver, schema }: { readonly driver: SqlDriver; readonly schema: string },
): Promise<{ readonly waitsFor: readonly string[]; readonly dependents: readonly string[] }> {
  const list = (wanted: string, known: string) =>
    `ARRAY(SELECT ${wanted}::text FROM ${schema}.dependencies WHERE ${known} = $1::bigint ORDER BY ${wanted} LIMIT $2) AS ${wanted}`
  const text = `SELECT ${list('waits_for', 'job')}, ${list('job', 'waits_for')}`
  const { rows } = await driver.query(text, [...jobNumbers([id]), MAX_SHOWN_DEPENDENCIES])
  const toIds = (found: unknown) => (Array.isArray(found) ? found.map((number) => jobId(String(number))) : [])
  return { waitsFor: toIds(rows[0]?.['waits_for']), dependents: toIds(rows[0]?.['job']) }
}
