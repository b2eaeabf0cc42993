/** Ends a session behind its owner's back, at once and for certain: by a second connection that closes it. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { type Endpoint, parseConnectString } from '../../src/zookeeper/protocol/connect-string.ts'
import { FrameReader } from '../../src/zookeeper/protocol/frames.ts'
import { JuteReader } from '../../src/zookeeper/protocol/jute.ts'
import { readConnectResponse, readReplyHeader } from '../../src/zookeeper/protocol/records.ts'
import { closeSession, connectFrame, numberFrame } from '../../src/zookeeper/protocol/requests.ts'

const ATTEMPTS = 100
/** Milliseconds for one server. */
const PATIENCE = 2_000

/** What the owner sees is an expiry: the connection breaks, and on the next one the server says that it is over. */
export async function expireSession(hosts: string, id: bigint): Promise<void> {
  // The owner, whose connection breaks when the second one attaches, comes back at once and breaks that one in turn.
  const { endpoints } = parseConnectString(hosts)
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const server = endpoints[attempt % endpoints.length]
    if (server && (await closedBy(server, id))) return
  }
  throw new Error(`the session was not closed in ${ATTEMPTS} attempts`)
}

/** Whether the server says that the session is over, by whomever. */
async function closedBy(server: Endpoint, session: bigint): Promise<boolean> {
  const { frame } = closeSession()
  numberFrame(frame, 1)
  const frames = new FrameReader(1_024)
  const socket = connect({ ...server, timeout: PATIENCE })
  socket.on('data', (chunk: Buffer) => frames.add(chunk))
  socket.on('timeout', () => socket.destroy())
  socket.on('error', () => undefined)
  // Both at once, to leave the owner as little time as possible in between. The end of the connection is the server's to
  // make: a follower that sees it before its leader has confirmed the session forgets the rest.
  const attach = connectFrame({ lastZxid: 0n, timeout: 10_000, session, password: passwordOf(session) })
  socket.write(Buffer.concat([attach, frame]))
  await once(socket, 'close')
  const attached = frames.next()
  if (!attached) return false
  if (readConnectResponse(new JuteReader(attached)).timeout <= 0) return true
  const closed = frames.next()
  return closed !== undefined && readReplyHeader(new JuteReader(closed)).code === 0
}

const SERVER_SECRET = 0xb3415c00n
const MASK_48 = (1n << 48n) - 1n

/** Servers make a session's password of its id alone, by Java's random numbers seeded with the id and a constant. */
function passwordOf(id: bigint): Uint8Array {
  let seed = (BigInt.asUintN(64, id) ^ SERVER_SECRET ^ 0x5deece66dn) & MASK_48
  const password = Buffer.alloc(16)
  for (let at = 0; at < password.length; at += 4) {
    seed = (seed * 0x5deece66dn + 0xbn) & MASK_48
    password.writeUInt32LE(Number(seed >> 16n), at)
  }
  return password
}
