/**
 * The dependencies between jobs on ZooKeeper.
 *
 *     <path>/<job>/<dependent>            <dependent> is run when <job> is done; its name ends with .settled if it is run in any case
 *     <path>/.waits/<dependent>           exists while <dependent> waits; its deletion is how boards notice that it is ready
 *     <path>/.waits/<dependent>/<job>     <dependent> waits for <job>
 *
 * So no counter is needed, and jobs that end at the same time do not conflict:
 *
 * | transaction | steps beside those of `commit/transactions.ts` | what refuses it |
 * |---|---|---|
 * | post | create both znodes of each dependency | the other job has left the board: its znode cannot have children |
 * | end of a job | delete both znodes of each dependency on it, and `.waits/<dependent>` with the last; or create a cancel request | a dependency that was not known: a znode with children cannot be deleted |
 * | claim | create and delete `.waits/<dependent>`, which proves that it did not exist; or, of a job that has run before, check the cancel request | the job waits |
 *
 * A claim of a job whose `.waits/<dependent>` was seen to be deleted needs no proof: it is created with the job, and never again.
 *
 * Of jobs that end at the same time, the last one deletes `.waits/<dependent>`: see `dependency-release.ts`.
 */
import { BatchCommit } from '../../../core/async/group-commit.ts'
import {
  NodeExists,
  NoNode,
  NotEmpty,
  op,
  type ReadData,
  type ReadResult,
  type ZooKeeper,
  ZooKeeperError,
} from '../../../zookeeper/index.ts'
import { MAX_SHOWN_DEPENDENCIES } from '../../contract/index.ts'
import { pickAtRandom } from '../../model/claim-order.ts'
import type { Dependency } from '../../model/dependencies.ts'
import type { Precheck } from './commit/batch.ts'
import type { TransactionCommitter } from './commit/committer.ts'
import type { TransactionStep } from './commit/transactions.ts'
import {
  DependencyRelease,
  type Dependent,
  DependentsChanged,
  type JobOutcome,
  type Release,
  toDelete,
  toStep,
} from './dependency-release.ts'
import { addBounded, type KnownDependencies } from './known-dependencies.ts'
import { isJob, type Layout } from './store/layout.ts'
import { missingAsUndefined } from './store/reader.ts'

/** The most dependents that one transaction frees, so that it fits into a request. */
const MAX_FREED_AT_ONCE = 500
const READS_AT_ONCE = 500
const MAX_GONE = 10_000
const MAX_LOOKED_AT = 1_000
/** The most jobs of which a sweep looks whether they are still on the board. */
const MAX_SWEPT = 1_000
const SETTLED_SUFFIX = '.settled'

/** The end of a job. */
export interface JobEnd {
  readonly outcome: JobOutcome
  /** Commits steps of a job that stays on the board, because its end alone would be too large. @throws as {@link commit} */
  readonly commitPart: (steps: readonly TransactionStep[], prechecks: readonly Precheck[]) => Promise<void>
  /**
   * Ends the job. The prechecks show whether it would be refused because of its dependents.
   *
   * @throws DependentsChanged if dependents were not known, or the jobs for which they wait have changed since they were read
   */
  readonly commit: (steps: readonly TransactionStep[], prechecks: readonly Precheck[]) => Promise<void>
}

export interface DependencyNodesOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: Layout
  readonly committer: Pick<TransactionCommitter, 'commit'>
  readonly known: KnownDependencies
  /** Called with the jobs that were cancelled because another job ended. */
  readonly onDoomed: (ids: readonly string[]) => void
}

export class DependencyNodes {
  readonly #zookeeper: ZooKeeper
  readonly #layout: Layout
  readonly #committer: DependencyNodesOptions['committer']
  readonly #release: DependencyRelease
  readonly #known: KnownDependencies
  readonly #onDoomed: DependencyNodesOptions['onDoomed']
  /** Jobs that are known to have left the board; their ids are never used again. The oldest are forgotten. */
  readonly #gone = new Set<string>()

