/**
 * Finds the jobs after which a job is to be run, for its post or its restoration.
 *
 * | the other job | a dependency `on: 'done'` | a dependency `on: 'settled'` |
 * |---|---|---|
 * | is on the board | is registered with the post | is registered with the post |
 * | is done, by the history | is met: left out | is met: left out |
 * | is in the trash, by the history | InvalidState | is met: left out |
 * | is neither | NotFound | NotFound |
 *
 * A job may end between this and the post. The post then does nothing and names the jobs that have, which are looked up again: in the history first, where most
 * are found done. Many posts may name jobs that end meanwhile: they share the reads of the history, and jobs that are known to be done are
 * remembered by their ids, which are never used again.
 *
 * A reference may be of another board, where jobs have ids like those of this one: an id is used only where the job with it has the uuid of the reference.
 * A `Job` whose end was seen is met without the history, unless another board object has seen it: its board may be another one.
 */
import { ItemCommit } from '../../core/async/group-commit.ts'
import { keepNewest } from '../../core/collections/keep-newest.ts'
import { InvalidState, NotFound } from '../../core/errors.ts'
import type { Backend } from '../contract/index.ts'
import { Job } from '../jobs/job.ts'
import { type Dependency, type NamedDependency, type PostDependency, parseDependencies } from '../model/dependencies.ts'
import type { EndedJob } from '../model/ended-job.ts'
import type { Lookup } from './lookup.ts'

export interface DependencyResolverOptions {
  readonly backend: Pick<Backend, 'uri' | 'history'>
  readonly lookup: Pick<Lookup, 'locateAll' | 'uuidsOf' | 'owns'>
}

/** A job to post or to restore: its name for errors, and the jobs after which it is run, as the caller has named them. */
export interface DependentJob {
  readonly uuid: string
  readonly name: string
  readonly after?: readonly PostDependency[] | undefined
  /** Whether the job is restored from the trash, for the error; it is posted otherwise. */
  readonly isRestored?: boolean
}

/** A dependency that is not known to be met, of the job with this index; without an id the other job has to be looked for. */
interface OpenDependency {
  readonly dependent: DependentJob
  readonly index: number
  readonly named: NamedDependency
  id: string | undefined
  /** The id that it had when a write said that the job had left the board. */
  goneId?: string
}

/** The number of jobs whose ids are remembered as done, or as those of this board. */
const MAX_REMEMBERED = 10_000
/** The number of uuids in one read of the history. */
const MAX_READ = 2_000

export class DependencyResolver {
  readonly #options: DependencyResolverOptions
  /** The uuids of jobs that are done, by their ids. The oldest are forgotten. */
  readonly #done = new Map<string, string>()
  /** The uuids of jobs of this board, by their ids: its own posts, and jobs that were read. The oldest are forgotten. */
  readonly #own = new Map<string, string>()
  /** Reads of the history, which all that wait share. */
  readonly #ended: ItemCommit<readonly string[], readonly (EndedJob | undefined)[]>

