/**
 * The steps by which the end of a job frees the jobs that depend on it. Exactly one end frees a job that depends on several: the last one.
 *
 * | the other dependencies of the dependent, as read | steps beside the deletion of this one |
 * |---|---|
 * | none | delete `.waits/<dependent>` |
 * | only jobs that this process is ending, without deleting `.waits/<dependent>` | delete `.waits/<dependent>`; refused with one of these ends |
 * | at most 32 | check that one of them exists. If it has ended meanwhile, the check is refused, and the dependent is read again |
 * | more | none; after the transaction, the dependent is read again, and freed if it waits for nothing |
 *
 * With the check, no owner can die between the end of a job and the release of a dependent. Only if more than 32 dependencies end at once,
 * and none of their owners has read the other ends, can these owners die before they read again. Then the sweep frees the dependent.
 */

import { keepNewest } from '../../../../core/collections/keep-newest.ts'
import { NoNode, op, type ReadData, type ReadResult, type ZooKeeper } from '../../../../zookeeper/index.ts'
import { pickAtRandom } from '../../../model/claim-order.ts'
import type { DependencyEnd } from '../../../model/dependencies.ts'
import type { Again } from '../commit/parts.ts'
import type { Precheck, RefusalMeaning, TransactionStep } from '../commit/transaction.ts'
import { deleteStep } from '../commit/transactions.ts'
import type { KnownDependencies } from '../store/known-dependencies.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'

/** The maximum number of dependencies that are read: a thousand ends would each read the names of a thousand. */
const MAX_LISTED = 32
/** The maximum number of dependents whose dependencies are read without counting them first: each may have a thousand. */
const MAX_READ_WHOLE = 16
const MAX_LARGE = 100_000

/** The effect of the end of a job on the jobs that depend on it. */
export type JobOutcome =
  | { readonly outcome: 'done' }
  | { readonly outcome: 'trashed'; readonly cancellation: Uint8Array }

/** A job that depends on another one. */
export interface Dependent {
  readonly id: string
  /** The name of its znode under the other job. */
  readonly name: string
  readonly on: DependencyEnd
}

/** The steps by which the end of a job frees some of the jobs that depend on it. Dispose of it after the commit or the refusal. */
export interface Release extends Disposable {
  readonly steps: readonly TransactionStep[]
  readonly prechecks: readonly Precheck<Again>[]
  /** The cancelled dependents: by this transaction, or before it. */
  readonly cancelled: readonly string[]
  /** Dependents to read again after the transaction: they waited for many other jobs when they were read. */
  readonly toReadAgain: readonly string[]
}

/** The jobs for which a job waits, or their number. */
type Waits = { readonly names: readonly string[] } | { readonly count: number }

interface DependencyReleaseOptions {
  readonly zookeeper: Pick<ZooKeeper, 'multiRead'>
  readonly layout: ZooKeeperLayout
  readonly known: KnownDependencies
}

/** A dependent as it was read; without `waits` it no longer waits. */
interface FoundDependent {
  readonly waits: Waits | undefined
  readonly isCancelled: boolean
}

/** Prepares the release of dependents, for all ends of jobs of one process. */
export class DependencyRelease {
  readonly #zookeeper: Pick<ZooKeeper, 'multiRead'>
  readonly #layout: ZooKeeperLayout
  readonly #known: KnownDependencies
  /** Dependents that waited for more than {@link MAX_LISTED} jobs at their last read. */
  readonly #large = new Set<string>()
  /**
   * The jobs that this process is ending, by the jobs that depend on them; without the ends that delete the wait of the dependent. These
   * ends rely on the others: if the others relied on them, too, all would be refused for ever.
   */
  readonly #ending = new Map<string, Set<string>>()

  constructor({ zookeeper, layout, known }: DependencyReleaseOptions) {
    this.#zookeeper = zookeeper
    this.#layout = layout
    this.#known = known
  }

