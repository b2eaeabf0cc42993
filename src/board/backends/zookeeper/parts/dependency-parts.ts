/**
 * The parts that dependencies between jobs add to transactions.
 *
 *     <path>/<job>/<dependent>            <dependent> is run when <job> is done; its name ends with .settled if it is run in any case
 *     <path>/.waits/<dependent>           exists while <dependent> waits; its deletion is how boards notice that it is ready
 *     <path>/.waits/<dependent>/<job>     <dependent> waits for <job>
 *
 * So no counter is needed, and jobs that end at the same time do not conflict:
 *
 * | transaction | steps beside the steps of `commit/transactions.ts` | what refuses it |
 * |---|---|---|
 * | post | create both znodes of each dependency | the other job has left the board: its znode cannot have children |
 * | end of a job | delete both znodes of each dependency on it, and `.waits/<dependent>` with the last; or create a cancel request | a dependency that was not known: a znode with children cannot be deleted |
 * | claim | create and delete `.waits/<dependent>`, which proves that it did not exist; or, of a job that has run before, check the cancel request | the job waits |
 *
 * A claim of a job whose `.waits/<dependent>` was seen to be deleted needs no proof: it is created with the job, and never again.
 *
 * Of jobs that end at the same time, the last one deletes `.waits/<dependent>`: see `dependency-release.ts`.
 */

import { ItemCommit } from '../../../../core/async/group-commit.ts'
import { keepNewest } from '../../../../core/collections/keep-newest.ts'
import {
  NodeExists,
  NoNode,
  NotEmpty,
  op,
  type ReadData,
  type ReadResult,
  type ZooKeeper,
  ZooKeeperError,
} from '../../../../zookeeper/index.ts'
import type { Dependency } from '../../../model/dependencies.ts'
import type { TransactionCommitter } from '../commit/committer.ts'
import type { Again, TransactionPart } from '../commit/parts.ts'
import type { Precheck, RefusalMeaning, TransactionStep } from '../commit/transaction.ts'
import { deleteStep } from '../commit/transactions.ts'
import type { KnownDependencies } from '../store/known-dependencies.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import { missingAsUndefined } from '../store/reader.ts'
import type { Waits } from '../store/waits.ts'
import { DependencyRelease, type Dependent, type JobOutcome } from './dependency-release.ts'

/** The most dependents that one transaction frees, so that it fits into a request. */
export const MAX_FREED_AT_ONCE = 500
const MAX_GONE = 10_000
const MAX_LOOKED_AT = 1_000
const SETTLED_SUFFIX = '.settled'

export interface DependencyPartsOptions {
  readonly zookeeper: ZooKeeper
  readonly layout: ZooKeeperLayout
  readonly committer: Pick<TransactionCommitter, 'commit'>
  readonly known: KnownDependencies
  readonly waits: Pick<Waits, 'findReady'>
  /** Called with the jobs that were cancelled because another job ended. */
  readonly onDoomed: (ids: readonly string[]) => void
}

/** The steps that the end of a job adds for some jobs that depend on it. Dispose of them after the commit or the refusal. */
export interface DependencyEnd extends Disposable {
  readonly steps: readonly TransactionStep[]
  readonly part: TransactionPart<Again>
  /** Called when the transaction is committed; frees dependents whose other dependencies may have ended at the same time. */
  freed(): Promise<void>
}

export class DependencyParts {
  readonly #options: DependencyPartsOptions
  readonly #release: DependencyRelease
  /** Jobs that are known to have left the board; their ids are never used again. The oldest are forgotten. */
  readonly #gone = new Set<string>()
  /** Looks again at jobs that may be ready. Jobs that end together share the reads. */
  readonly #readyChecks: ItemCommit<string, void>

