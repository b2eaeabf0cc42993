/**
 * Dependencies: the jobs that must end before a job is claimed.
 *
 * | the job that is depended on | a dependency `on: 'done'` | a dependency `on: 'settled'` |
 * |---|---|---|
 * | is done | is met | is met |
 * | goes to the trash | asks to cancel the dependent job, with a reason that names the other one | is met |
 *
 * Both happen in the transaction that ends the other job. A job is claimed when all of its dependencies are met. If it is cancelled, and has
 * run before, it is claimed to be reverted; if it never ran, it is doomed: no claim is granted, and it goes to the trash.
 */
import { validate as validUuid } from 'uuid'
import { InvalidPosting } from '../../core/errors.ts'
import { parseReference } from '../../core/job-names.ts'
import { shortenText } from '../../core/texts.ts'

/** The greatest number of dependencies of a job: each is a step of the transaction that posts it. */
export const MAX_DEPENDENCIES = 1_000

/** The end of the other job that meets a dependency. `done`: it is done. `settled`: it is done, or in the trash. */
export type DependencyEnd = 'done' | 'settled'

/** A job after which another one is run: its uuid or reference, or an object with it, such as a `Job`. */
export type PostDependency = string | { readonly uuid: string; readonly on?: DependencyEnd }

/** A dependency as the posting stores it. Without `on` it is met when the job is done. */
export interface StoredDependency {
  readonly uuid: string
  readonly on?: 'settled'
}

/** A dependency with the id of the other job, as a post registers it. */
export interface Dependency {
  readonly id: string
  readonly on: DependencyEnd
}

/** A dependency of a posting, with the id of the other job if the caller named a reference. */
export interface NamedDependency extends StoredDependency {
  readonly id?: string
}

/**
 * Parses the option `after`; undefined where there are no dependencies. A job that is named twice counts once.
 *
 * @throws InvalidPosting
 */
export function parseDependencies(
  after: unknown,
  { uuid: own }: { readonly uuid: string },
): readonly NamedDependency[] | undefined {
  if (after === undefined) return undefined
  if (!Array.isArray(after)) throw new InvalidPosting('after must be a list of jobs, as in { after: [job.uuid] }')
  const found = new Map<string, NamedDependency>()
  for (const each of after) {
    const dependency = parseDependency(each)
    const { uuid } = dependency
    if (uuid === own) throw new InvalidPosting(`after: job ${own} cannot depend on itself`)
    const known = found.get(uuid)
    if (known && known.on !== dependency.on)
      throw new InvalidPosting(`after names job ${uuid} twice, once with on: 'settled' and once without`)
    found.set(uuid, { ...known, ...dependency })
  }
  if (found.size > MAX_DEPENDENCIES)
    throw new InvalidPosting(
      `after names ${found.size} jobs, at most ${MAX_DEPENDENCIES} are allowed; post jobs in between that collect some of them each`,
    )
  return found.size === 0 ? undefined : [...found.values()]
}

function parseDependency(job: unknown): NamedDependency {
  const fields = typeof job === 'string' ? { uuid: job } : job
  const { uuid: named, on }: { readonly uuid?: unknown; readonly on?: unknown } = Object(fields)
  const { uuid, id } = typeof named === 'string' ? parseReference(named) : {}
  if (uuid === undefined || !validUuid(uuid)) {
    const got = typeof named === 'string' ? `'${shortenText(named)}'` : typeof job
    throw new InvalidPosting(`after: each job must be a UUID, a reference or a Job, got ${got}`)
  }
  if (on !== undefined && on !== 'done' && on !== 'settled')
    throw new InvalidPosting(`after: on must be 'done' or 'settled' for job ${uuid}`)
  return { uuid, ...(id === undefined ? {} : { id }), ...(on === 'settled' ? { on } : {}) }
}

/** Returns the dependencies as the posting stores them. */
export function toStoredDependencies(named: readonly NamedDependency[]): readonly StoredDependency[] {
  return named.map(({ uuid, on }) => ({ uuid, ...(on ? { on } : {}) }))
}

/**
 * Returns whether a cancelled job never ran, and so goes to the trash without a claim. Only a job with dependencies stays on the board when
 * it is cancelled before its first run.
 */
export function isDoomed({ after, runs }: { readonly after?: unknown; readonly runs: number }): boolean {
  return after !== undefined && runs === 0
}

/**
 * Returns whether a claim that writes this posting begins the first run of a job with dependencies: if the job is doomed, the claim must be
 * refused.
 */
export function isFirstRun({ after, runs }: { readonly after?: unknown; readonly runs: number }): boolean {
  return after !== undefined && runs === 1
}

/** Returns the request by which the end of a job in the trash cancels a job that depends on it. */
export function cascadeCancellation({
  posting: { uuid, name },
  who,
  reason,
}: {
  readonly posting: { readonly uuid: string; readonly name: string }
  readonly who: string
  readonly reason: string
}): { readonly who: string; readonly reason: string } {
  return { who, reason: `job ${uuid} (${name}), on which it depends, is in the trash: ${shortenText(reason)}` }
}
