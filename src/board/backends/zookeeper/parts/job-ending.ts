/**
 * Ends a job in one transaction with what follows: the jobs that depend on it are freed or cancelled, its batch counts it, and the history
 * gets its entry. If any of this was made of old knowledge, the transaction is made anew.
 */

import { NotEmpty, ZooKeeperError } from '../../../../zookeeper/index.ts'
import type { Settlement, TrashReason } from '../../../contract/index.ts'
import { cascadeCancellation } from '../../../model/dependencies.ts'
import type { TransactionCommitter } from '../commit/committer.ts'
import { AGAIN, type Again, untilDone, withParts } from '../commit/parts.ts'
import type { RefusalMeaning, Transaction } from '../commit/transaction.ts'
import { postingCheckStep } from '../commit/transactions.ts'
import type { BoardKind } from '../store/board-kind.ts'
import { encodeCancellation } from '../store/encoding.ts'
import type { ZooKeeperLayout } from '../store/layout.ts'
import { translateErrors } from '../store/reader.ts'
import type { Waits } from '../store/waits.ts'
import type { BatchCounter, BatchEnding } from './batch-counter.ts'
import { type DependencyEnd, type DependencyParts, MAX_FREED_AT_ONCE } from './dependency-parts.ts'
import type { Dependent, JobOutcome } from './dependency-release.ts'
import type { HistoryJournal } from './history-journal.ts'
import { withoutReserve } from './posting-parts.ts'

export interface JobEndingOptions {
  readonly layout: ZooKeeperLayout
  readonly kind: BoardKind
  readonly committer: TransactionCommitter
  readonly dependencies: DependencyParts
  readonly waits: Waits
  readonly batches: Pick<BatchCounter, 'ending'>
  readonly history: HistoryJournal
}

/** The end of a job; with a reason, it goes to the trash. */
export type JobToEnd = Pick<Settlement, 'id' | 'revision' | 'posting' | 'history' | 'who'> & Partial<TrashReason>

/** The state that all tries of one end share. */
interface Ending {
  readonly job: JobToEnd
  readonly outcome: JobOutcome
  readonly transaction: Transaction<Again | undefined>
  /** The meaning of a refusal because the jobs that depend on the job are not as they were read. */
  readonly changed: RefusalMeaning<Again>
  /** Returns what its batch adds; absent for a job without a batch. */
  readonly countEnd: (() => Promise<BatchEnding | undefined>) | undefined
}

export class JobEnding {
  readonly #options: JobEndingOptions

  constructor(options: JobEndingOptions) {
    this.#options = options
  }

  /** @param transaction removes the job from the board */
  async end(job: JobToEnd, transaction: Transaction<undefined>): Promise<void> {
    const { dependencies, waits, batches, history, kind } = this.#options
    const { id, posting, reason } = job
    const { batch, uuid } = posting
    const cancellation = reason === undefined ? undefined : cascadeCancellation({ ...job, reason })
    let dependents = dependencies.knownDependents(id)
    const changed: RefusalMeaning<Again> = {
      answer: () => {
        dependencies.distrust(id, dependents ?? [])
        dependents = undefined
        return AGAIN
      },
    }
    const ending: Ending = {
      ...{ job, changed },
      outcome: cancellation
        ? { outcome: 'trashed', cancellation: encodeCancellation(cancellation, kind.encoding) }
        : { outcome: 'done' },
      transaction: {
        ...transaction,
        onRefused: (error, step) =>
          // A znode with children: there are dependents that were not known.
          error instanceof NotEmpty && step !== 'guard' && step?.subject === 'posting'
            ? changed
            : transaction.onRefused(error, step),
      },
      countEnd:
        batch === undefined ? undefined : batches.ending({ batch, uuid, id, trashed: cancellation !== undefined }),
    }
    await untilDone<undefined>(async () => {
      let left: readonly Dependent[] =
        dependents ?? (await translateErrors(transaction.what, () => dependencies.readDependents(id)))
      dependents = left
      while (left.length > MAX_FREED_AT_ONCE) {
        if ((await this.#freeSome(ending, left.slice(0, MAX_FREED_AT_ONCE))) === AGAIN) return AGAIN
        left = left.slice(MAX_FREED_AT_ONCE)
        dependents = left
      }
      return this.#end(ending, left)
    })
    if (job.history) history.added(job.history)
    // It may have ended while it waited, because it was cancelled.
    if (posting.after && cancellation) await waits.remove(id).catch(ignoreFailure)
  }

  /**
   * Frees some of the jobs that depend on a job, because its end alone would be too large. The job is done, and stays on the board until
   * all that depend on it are free: if its owner dies meanwhile, another one goes on.
   */
  async #freeSome(ending: Ending, dependents: readonly Dependent[]): Promise<Again | undefined> {
    const { job, transaction } = ending
    const { layout, committer } = this.#options
    using freeing = await this.#freeingPart(ending, dependents)
    const steps = [postingCheckStep(layout, job.id, job), ...freeing.steps]
    const answer = await committer.commit<Again | undefined>(withParts({ ...transaction, steps }, [freeing.part]))
    if (answer === AGAIN) return AGAIN
    await freeing.freed()
    return undefined
  }

  #freeingPart(
    { job, outcome, transaction, changed }: Ending,
    dependents: readonly Dependent[],
  ): Promise<DependencyEnd> {
    const { dependencies } = this.#options
    return translateErrors(transaction.what, () => dependencies.endPart(job.id, dependents, { outcome, changed }))
  }

  /** Tries to end the job, and to free the jobs that still depend on it. */
  async #end(ending: Ending, dependents: readonly Dependent[]): Promise<Again | undefined> {
    const { job, transaction, changed, countEnd } = ending
    const { committer, dependencies, history } = this.#options
    using freeing = dependents.length === 0 ? undefined : await this.#freeingPart(ending, dependents)
    const counting = countEnd && (await countEnd())
    const preparing = job.history && history.prepare()
    // Without this condition, jobs that end together would be sent in several transactions.
    if (preparing) await preparing
    const entry = job.history && history.part(job.history)
    const before = freeing ? [...freeing.steps, ...transaction.steps] : transaction.steps
    const counted = counting ? [...before, ...counting.steps] : before
    const whole = counting ? [...counted, ...counting.finish] : counted
    const isFinished =
      counting !== undefined &&
      counting.finish.length > 0 &&
      committer.sizeOf(whole) + (entry?.entry.bytes.length ?? 0) <= withoutReserve(committer.maxBytes)
    const sent = {
      ...transaction,
      steps: isFinished ? whole : counted,
      prechecks: [dependencies.othersPrecheck(job.id, dependents, changed)],
    }
    const answer = await committer.commit<Again | undefined>(withParts(sent, [freeing?.part, counting?.part, entry]))
    if (answer === AGAIN) return AGAIN
    counting?.counted({ isFinished })
    dependencies.noteEnded(job.id, dependents)
    await freeing?.freed()
    return undefined
  }
}

function ignoreFailure(error: unknown): void {
  if (!(error instanceof ZooKeeperError)) throw error
}