  constructor(options: DependencyPartsOptions) {
    this.#options = options
    this.#release = new DependencyRelease(options)
    this.#readyChecks = new ItemCommit({
      commit: (ids) => this.#freeReady([...new Set(ids)]).then(() => ids.map(() => ({ value: undefined }))),
      bytesOf: () => 1,
      limits: { items: MAX_LOOKED_AT, bytes: MAX_LOOKED_AT },
    })
  }

  /**
   * Returns the part of a post that registers its dependencies. The dependent job has the given id.
   *
   * @param toAnswer returns the answer of the post if some of the other jobs, with these ids, have left the board
   */
  postPart<T>(id: string, after: readonly Dependency[], toAnswer: (gone: readonly string[]) => T): TransactionPart<T> {
    const { layout } = this.#options
    const refusal: RefusalMeaning<T> = { answer: () => toAnswer(this.findGone(after)) }
    const registrations = after.map(({ id: other, on }) => ({
      other,
      op: op.create(layout.dependent(other, toName({ id, on })), null),
    }))
    const waits: readonly TransactionStep[] = [
      { op: op.create(layout.wait(id), null) },
      ...after.map(({ id: other }) => ({ op: op.create(layout.waitFor(id, other), null) })),
    ]
    return {
      steps: [...registrations, ...waits],
      prechecks: after.map(({ id: other }) => this.#gonePrecheck(other, refusal)),
      getConflict: () => (this.findGone(after).length === 0 ? undefined : refusal),
      repair: (step, error) => (waits.includes(step) ? this.createMissingFolder(step, error) : undefined),
      onRefused: (error, step) => {
        const refused = registrations.find((each) => each === step)
        if (!refused || !(error instanceof NoNode)) return undefined
        this.#noteGone(refused.other)
        return refusal
      },
    }
  }

  /**
   * Returns the part of a claim that proves that the job does not wait; undefined where its wait is known to be deleted, for that is final.
   *
   * @param onWaits returns what it means that the job waits
   */
  proofPart<T>(id: string, onWaits: () => RefusalMeaning<T>): TransactionPart<T> | undefined {
    if (this.#options.known.isReady(id)) return undefined
    const path = this.#options.layout.wait(id)
    return {
      steps: [{ op: op.create(path, null) }, { op: op.delete(path) }],
      repair: (step, error) => this.createMissingFolder(step, error),
      onRefused: (error) => (isWaiting(error) ? onWaits() : undefined),
    }
  }

  /** Returns the part of a claim that proves that the job, which waits, is cancelled. */
  cancelledPart<T>(id: string, onWaits: () => RefusalMeaning<T>): TransactionPart<T> {
    return {
      steps: [{ op: op.check(this.#options.layout.cancel(id)) }],
      onRefused: (error) => (isWaiting(error) ? onWaits() : undefined),
    }
  }

  /** Returns the repair of a step that was refused because the folder of the jobs that wait is missing: the first of them creates it. */
  createMissingFolder({ op: { type } }: TransactionStep, error: ZooKeeperError): (() => Promise<void>) | undefined {
    return type === 'create' && error instanceof NoNode ? () => this.#createFolder() : undefined
  }

  async #createFolder(): Promise<void> {
    const { zookeeper, layout } = this.#options
    await zookeeper.create(layout.waitsFolder, null).catch((error: unknown) => {
      if (!(error instanceof NodeExists)) throw error
    })
  }

  /** Returns the dependencies that are known to have left the board: posts that would depend on them need not be sent. */
  findGone(after: readonly Dependency[]): readonly string[] {
    return after.flatMap(({ id }) => (this.#gone.has(id) ? [id] : []))
  }

  #noteGone(id: string): void {
    this.#gone.add(id)
    keepNewest(this.#gone, MAX_GONE)
  }

  /**
   * Returns the read that shows whether a job has left the board, once another one of the batch has. A server that has answered a refused
   * multi has also applied all that was committed before it: what such a read does not find is gone.
   */
  #gonePrecheck<T>(id: string, refusal: RefusalMeaning<T>): Precheck<T> {
    return {
      op: op.getData(this.#options.layout.posting(id)),
      judge: ({ error }: ReadResult<ReadData>) => {
        if (!(error instanceof NoNode)) return undefined
        this.#noteGone(id)
        return refusal
      },
    }
  }

  /** Returns the jobs that depend on a job; undefined if they have to be read. */
  knownDependents(id: string): readonly Dependent[] | undefined {
    return this.#options.known.dependentsOf(id)?.map(toDependent)
  }

  /** Reads the jobs that depend on a job. */
  async readDependents(id: string): Promise<readonly Dependent[]> {
    const { zookeeper, layout } = this.#options
    const listed = await missingAsUndefined(zookeeper.getChildren(layout.posting(id)))
    return (listed?.names ?? []).map(toDependent)
  }

  /**
   * Returns what the end of a job adds for these jobs that depend on it. Sends no request if the jobs for which they wait are known.
   *
   * @param options.changed what it means that the dependents, or the jobs for which they wait, are not as they were read
   */
  async endPart(
    id: string,
    dependents: readonly Dependent[],
    { outcome, changed }: { readonly outcome: JobOutcome; readonly changed: RefusalMeaning<Again> },
  ): Promise<DependencyEnd> {
    const release = await this.#release.prepare(id, dependents, { outcome, changed })
    const { steps, prechecks, cancelled, toReadAgain } = release
    return {
      steps,
      part: {
        ...{ steps, prechecks },
        onRefused: (error) => (isChanged(error) ? changed : undefined),
      },
      freed: async () => {
        if (cancelled.length > 0) this.#options.onDoomed(cancelled)
        await Promise.all(toReadAgain.map((each) => this.#readyChecks.add(each)))
      },
      [Symbol.dispose]: () => release[Symbol.dispose](),
    }
  }

  /**
   * Returns the read that shows whether a job has other dependents than these. Jobs that end together often have dependents that their
   * owner does not know, because it did not view the board when they were posted.
   */
  othersPrecheck(id: string, dependents: readonly Dependent[], changed: RefusalMeaning<Again>): Precheck<Again> {
    return {
      op: op.getChildren(this.#options.layout.posting(id)),
      judge: ({ error, names = [] }: ReadResult<{ readonly names: string[] }>) => {
        if (error) return undefined
        const known = new Set(dependents.map(({ name }) => name))
        if (names.every((name) => known.has(name))) return undefined
        this.#options.known.note(id)
        return changed
      },
    }
  }

  /** Notes that a job has ended, and that these jobs no longer wait for it. */
  noteEnded(id: string, dependents: readonly Dependent[]): void {
    this.#options.known.noteEnded(id, toIds(dependents))
    this.#noteGone(id)
  }

  /** Forgets what is known of the dependents of a job, because a transaction was refused by it: the servers are asked next. */
  distrust(id: string, dependents: readonly Dependent[]): void {
    this.#options.known.distrust(id, toIds(dependents))
  }

  /**
   * Frees the jobs that wait for nothing. It reads from a server that has applied the end of the caller: if jobs end at the same time,
   * the end that is committed last sees all. Without a connection, the sweep frees them.
   */
  async #freeReady(ids: readonly string[]): Promise<void> {
    try {
      await Promise.all((await this.#options.waits.findReady(ids)).map((id) => this.#free(id)))
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
    }
  }

  /** Deletes the wait of a job that waits for nothing, in one transaction with the waits of other jobs. */
  async #free(id: string): Promise<void> {
    await this.#options.committer
      .commit<void>({
        what: `release of ${id}`,
        steps: [deleteStep(op.delete(this.#options.layout.wait(id)))],
        touches: [{ name: `wait ${id}`, mode: 'alone' }],
        onCommitted: () => undefined,
        onRecovered: () => undefined,
        onRefused: (error) => error,
      })
      // The sweep deletes it.
      .catch(() => undefined)
  }
}

function isWaiting(error: ZooKeeperError): boolean {
  return error instanceof NodeExists || error instanceof NoNode
}

function isChanged(error: ZooKeeperError): boolean {
  return error instanceof NotEmpty || error instanceof NodeExists || error instanceof NoNode
}

function toName({ id, on }: Dependency): string {
  return on === 'settled' ? `${id}${SETTLED_SUFFIX}` : id
}

function toIds(dependents: readonly Dependent[]): readonly string[] {
  return dependents.map(({ id }) => id)
}

/** Returns the dependent job of this name under the job on which it depends. */
export function toDependent(name: string): Dependent {
  if (!name.endsWith(SETTLED_SUFFIX)) return { id: name, name, on: 'done' }
  return { id: name.slice(0, -SETTLED_SUFFIX.length), name, on: 'settled' }
}
