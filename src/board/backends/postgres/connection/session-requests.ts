/** The requests by which a session begins, goes on over another connection, and ends: see `functions/sessions.sql`. */
import { onAbort } from '../../../../core/async/abort.ts'
import { UnsupportedCapability } from '../../../../core/errors.ts'
import { type Instant, systemClock } from '../../../../core/time.ts'
import { PostgresConnection } from '../../../../postgres/index.ts'
import type { PostgresBackendOptions, PostgresBoard } from '../store/board.ts'
import { SET_READ_COMMITTED } from '../store/errors.ts'
import type { ProcessSocket } from './process-socket.ts'

/** The time limit for ending a session on the server, in milliseconds. */
const END_SESSION_TIMEOUT_MS = 5_000

/**
 * Checks that the backend belongs to this connection alone. A pooler between client and server has its own backend numbers.
 * A pooler that assigns a backend per transaction gives the backend of an idle session to the next client.
 */
async function assertOwnBackend(
  connection: PostgresConnection,
  board: PostgresBoard,
  signal: AbortSignal,
): Promise<void> {
  const backend = await readBackend(connection)
  if (backend === connection.backend) return
  const probe = await PostgresConnection.open(board.options.location, { signal })
  const forget = onAbort(signal, () => probe.disconnect(signal.reason))
  try {
    if ((await readBackend(probe)) !== backend) return
  } finally {
    forget()
    await probe.close()
  }
  throw new UnsupportedCapability(
    `${board.uri} is behind a transaction pooler, which keeps no locks between transactions; name the server itself, or a session pooler`,
    { capability: 'sessions' },
  )
}

async function readBackend(connection: PostgresConnection): Promise<number> {
  const { rows } = await connection.query('SELECT pg_backend_pid() AS backend', [])
  return Number(rows[0]?.['backend'])
}

/**
 * Runs the work on a connection of its own. A connection whose work fails is ended, and so is one on which the signal fires.
 *
 * @param limit.reason returns why the connection is ended when the signal fires
 */
export async function withConnection<T>(
  { location }: PostgresBackendOptions,
  { signal, reason }: { readonly signal: AbortSignal; readonly reason: () => unknown },
  work: (connection: PostgresConnection) => Promise<T>,
): Promise<T> {
  const connection = await PostgresConnection.open(location, { signal })
  const forget = onAbort(signal, () => connection.disconnect(reason()))
  try {
    return await work(connection)
  } catch (error) {
    connection.disconnect(error)
    throw error
  } finally {
    forget()
  }
}

export interface BeginOptions {
  readonly signal: AbortSignal
  /** The sessions of this process that it has lost. */
  readonly former: Set<number>
  /** The socket of this process, if it has one. */
  readonly socket: ProcessSocket | undefined
}

/**
 * Begins a session, after it has ended former ones of this process, which leave the set.
 *
 * @returns its number, and when the request was sent
 * @throws UnsupportedCapability behind a transaction pooler
 */
export async function beginSession(
  connection: PostgresConnection,
  board: PostgresBoard,
  { signal, former, socket }: BeginOptions,
): Promise<{ readonly id: number; readonly sentAt: Instant }> {
  await assertOwnBackend(connection, board, signal)
  await connection.query(SET_READ_COMMITTED, [])
  for (const id of former) {
    await endSession(connection, board, id)
    former.delete(id)
  }
  const { schema, number, options } = board
  const sentAt = systemClock()
  const text = `SELECT ${schema}.open_session($1, $2, $3, false, $4, $5) AS id`
  const values = [number, options.who, options.sessionTimeout, socket?.host ?? null, socket?.name ?? null]
  const { rows } = await connection.query(text, values)
  return { id: Number(rows[0]?.['id']), sentAt }
}

async function endSession(connection: PostgresConnection, { schema }: PostgresBoard, id: number): Promise<void> {
  await connection.query(`SELECT ${schema}.end_session($1)`, [id])
}

/** Ends the last session, if the server can be reached: its claims are released at once then. */
export async function endLastSession(board: PostgresBoard, id: number): Promise<void> {
  const connection = board.connection ?? (await openLastConnection(board))
  if (!connection) return
  const timer = setTimeout(() => connection.disconnect(new Error('the server does not answer')), END_SESSION_TIMEOUT_MS)
  await endSession(connection, board, id).catch(() => undefined)
  clearTimeout(timer)
  await connection.close()
}

/** Opens a connection to end a session that has none. */
function openLastConnection({ options }: PostgresBoard): Promise<PostgresConnection | undefined> {
  const signal = AbortSignal.timeout(END_SESSION_TIMEOUT_MS)
  return withConnection(options, { signal, reason: () => signal.reason }, async (connection) => {
    await connection.query(SET_READ_COMMITTED, [])
    return connection
  }).catch(() => undefined)
}
