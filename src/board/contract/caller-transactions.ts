/** Posts in a transaction of the caller, which may be committed or rolled back. */
import type { SqlClient } from '../model/posting/post-options.ts'
import type { Posted, PostRequest } from './jobs.ts'

export interface BackendCallerTransactions {
  /**
   * Posts a job in the transaction that is open on this client.
   *
   * @throws InvalidArgument for what is no client, for a pool, and for a client that has no transaction open: nothing was posted
   */
  post(client: SqlClient, request: PostRequest): Promise<PostedInTransaction>
  /** Returns whether the transaction of {@link post} is still open, or how it ended for the post. Errors: NotConnected. */
  stateOf(transaction: string): Promise<TransactionState>
}

/** The result of a post in a transaction of the caller, with the name of the transaction, by which its end can be looked up. */
export type PostedInTransaction = Posted & { readonly transaction: string }

/**
 * The state of a post in a transaction of the caller. `rolled back`: as a whole, or to a savepoint before the post. `unknown`: the
 * server has no record of the transaction any more. Ask within a day of the post: after that, `rolled back` may also mean that the
 * record was deleted.
 */
export type TransactionState = 'open' | 'committed' | 'rolled back' | 'unknown'
