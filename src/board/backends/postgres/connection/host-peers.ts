/**
 * Finds out that another process of this host has ended, and takes over its session at once, before its TTL has passed.
 *
 * A broken connection and a free lock prove nothing about the owner of the session: a proxy may have cut the connection on one side, and the owner may
 * attach its session to another connection within its lease. The missing socket of its process is a proof (`process-socket.ts`). A session whose process
 * is on another host, or on this host and stopped, is taken over after its TTL.
 *
 * | when this process looks for ended processes | why |
 * |---|---|
 * | half a second after its session began | it may have been started in the place of a process that was killed |
 * | half a second after a connection to another process broke, or later, when there is a connection to the server again | the other process may have been killed |
 *
 * Each process keeps connections to two other processes: their sessions come directly before its own. So no process looks periodically. The isolated tasks
 * of a killed process end within the half second, too.
 */
import { asError, NotConnected } from '../../../../core/errors.ts'
import { startTimer } from '../../../../core/time.ts'
import type { PostgresConnection } from '../../../../postgres/index.ts'
import type { OwnSession, PostgresBoard } from '../store/board.ts'
import { toBoardError } from '../store/errors.ts'
import type { CleanUp, HostSession } from './clean-up.ts'
import { ProcessSocket } from './process-socket.ts'

/** The delay before a search for ended processes, in milliseconds. */
const LOOK_AFTER_MS = 500
/** Limit of sessions that one search reads: the newest ones. */
const MAX_PEERS = 256

export class HostPeers {
  readonly #board: PostgresBoard
  readonly #cleanUp: CleanUp
  #socket: Promise<ProcessSocket | undefined> | undefined
  #timer: NodeJS.Timeout | undefined
  /** Whether a look was left out, because there was no connection to the server. */
  #isDue = false
  #looking: Promise<void> = Promise.resolve()

  constructor(board: PostgresBoard, cleanUp: CleanUp) {
    this.#board = board
    this.#cleanUp = cleanUp
  }

  /** Returns the socket of this process, and opens it at the first call. The row of the session contains the name of the socket. */
  openSocket(): Promise<ProcessSocket | undefined> {
    this.#socket ??= ProcessSocket.open(() => this.lookSoon())
    return this.#socket
  }

  /** Looks after half a second for sessions whose processes have ended. A process that ends sooner asks the server nothing. */
  lookSoon(): void {
    if (this.#board.closing.aborted) return
    this.#timer ??= startTimer(() => {
      this.#timer = undefined
      this.#looking = this.#looking.then(() => this.#look())
    }, LOOK_AFTER_MS).unref()
  }

  /** Makes up for a look that was left out. It does not look otherwise: after an outage, other processes are about to attach their sessions, too. */
  onAttached(): void {
    if (this.#isDue) this.lookSoon()
  }

  /** Closes the socket. Called when the session has ended: other processes must not take over before. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#looking
    const socket = await this.#socket
    socket?.close()
  }

  async #look(): Promise<void> {
    const { closing, session, connection, sink } = this.#board
    this.#isDue = !session || !connection
    if (closing.aborted || !session || !connection) return
    try {
      const socket = await this.openSocket()
      if (socket) await this.#takeOverFrom(session, { connection, socket })
    } catch (error) {
      // After a lost connection, the next one begins with a look.
      const reason = toBoardError('looking for processes that have ended', asError(error))
      if (!closing.aborted && !(reason instanceof NotConnected)) sink.error(reason)
    }
  }

  async #takeOverFrom(
    session: OwnSession,
    { connection, socket }: { readonly connection: PostgresConnection; readonly socket: ProcessSocket },
  ): Promise<void> {
    const text = `SELECT id, socket FROM ${this.#board.schema}.sessions
      WHERE board = $1 AND host = ${this.#board.schema}.host_of($2) AND socket <> $3 ORDER BY id DESC LIMIT ${MAX_PEERS}`
    const { rows } = await connection.query(text, [this.#board.number, socket.host, socket.name])
    const peers = rows.map((row): HostSession => {
      const name = String(row['socket'])
      return { id: Number(row['id']), socket: name, hasEnded: async () => (await socket.ended([name])).has(name) }
    })
    const ended = await socket.ended(peers.map((peer) => peer.socket))
    if (this.#board.closing.aborted) return
    for (const peer of peers) if (ended.has(peer.socket)) this.#cleanUp.onProcessEnded(peer)
    const alive = peers.filter((peer) => !ended.has(peer.socket))
    // The nearest sessions before the own one; the first processes of a host are linked to the nearest ones after them.
    const before = alive.filter(({ id }) => id < session.id)
    const after = alive.filter(({ id }) => id > session.id).reverse()
    socket.linkTo([...before, ...after].map((peer) => peer.socket))
  }
}