  /** Looks again at jobs that may be ready. Jobs that end together share the reads. */
  readonly #looks: BatchCommit<string, void>

  constructor({ zookeeper, layout, committer, known, onDoomed }: DependencyNodesOptions) {
    this.#onDoomed = onDoomed
    this.#zookeeper = zookeeper
    this.#layout = layout
    this.#committer = committer
    this.#known = known
    this.#release = new DependencyRelease({ zookeeper, layout, known })
    this.#looks = new BatchCommit({
      commit: (ids) => this.#freeReady([...new Set(ids)]).then(() => ids.map(() => ({ value: undefined }))),
      bytesOf: () => 1,
      limits: { items: MAX_LOOKED_AT, bytes: MAX_LOOKED_AT },
    })
  }

  /** Returns the steps of a post that register its dependencies. The dependent job has the given id. */
  postSteps(id: string, after: readonly Dependency[]): readonly TransactionStep[] {
    if (after.length === 0) return []
    const layout = this.#layout
    return [
      ...after.map(({ id: other, on }) => toStep(op.create(layout.dependent(other, toName({ id, on })), null), other)),
      { subject: 'wait', op: op.create(layout.wait(id), null) },
      ...after.map(
        ({ id: other }): TransactionStep => ({ subject: 'wait', op: op.create(layout.waitFor(id, other), null) }),
      ),
    ]
  }

  /** Returns the steps of a claim that prove that the job does not wait; none where its wait is known to be deleted, for that is final. */
  proofSteps(id: string): readonly TransactionStep[] {
    if (this.#known.isReady(id)) return []
    const path = this.#layout.wait(id)
    return [
      { subject: 'proof', op: op.create(path, null) },
      { subject: 'proof', op: op.delete(path) },
    ]
  }

  /** Returns the step of a claim that proves that the job, which waits, is cancelled. */
  cancelledStep(id: string): TransactionStep {
    return { subject: 'proof', op: op.check(this.#layout.cancel(id)) }
  }

  async createFolder(): Promise<void> {
    await this.#zookeeper.create(this.#layout.waitsFolder, null).catch((error: unknown) => {
      if (!(error instanceof NodeExists)) throw error
    })
  }

  /** Notes a job that has left the board: posts that would depend on it need not be sent. */
  noteGone(id: string): void {
    addBounded(this.#gone, id, MAX_GONE)
  }

  /** Returns those of the dependencies that are known to have left the board. */
  findGone(after: readonly Dependency[]): readonly string[] {
    return after.flatMap(({ id }) => (this.#gone.has(id) ? [id] : []))
  }

  /**
   * Returns the reads that show which of the dependencies have left the board, once one of a batch has. A server that has answered a
   * refused multi has also applied all that was committed before it: what such a read does not find is gone.
   */
  prechecks(after: readonly Dependency[]): readonly Precheck[] {
    const judge = (id: string, { error }: ReadResult<ReadData>) => {
      if (!(error instanceof NoNode)) return undefined
      this.noteGone(id)
      return new DependencyGoneSignal()
    }
    return after.map(({ id }) => ({
      op: op.getData(this.#layout.posting(id)),
      judge: (found: ReadResult<ReadData>) => judge(id, found),
    }))
  }

  /** Ends a job, and frees the jobs that depend on it. @throws the errors of `commit` and `commitPart`, but DependentsChanged */
  async end(id: string, job: JobEnd): Promise<void> {
    let dependents = this.#known.dependentsOf(id)?.map(toDependent) ?? (await this.#readDependents(id))
    while (true) {
      try {
        while (dependents.length > MAX_FREED_AT_ONCE) {
          await this.#freeSome(id, dependents.slice(0, MAX_FREED_AT_ONCE), job)
          dependents = dependents.slice(MAX_FREED_AT_ONCE)
        }
        await this.#freeRest(id, dependents, job)
        return
      } catch (error) {
        if (!(error instanceof DependentsChanged)) throw error
        this.#known.distrust(id, toIds(dependents))
        dependents = await this.#readDependents(id)
      }
    }
  }

  /** Frees some of the jobs that depend on a job, which stays on the board. */
  async #freeSome(
    id: string,
    dependents: readonly Dependent[],
    { outcome, commitPart }: Pick<JobEnd, 'outcome' | 'commitPart'>,
  ): Promise<void> {
    using part = await this.#release.prepare(id, dependents, outcome)
    await commitPart(part.steps, part.prechecks)
    if (part.cancelled.length > 0) this.#onDoomed(part.cancelled)
    await this.#freeLater(part)
  }

  /** Ends the job, and frees the jobs that still depend on it. */
  async #freeRest(
    id: string,
    dependents: readonly Dependent[],
    { outcome, commit }: Pick<JobEnd, 'outcome' | 'commit'>,
  ): Promise<void> {
    using rest = dependents.length === 0 ? undefined : await this.#release.prepare(id, dependents, outcome)
    await commit(rest?.steps ?? [], [...(rest?.prechecks ?? []), this.#endPrecheck(id, dependents)])
    this.#known.noteEnded(id, toIds(dependents))
    this.noteGone(id)
    if (rest?.cancelled.length) this.#onDoomed(rest.cancelled)
    if (rest) await this.#freeLater(rest)
  }

  /**
   * Returns the read that shows whether a job has other dependents than these. Jobs that end together often have dependents that their
   * owner does not know, because it did not view the board when they were posted.
   */
  #endPrecheck(id: string, known: readonly Dependent[]): Precheck {
    const names = new Set(known.map(({ name }) => name))
    return {
      op: op.getChildren(this.#layout.posting(id)),
      judge: (found: ReadResult<{ readonly names: string[] }>) => {
        if (found.error || found.names.every((name) => names.has(name))) return undefined
        this.#known.note(id)
        return new DependentsChanged()
      },
    }
  }

  /** Deletes what is left of the dependencies of a job that has ended while it waited. */
  async removeWaits(id: string): Promise<void> {
    const path = this.#layout.wait(id)
    const listed = await missingAsUndefined(this.#zookeeper.getChildren(path))
    if (!listed) return
    await Promise.all(listed.names.map((name) => this.#deleteUnused(`${path}/${name}`)))
    await this.#deleteUnused(path)
  }

  /** Returns which of the jobs wait for others. */
  async readWaiting(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>()
    for (let from = 0; from < ids.length; from += READS_AT_ONCE) {
      const part = ids.slice(from, from + READS_AT_ONCE)
      const { results } = await this.#zookeeper.multiRead(part.map((id) => op.getData(this.#layout.wait(id))))
      for (const [index, id] of part.entries()) if (isFound(results[index])) found.add(id)
    }
    return found
  }

  /** Returns the jobs for which this one waits, and those that wait for it. */
  async list(id: string): Promise<{ readonly waitsFor: readonly string[]; readonly dependents: readonly string[] }> {
    const { results } = await this.#zookeeper.multiRead([
      op.getChildren(this.#layout.wait(id)),
      op.getChildren(this.#layout.posting(id)),
    ])
    const [waits, dependents] = results
    return {
      waitsFor: waits.error ? [] : waits.names.slice(0, MAX_SHOWN_DEPENDENCIES),
      dependents: dependents.error
        ? []
        : dependents.names.slice(0, MAX_SHOWN_DEPENDENCIES).map((name) => toDependent(name).id),
    }
  }

  /** Deletes the waits of jobs that are no longer on the board, and those that nobody has deleted after the last dependency was met. */
  async sweep(names: readonly string[]): Promise<void> {
    const layout = this.#layout
    const ids = names.filter(isJob)
    // All are looked at: an idle board is swept once after its last change, and a job that is not freed may keep it idle for ever.
    await Promise.all((await this.#findReady(ids)).map((id) => this.#deleteUnused(layout.wait(id))))
    const left = pickAtRandom(ids, { count: MAX_SWEPT, random: Math.random })
    await Promise.all(
      left.map(async (id) => {
        if (!(await this.#zookeeper.exists(layout.posting(id)))) await this.removeWaits(id)
      }),
    )
  }

  async #readDependents(id: string): Promise<Dependent[]> {
    const listed = await missingAsUndefined(this.#zookeeper.getChildren(this.#layout.posting(id)))
    return (listed?.names ?? []).map(toDependent)
  }

  /** Reads dependents again, and frees those that wait for nothing: their other dependencies may have ended at the same time. */
  async #freeLater({ toReadAgain }: Pick<Release, 'toReadAgain'>): Promise<void> {
    await Promise.all(toReadAgain.map((id) => this.#looks.add(id)))
  }

  /**
   * Frees those of the jobs that wait for nothing. It reads from a server that has applied the end of the caller: of jobs that end at the
   * same time, the one that is committed last sees all. Without a connection, the sweep frees them.
   */
  async #freeReady(ids: readonly string[]): Promise<void> {
    try {
      await Promise.all((await this.#findReady(ids)).map((id) => this.#free(id)))
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
    }
  }

  /** Returns those of the jobs that wait for nothing. */
  async #findReady(ids: readonly string[]): Promise<string[]> {
    const ready: string[] = []
    for (let from = 0; from < ids.length; from += READS_AT_ONCE) {
      const part = ids.slice(from, from + READS_AT_ONCE)
      const { results } = await this.#zookeeper.multiRead(part.map((id) => op.getData(this.#layout.wait(id))))
      ready.push(...part.filter((_, index) => waitsFor(results[index]) === 0))
    }
    return ready
  }

  /** Deletes the wait of a job that waits for nothing, in one transaction with those of others. */
  async #free(id: string): Promise<void> {
    await this.#committer
      .commit<void>({
        what: `release of ${id}`,
        steps: [toDelete(this.#layout.wait(id))],
        touches: [{ name: `wait ${id}`, mode: 'alone' }],
        onCommitted: () => undefined,
        onRecovered: () => undefined,
        toRejection: (error) => error,
      })
      // The sweep deletes it.
      .catch(() => undefined)
  }

  /** Deletes a znode unless it has children. If there is no connection, the sweep deletes it. */
  async #deleteUnused(path: string): Promise<void> {
    await this.#zookeeper.delete(path).catch((error: unknown) => {
      if (!(error instanceof ZooKeeperError)) throw error
    })
  }
}

/** Internal signal: a job on which another one would depend has left the board. */
export class DependencyGoneSignal extends Error {}

/** Returns whether the end of a job was refused because of its dependents. */
export function isDependentsConflict(error: ZooKeeperError, step: TransactionStep | 'guard' | undefined): boolean {
  if (step === undefined || step === 'guard') return false
  if (step.subject === 'posting') return error instanceof NotEmpty
  return step.subject === 'dependency' && [NotEmpty, NodeExists, NoNode].some((type) => error instanceof type)
}

function toName({ id, on }: Dependency): string {
  return on === 'settled' ? `${id}${SETTLED_SUFFIX}` : id
}

function toIds(dependents: readonly Dependent[]): readonly string[] {
  return dependents.map(({ id }) => id)
}

/** Returns the dependent job of this name under the one on which it depends. */
export function toDependent(name: string): Dependent {
  if (!name.endsWith(SETTLED_SUFFIX)) return { id: name, name, on: 'done' }
  return { id: name.slice(0, -SETTLED_SUFFIX.length), name, on: 'settled' }
}

/** Returns for how many jobs a job waits, by its znode in the folder of waits; undefined if it does not wait. */
function waitsFor(read: ReadResult<ReadData> | undefined): number | undefined {
  return read && !read.error ? read.stat.numChildren : undefined
}

function isFound(result: { readonly error?: unknown } | undefined): boolean {
  return result !== undefined && result.error === undefined
}
