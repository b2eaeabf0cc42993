/**
 * Posts a job in a transaction of the caller's own. A client without an open transaction is refused before anything is
 * written: the post would be committed at once, also if the caller rolls back later.
 */
import { InvalidArgument } from '../../../core/errors.ts'
import type { TransactionState } from '../../backend.ts'
import type { SqlClient } from '../../model/posting.ts'
import { translateErrors } from './errors.ts'

/** SQLSTATE of `LOCK TABLE` outside of a transaction block. */
const NO_TRANSACTION = '25P01'

const TRANSACTION_ADVICE =
  'use one client for the whole transaction: const client = await pool.connect(), then BEGIN, post, COMMIT'

/**
 * Checks that the client has an open transaction. Costs no round trip if the driver knows it (`getTransactionStatus` of newer
 * `pg`). If the driver reports none, the server is asked: a BEGIN that is not awaited may still be queued.
 *
 * @param options.what names the job, for errors
 * @throws InvalidArgument for a pool, and for a client without an open transaction
 */
export async function assertInTransaction(
  client: SqlClient,
  { what, schema }: { readonly what: string; readonly schema: string },
): Promise<void> {
  if (isPool(client))
    throw new InvalidArgument(`${what}: client is a pool, which has no transaction; ${TRANSACTION_ADVICE}`)
  if (driverStatus(client) === 'T') return
  try {
    // The server allows this statement only within a transaction block, and the post takes the same lock anyway.
    await translateErrors(what, () => client.query(`LOCK TABLE ${schema}.boards IN ACCESS SHARE MODE`, []))
  } catch (error) {
    if (Object(error).sqlState !== NO_TRANSACTION) throw error
    throw new InvalidArgument(`${what}: client has no transaction open; ${TRANSACTION_ADVICE}`, { cause: error })
  }
}

/** Returns the state of a transaction. @param status as `pg_xact_status` returns it */
export function parseTransactionState(status: unknown): TransactionState {
  if (status === 'in progress') return 'open'
  if (status === 'committed') return 'committed'
  return status === 'aborted' ? 'rolled back' : 'unknown'
}

function isPool(client: object): boolean {
  const { totalCount, idleCount }: Record<string, unknown> = Object(client)
  return typeof totalCount === 'number' || typeof idleCount === 'number'
}

/** Returns `I` for idle, `T` in a transaction, `E` in a failed one; undefined if the driver does not know. */
function driverStatus(client: object): unknown {
  const { getTransactionStatus }: { readonly getTransactionStatus?: unknown } = Object(client)
  return typeof getTransactionStatus === 'function' ? getTransactionStatus.call(client) : undefined
}
