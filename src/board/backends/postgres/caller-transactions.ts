/**
 * Posts in a transaction of the caller's own. A client without an open transaction is refused before anything is
 * written: the post would be committed at once, also if the caller rolls back later.
 *
 * Each post leaves a receipt, in the same transaction and savepoint. So a receipt shows that the job was posted,
 * although it may have left the board since.
 */
import { InvalidArgument, InvalidState } from '../../../core/errors.ts'
import { newUuid } from '../../../core/uuid.ts'
import type {
  BackendCallerTransactions,
  PostedInTransaction,
  PostRequest,
  TransactionState,
} from '../../contract/index.ts'
import type { SqlClient } from '../../model/posting/post-options.ts'
import type { Posting } from '../../model/posting/posting.ts'
import { toJobName } from './commit/grouping.ts'
import {
  encodePost,
  NONE_LEFT,
  type PostAnswer,
  readLeftStatuses,
  toPostParameters,
  toPostResults,
} from './commit/post-calls.ts'
import type { PostgresBoard } from './store/board.ts'
import { translateErrors } from './store/errors.ts'
import { jobNumber } from './store/rows.ts'

/** SQLSTATE of `LOCK TABLE` outside of a transaction block. */
const NO_TRANSACTION = '25P01'
/** SQLSTATEs of a function, and of a schema, that does not exist. */
const NO_FUNCTION = '42883'
const NO_SCHEMA = '3F000'

const TRANSACTION_ADVICE =
  'use one client for the whole transaction: const client = await pool.connect(), then BEGIN, post, COMMIT'

export class PostgresCallerTransactions implements BackendCallerTransactions {
  readonly #board: PostgresBoard
  #knownIdentity: string | undefined

  constructor(board: PostgresBoard) {
    this.#board = board
  }

  /** Posts with one statement. The answer is not kept: its recovery is up to the caller. */
  async post(client: SqlClient, request: PostRequest): Promise<PostedInTransaction> {
    if (typeof client?.query !== 'function')
      throw new InvalidArgument('post: client must be a client of the pg package, as in await pool.connect()')
    this.#board.assertOpen()
    const { schema, number } = this.#board
    const what = `post of ${toJobName(request.posting)}`
    const encoded = encodePost(request)
    await assertInTransaction(client, { what, schema })
    const receipt = newUuid()
    // The receipt is passed as a lane: see `functions/receipts.sql`.
    const values = [await this.#databaseIdentity(), receipt, number, ...toPostParameters([encoded])]
    const parameters = values.map((_, index) => `$${index + 1}`).join(', ')
    const text = `SELECT ${schema}.post_in_transaction(${parameters})::text AS answer, pg_current_xact_id()::text AS transaction`
    const { rows } = await translateErrors(what, () => client.query(text, values)).catch((error: unknown) => {
      throw [NO_FUNCTION, NO_SCHEMA].includes(Object(error).sqlState) ? otherDatabaseError(what, error) : error
    })
    const { answer, transaction } = rows[0] ?? {}
    if (answer === null) throw otherDatabaseError(what)
    const [result] = toPostResults([encoded], JSON.parse(String(answer)) as PostAnswer, NONE_LEFT)
    if (!result) throw new InvalidState(`${what}: the server did not answer`)
    if ('error' in result) throw result.error
    const posted = result.value
    if ('gone' in posted) await this.#assertGone(posted.gone, request.posting)
    return { ...posted, transaction: `${String(transaction)} ${receipt}` }
  }

  async stateOf(transaction: string): Promise<TransactionState> {
    return translateErrors('looking for the end of a transaction', () => this.#readState(transaction))
  }

  /** Returns the identity of the board's database, which is read once. */
  async #databaseIdentity(): Promise<string> {
    const { pool, schema } = this.#board
    const text = `SELECT ${schema}.database_identity() AS identity`
    const read = async () => (await translateErrors('posting', () => pool.query(text, []))).rows[0]?.['identity']
    this.#knownIdentity ??= String(await read())
    return this.#knownIdentity
  }

  /** Checks that jobs which the caller's transaction does not see are not on the board. @throws InvalidState */
  async #assertGone(ids: readonly string[], posting: Posting): Promise<void> {
    const gone = await readLeftStatuses(this.#board, ids.map(jobNumber))
    const id = ids.find((each) => !gone.has(jobNumber(each)))
    if (id === undefined) return
    throw new InvalidState(
      `post of ${toJobName(posting)}: it is to be run after ${id}, which the transaction does not see, because it was posted after the ` +
        'snapshot of the transaction: use the isolation level READ COMMITTED, or post that job first',
    )
  }

  /** Returns how the transaction of a post ended, or that it is open. Errors are the driver's own. */
  async #readState(post: string): Promise<TransactionState> {
    const { pool, schema } = this.#board
    const [transaction, receipt] = post.split(' ')
    const { rows } = await pool.query('SELECT pg_xact_status($1::xid8) AS status', [transaction])
    const status = rows[0]?.['status']
    if (status === 'in progress') return 'open'
    if (status === 'aborted') return 'rolled back'
    if (status !== 'committed') return 'unknown'
    // In a query of its own: the snapshot of the first one may be older than the commit.
    const found = await pool.query(`SELECT FROM ${schema}.receipts WHERE lane = $1`, [receipt])
    return found.rows.length > 0 ? 'committed' : 'rolled back'
  }
}

/** Returns the error for a client of another database than the board's. @param cause the server's error, where the board's functions are missing */
function otherDatabaseError(what: string, cause?: unknown): InvalidArgument {
  const where = cause === undefined ? '' : ', or to one whose schema is that of an older release'
  return new InvalidArgument(
    `${what}: client is connected to another database than the board${where}; nothing was posted`,
    { cause },
  )
}

/**
 * Checks that the client has an open transaction. Costs no round trip if the driver knows it (`getTransactionStatus` of newer
 * `pg`). If the driver reports none, the server is asked: a BEGIN that is not awaited may still be queued.
 *
 * @param options.what names the job, for errors
 * @throws InvalidArgument for a pool, and for a client without an open transaction
 */
async function assertInTransaction(
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

function isPool(client: object): boolean {
  const { totalCount, idleCount }: Record<string, unknown> = Object(client)
  return typeof totalCount === 'number' || typeof idleCount === 'number'
}

/** Returns `I` for idle, `T` in a transaction, `E` in a failed one; undefined if the driver does not know. */
function driverStatus(client: object): unknown {
  const { getTransactionStatus }: { readonly getTransactionStatus?: unknown } = Object(client)
  return typeof getTransactionStatus === 'function' ? getTransactionStatus.call(client) : undefined
}
