/** Transactions of a group: what they do with their results, and their part of the answer to the multi. */
import type { SharedResults } from '../../../../core/async/shared-results.ts'
import { toFailed } from '../../../../core/result.ts'
import type { ComposedMulti, QueuedTransaction } from './multi.ts'
import type { Applied, CommittedTransaction, Transaction, TransactionStep } from './transaction.ts'

/** One of several transactions that share a promise. It has methods in place of closures, because a worker makes hundreds of these at once. */
export class SharedTransaction<T> implements QueuedTransaction {
  readonly transaction: Transaction<T>
  readonly until: number
  leftOut?: Set<TransactionStep>
  brokenConnections?: number
  readonly #results: SharedResults<T>
  readonly #index: number

  constructor(
    transaction: Transaction<T>,
    until: number,
    { results, index }: { results: SharedResults<T>; index: number },
  ) {
    this.transaction = transaction
    this.until = until
    this.#results = results
    this.#index = index
  }

  resolve(value: unknown): void {
    // What a transaction resolves with is its own result.
    this.#results.resolve(this.#index, value as T | Promise<T>)
  }

  reject(error: unknown): void {
    this.#results.settle(this.#index, toFailed(error))
  }
}

/** The part of one transaction in the answer to a multi. Few transactions read their results, so they are looked up when they are read. */
export class AppliedPart implements Applied {
  readonly zxid: bigint
  readonly session: bigint
  readonly #composed: ComposedMulti
  readonly #place: number
  readonly #results: Applied['results']

  constructor(
    { zxid, session }: CommittedTransaction,
    { composed, place, results }: { composed: ComposedMulti; place: number; results: Applied['results'] },
  ) {
    this.zxid = zxid
    this.session = session
    this.#composed = composed
    this.#place = place
    this.#results = results
  }

  get results(): Applied['results'] {
    return this.#composed.resultsOf(this.#place, this.#results)
  }
}