  constructor(options: DependencyResolverOptions) {
    this.#options = options
    this.#ended = new ItemCommit({
      commit: (asked) => this.#readEnded(asked),
      bytesOf: (uuids) => uuids.length,
      limits: { items: MAX_READ, bytes: MAX_READ },
    })
  }

  /**
   * Calls `write` with the dependencies of each job that are not met, again if one of those jobs has ended meanwhile.
   *
   * @param write returns the ids of jobs that have ended, in which case it has done nothing
   * @throws NotFound for a job that is neither on the board nor in its history; InvalidState for one in the trash; what `write` throws
   */
  async register<T extends object>(
    dependents: readonly DependentJob[],
    write: (after: readonly (readonly Dependency[])[]) => Promise<T | { readonly gone: readonly string[] }>,
  ): Promise<T> {
    let open = dependents.flatMap((dependent, index) =>
      this.#toNamed(dependent)
        .filter(({ uuid, id }) => id === undefined || this.#done.get(id) !== uuid)
        .map((named): OpenDependency => ({ dependent, index, named, id: named.id })),
    )
    if (open.length > 0) open = await this.#withoutMistaken(open)
    while (true) {
      open = await this.#locate(open)
      const after = dependents.map((): Dependency[] => [])
      for (const { index, named, id = '' } of open) after[index]?.push({ id, on: named.on ?? 'done' })
      const written = await write(after)
      if (!isGone(written)) return written
      // A reference may be of the time before the job was restored: it is looked for by its uuid.
      const gone = new Set(written.gone)
      for (const dependency of open) {
        const { id } = dependency
        if (id !== undefined && gone.has(id)) Object.assign(dependency, { id: undefined, goneId: id })
      }
      open = await this.#withoutDone(open)
    }
  }

  /** Notes a job that was posted to this board. */
  notePosted(job: { readonly id: string; readonly uuid: string }): void {
    remember(this.#own, job)
  }

  /** Returns the dependencies, without the ids that other jobs have on this board: those are looked for by their uuids. */
  async #withoutMistaken(open: readonly OpenDependency[]): Promise<OpenDependency[]> {
    const named = open.flatMap(({ id, named: { uuid } }) => {
      return id === undefined || this.#own.get(id) === uuid ? [] : [{ id, uuid }]
    })
    if (named.length === 0) return [...open]
    const uuids = await this.#options.lookup.uuidsOf(named.map(({ id }) => id))
    for (const [id, uuid] of uuids) remember(this.#own, { id, uuid })
    const isMistaken = ({ id = '', named: { uuid } }: OpenDependency) => (uuids.get(id) ?? uuid) !== uuid
    return open.map((each) => (isMistaken(each) ? { ...each, id: undefined } : each))
  }

  /** Returns the dependencies, except on jobs that are done as the history says. */
  async #withoutDone(open: readonly OpenDependency[]): Promise<OpenDependency[]> {
    const gone = open.filter(({ id, goneId }) => id === undefined && goneId !== undefined)
    const ended = await this.#ended.add(gone.map(({ named }) => named.uuid))
    const done = new Set(gone.filter((_, index) => ended[index]?.outcome === 'COMPLETE'))
    for (const { goneId = '', named } of done) remember(this.#done, { id: goneId, uuid: named.uuid })
    return open.filter((dependency) => !done.has(dependency))
  }

  async #readEnded(
    asked: readonly (readonly string[])[],
  ): Promise<readonly { readonly value: readonly (EndedJob | undefined)[] }[]> {
    const uuids = [...new Set(asked.flat())]
    const read = uuids.length === 0 ? [] : await this.#options.backend.history.find(uuids)
    const ended = new Map(uuids.map((uuid, index) => [uuid, read[index]]))
    return asked.map((each) => ({ value: each.map((uuid) => ended.get(uuid)) }))
  }

  /** Finds the ids of the jobs that have none. Returns the dependencies that are not met. */
  async #locate(open: readonly OpenDependency[]): Promise<OpenDependency[]> {
    const unknown = open.filter(({ id }) => id === undefined)
    if (unknown.length === 0) return [...open]
    const { lookup } = this.#options
    const entries = await lookup.locateAll(unknown.map(({ named }) => named.uuid))
    for (const [index, dependency] of unknown.entries()) dependency.id = entries[index]?.id
    const missing = unknown.filter(({ id }) => id === undefined)
    const ended = await this.#ended.add(missing.map(({ named }) => named.uuid))
    for (const [index, dependency] of missing.entries()) this.#assertMet(dependency, ended[index])
    return open.filter(({ id }) => id !== undefined)
  }

  /** Returns the jobs that the caller has named, with the ids that are known. @throws InvalidPosting */
  #toNamed({ uuid, after }: DependentJob): readonly NamedDependency[] {
    const named = after?.map((each) => (each instanceof Job ? { uuid: each.ref } : each))
    const done = new Set(after?.flatMap((each) => (this.#isKnownDone(each) ? [each.uuid] : [])))
    return (parseDependencies(named, { uuid }) ?? []).filter((dependency) => !done.has(dependency.uuid))
  }

  /** Returns whether this board object has seen the job done, so that the history need not know it. */
  #isKnownDone(named: PostDependency): named is Job {
    if (!(named instanceof Job)) return false
    const entry = Job.entryFor(named)
    return entry.ended === 'COMPLETE' && this.#options.lookup.owns(entry)
  }

  #assertMet({ dependent, named }: OpenDependency, ended: EndedJob | undefined): void {
    const what = `job ${dependent.uuid} (${dependent.name}): after: job ${named.uuid}`
    if (!ended) throw new NotFound(`${what} is neither on the board (${this.#options.backend.uri}) nor in its history`)
    if (ended.outcome !== 'TRASHED' || named.on === 'settled') return
    const remedy = dependent.isRestored
      ? 'restore that one, with its dependents (in a shell: --dependents)'
      : "restore it first, or name it with on: 'settled' (in a shell: --after-settled)"
    throw new InvalidState(`${what} is in the trash: ${remedy}`)
  }
}

function remember(jobs: Map<string, string>, { id, uuid }: { readonly id: string; readonly uuid: string }): void {
  jobs.set(id, uuid)
  keepNewest(jobs, MAX_REMEMBERED)
}

function isGone(written: object): written is { readonly gone: readonly string[] } {
  return 'gone' in written
}