  /**
   * Returns the steps that free the dependents of a job. Sends no request if the jobs for which they wait are known.
   *
   * @param options.changed what it means that the jobs for which they wait are not as they were read
   * @throws NotConnected
   */
  async prepare(
    id: string,
    dependents: readonly Dependent[],
    { outcome, changed }: { readonly outcome: JobOutcome; readonly changed: RefusalMeaning<Again> },
  ): Promise<Release> {
    const layout = this.#layout
    const found = this.#recall(dependents, outcome) ?? (await this.#read(dependents))
    const steps: TransactionStep[] = []
    const prechecks: Precheck<Again>[] = []
    const toReadAgain: string[] = []
    const cancelled: string[] = []
    const left: string[] = []
    for (const [index, dependent] of dependents.entries()) {
      const { waits, isCancelled } = found[index] ?? {}
      steps.push(deleteStep(op.delete(layout.dependent(id, dependent.name))))
      if (waits === undefined) continue
      if (outcome.outcome === 'trashed' && dependent.on === 'done') {
        cancelled.push(dependent.id)
        if (!isCancelled) steps.push({ op: op.create(layout.cancel(dependent.id), outcome.cancellation) })
        continue
      }
      steps.push(deleteStep(op.delete(layout.waitFor(dependent.id, id))))
      const rest = this.#restOf(dependent.id, { waits, id, changed })
      steps.push(...rest.steps)
      prechecks.push(...rest.prechecks)
      if (rest.isOpen) toReadAgain.push(dependent.id)
      if (!rest.isLast) left.push(dependent.id)
    }
    this.#noteEnding(id, left)
    return { steps, prechecks, cancelled, toReadAgain, [Symbol.dispose]: () => this.#forgetEnding(id, left) }
  }

  /** Returns the steps for the jobs for which a dependent waits, besides the ending job. */
  #restOf(
    dependent: string,
    { waits, id, changed }: { readonly waits: Waits; readonly id: string; readonly changed: RefusalMeaning<Again> },
  ): Pick<Release, 'steps' | 'prechecks'> & { readonly isOpen?: true; readonly isLast?: true } {
    const layout = this.#layout
    const ending = this.#ending.get(dependent) ?? new Set<string>()
    const others = 'names' in waits ? waits.names.filter((name) => name !== id && !ending.has(name)) : []
    const [other] = pickAtRandom(others, { count: 1, random: Math.random })
    if (other !== undefined) {
      const path = layout.waitFor(dependent, other)
      const judge = ({ error }: ReadResult<ReadData>) => (error instanceof NoNode ? changed : undefined)
      return { steps: [{ op: op.check(path) }], prechecks: [{ op: op.getData(path), judge }] }
    }
    if ('count' in waits && waits.count - ending.size > 1) return { steps: [], prechecks: [], isOpen: true }
    const path = layout.wait(dependent)
    const judge = ({ error, stat }: ReadResult<ReadData>) =>
      !error && stat.numChildren > 1 + ending.size ? changed : undefined
    return { steps: [deleteStep(op.delete(path))], prechecks: [{ op: op.getData(path), judge }], isLast: true }
  }

  /**
   * Returns the dependents from the cache; undefined if one is not in it. The cache has no cancel requests, which matter only for a job
   * that goes to the trash.
   */
  #recall(dependents: readonly Dependent[], { outcome }: JobOutcome): readonly FoundDependent[] | undefined {
    if (outcome !== 'done') return undefined
    const found: FoundDependent[] = []
    for (const { id } of dependents) {
      const names = this.#known.waitsOf(id)
      if (!names) return undefined
      found.push({ waits: { names }, isCancelled: false })
    }
    return found
  }

  async #read(dependents: readonly Dependent[]): Promise<readonly FoundDependent[]> {
    const layout = this.#layout
    const areFew = dependents.length <= MAX_READ_WHOLE
    const { results } = await this.#zookeeper.multiRead(
      dependents.flatMap(({ id }) => {
        const path = layout.wait(id)
        const isListed = areFew && !this.#large.has(id)
        return [isListed ? op.getChildren(path) : op.getData(path), op.getData(layout.cancel(id))]
      }),
    )
    const found = dependents.map(({ id }, index) => ({
      id,
      waits: toWaits(results[2 * index]),
      isCancelled: results[2 * index + 1]?.error === undefined,
    }))
    const small = found.filter(({ waits }) => waits && 'count' in waits && waits.count > 1 && waits.count <= MAX_LISTED)
    const listed = await this.#list(small.map(({ id }) => id))
    return found.map(({ id, waits, isCancelled }) => {
      const names = listed.get(id)
      return { waits: this.#noteSize(id, names ? { names } : waits), isCancelled }
    })
  }

  async #list(ids: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    if (ids.length === 0) return new Map()
    const { results } = await this.#zookeeper.multiRead(ids.map((id) => op.getChildren(this.#layout.wait(id))))
    return new Map(ids.map((id, index) => [id, results[index]?.names ?? []]))
  }

  /** Notes whether a dependent waits for more jobs than are listed. Returns these jobs, or their number. */
  #noteSize(id: string, waits: Waits | undefined): Waits | undefined {
    const count = waits && ('names' in waits ? waits.names.length : waits.count)
    if (count === undefined || count <= MAX_LISTED) {
      this.#large.delete(id)
      return waits
    }
    this.#large.add(id)
    keepNewest(this.#large, MAX_LARGE)
    return { count }
  }

  #noteEnding(id: string, dependents: readonly string[]): void {
    for (const dependent of dependents) {
      const ending = this.#ending.get(dependent)
      if (ending) ending.add(id)
      else this.#ending.set(dependent, new Set([id]))
    }
  }

  #forgetEnding(id: string, dependents: readonly string[]): void {
    for (const dependent of dependents) {
      const ending = this.#ending.get(dependent)
      ending?.delete(id)
      if (ending?.size === 0) this.#ending.delete(dependent)
    }
  }
}

function toWaits(read: ReadResult<ReadData> | ReadResult<{ readonly names: string[] }> | undefined): Waits | undefined {
  if (!read || read.error) return undefined
  return 'names' in read ? { names: read.names } : { count: read.stat.numChildren }
}
