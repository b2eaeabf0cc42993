/** Asks a server whether it accepts frames of a size. */
import { NotConnected } from '../../core/errors.ts'
import { RequestNumbers } from '../protocol/requests.ts'
import { Connection, type ConnectionOptions, type ConnectionOwner } from './connection.ts'
import { Counters } from './counters.ts'
import { toFaultKind } from './faults.ts'

/** A session id that no server assigns: session ids begin with the number of the server and the time. */
const UNKNOWN_SESSION = 1n
/** The size of a connect request in addition to its password. */
const CONNECT_BYTES = 29

const OWNER: ConnectionOwner = {
  isAlive: () => true,
  events: () => undefined,
  replyReceived: () => undefined,
  quorumAcknowledged: () => undefined,
  drained: () => undefined,
  closed: () => undefined,
  mayRetry: () => false,
}

/**
 * Returns whether the server answers a connect request of that many bytes. The request names a session that does not exist, so the server
 * answers that the session is over, and changes nothing.
 *
 * @throws NotConnected when the server cannot be reached, or neither answers nor closes the connection in time
 */
export async function isFrameAnswered(
  bytes: number,
  options: Omit<ConnectionOptions, 'counters' | 'numbers'>,
): Promise<boolean> {
  const connection = new Connection({ ...options, counters: new Counters(), numbers: new RequestNumbers() }, OWNER)
  const password = new Uint8Array(bytes - CONNECT_BYTES)
  try {
    await connection.attach({ lastZxid: 0n, timeout: 1_000, session: UNKNOWN_SESSION, password, readOnly: true })
    return true
  } catch (error) {
    if (toFaultKind(error) === 'hung-up') return false
    throw error
  } finally {
    connection.destroy(new NotConnected('the question is answered'))
  }
}
