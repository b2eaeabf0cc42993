/** Records of the protocol: values that are read and written as one piece. */
import { type JuteReader, type JuteWriter, MalformedBytes } from './jute.ts'

/** The number of bytes of a {@link Stat}. */
export const STAT_BYTES = 68

/** Metadata of a znode. Transaction ids and session ids are 64 bits wide and therefore bigint. */
export interface Stat {
  /** The transaction that created the znode. */
  readonly czxid: bigint
  /** The transaction that last wrote its data. */
  readonly mzxid: bigint
  /** The transaction that last created or deleted one of its children. */
  readonly pzxid: bigint
  /** Time of creation in milliseconds, on the clock of the server that was the leader then. */
  readonly ctime: number
  /** Time of the last write in milliseconds, on the clock of the server that was the leader then. */
  readonly mtime: number
  /** Number of writes of its data. */
  readonly version: number
  /** Number of children created and deleted. */
  readonly cversion: number
  /** Number of changes of its ACL. */
  readonly aversion: number
  /** Session that owns an ephemeral znode; 0n where it is persistent. */
  readonly ephemeralOwner: bigint
  readonly dataLength: number
  readonly numChildren: number
}

export function readStat(reader: JuteReader): Stat {
  const czxid = reader.long()
  const mzxid = reader.long()
  const ctime = reader.millis()
  const mtime = reader.millis()
  const version = reader.int()
  const cversion = reader.int()
  const aversion = reader.int()
  const ephemeralOwner = reader.long()
  const dataLength = reader.int()
  const numChildren = reader.int()
  const pzxid = reader.long()
  return { czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner, dataLength, numChildren }
}

// --- Attaching ----------------------------------------------------------------------------------------------------

export interface ConnectRequest {
  /**
   * The newest transaction that this client has seen in the session: a server that has not applied it closes the
   * connection.
   */
  readonly lastZxid: bigint
  /** Requested timeout in milliseconds; the server answers with the granted one. */
  readonly timeout: number
  /** Session to attach to; 0n requests a new one. */
  readonly session: bigint
  readonly password: Uint8Array
  /** Whether a server without a quorum, which only reads, is acceptable. It is not by default. */
  readonly readOnly?: boolean
}

export interface ConnectResponse {
  /** Granted timeout in milliseconds; 0 means that the requested session is over. */
  readonly timeout: number
  readonly session: bigint
  readonly password: Uint8Array
  /** Whether the server has no quorum and only reads. */
  readonly readOnly: boolean
}

export const NO_PASSWORD: Uint8Array = new Uint8Array(16)

/**
 * Length of the shortest ConnectResponse. A shorter first frame is a reply's header: the server refuses this client.
 */
const MIN_CONNECT_RESPONSE_BYTES = 36

export function writeConnectRequest(writer: JuteWriter, request: ConnectRequest): void {
  writer.int(0).long(request.lastZxid).int(Math.round(request.timeout)).long(request.session).bytes(request.password)
  // The trailing `readOnly`: servers treat a client that omits it as older than read-only servers.
  writer.boolean(request.readOnly ?? false)
}

export function readConnectResponse(reader: JuteReader): ConnectResponse {
  if (reader.remaining < MIN_CONNECT_RESPONSE_BYTES) {
    throw new MalformedBytes('the first frame does not answer the connect request')
  }
  reader.int()
  const timeout = reader.int()
  const session = reader.long()
  // Copied, because it lives as long as the session and must not keep a socket's buffer alive.
  const password = new Uint8Array(reader.bytes() ?? NO_PASSWORD)
  const readOnly = reader.remaining > 0 && reader.boolean()
  return { timeout, session, password, readOnly }
}

// --- Answers ------------------------------------------------------------------------------------------------------

export interface ReplyHeader {
  readonly xid: number
  readonly zxid: bigint
  readonly code: number
}

/** The number of bytes of a {@link ReplyHeader}. */
export const REPLY_HEADER_BYTES = 16

export function readReplyHeader(reader: JuteReader): ReplyHeader {
  return { xid: reader.int(), zxid: reader.long(), code: reader.int() }
}

/** Type of a change of a znode. `childrenChanged`: a child was created or deleted. */
export type WatchEventType = 'created' | 'deleted' | 'dataChanged' | 'childrenChanged'

const WATCH_EVENT_TYPES: Readonly<Record<number, WatchEventType>> = {
  1: 'created',
  2: 'deleted',
  3: 'dataChanged',
  4: 'childrenChanged',
}

/** A change of a znode, as a watch reports it. */
export interface WatchEvent {
  readonly type: WatchEventType
  readonly path: string
}

/** Reads an event; undefined unless it is a change of a znode. */
export function readWatchEvent(reader: JuteReader): WatchEvent | undefined {
  const type = WATCH_EVENT_TYPES[reader.int()]
  reader.int()
  const path = reader.text()
  return type && { type, path }
}
