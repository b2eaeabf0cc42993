/**
 * Posts in a transaction of the caller's own. A client without an open transaction is refused before anything is
 * written: the post would be committed at once, also if the caller rolls back later.
 *
 * Each post leaves a receipt, in the same transaction and savepoint. So a receipt shows that the job was posted,
 * although it may have left the board since.
 */
import { InvalidArgument } from '../../../core/errors.ts'
import type { SqlDriver } from '../../../postgres/index.ts'
import type { TransactionState } from '../../contract/index.ts'
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

interface CallerPost {
  /** The number of the transaction. */
  readonly transaction: string
  /** The lane of the receipt: see functions/receipts.sql. */
  readonly receipt: string
}

/** Returns the name by which the end of the post's transaction is looked up. */
export function toPostName({ transaction, receipt }: CallerPost): string {
  return `${transaction} ${receipt}`
}

/** Returns how the transaction of a post ended, or that it is open. @throws the error of the driver */
export async function readTransactionState(
  driver: SqlDriver,
  { post, schema }: { readonly post: string; readonly schema: string },
): Promise<TransactionState> {
  const [transaction, receipt] = post.split(' ')
  const { rows } = await driver.query('SELECT pg_xact_status($1::xid8) AS status', [transaction])
  const status = rows[0]?.['status']
  if (status === 'in progress') return 'open'
  if (status === 'aborted') return 'rolled back'
  if (status !== 'committed') return 'unknown'
  // In a query of its own: the snapshot of the first one may be older than the commit.
  const found = await driver.query(`SELECT FROM ${schema}.receipts WHERE lane = $1`, [receipt])
  return found.rows.length > 0 ? 'committed' : 'rolled back'
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

/**
 * Returns an SQL expression that identifies the database of a board: its name, and the time at which the tables of the schema were created. A copy of
 * the database under the same name has the same identity, and so has a server that takes over.
 */
export function boardIdentity(schema: string): string {
  const madeAt = `SELECT extract(epoch FROM min(applied_at))::numeric(20, 6)::text FROM ${schema}.migrations WHERE part = 'board'`
  return `pg_catalog.current_database() || ' ' || coalesce((${madeAt}), '')`
}

/** Reads the identity of a board over a connection of its own. */
export async function readIdentity(driver: SqlDriver, schema: string): Promise<string> {
  const { rows } = await translateErrors('posting', () =>
    driver.query(`SELECT ${boardIdentity(schema)} AS identity`, []),
  )
  return String(rows[0]?.['identity'])
}
