/** The protocol's records: what is read and written as one piece. */
import { type JuteReader, type JuteWriter, MalformedBytes } from './jute.ts'

/** What ZooKeeper knows of a znode. Transaction ids and session ids are 64 bits wide and therefore bigint. */
export interface Stat {
  /** The transaction that created the znode. */
  readonly czxid: bigint
  /** The transaction that last wrote its data. */
  readonly mzxid: bigint
  /** The transaction that last created or deleted one of its children. */
  readonly pzxid: bigint
  /** Milliseconds on the clock of the server that led when it was created. */
  readonly ctime: number
  /** Milliseconds on the clock of the server that led when its data were last written. */
  readonly mtime: number
  /** How often its data were written. */
  readonly version: number
  /** How often a child was created or deleted. */
  readonly cversion: number
  /** How often its ACL was changed. */
  readonly aversion: number
  /** The session it lives with; 0n where it is persistent. */
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
  /** The newest transaction this client has seen of the session: a server that is behind it hangs up. */
  readonly lastZxid: bigint
  /** Milliseconds asked for; the server answers with what it grants. */
  readonly timeout: number
  /** 0n asks for a new session. */
  readonly session: bigint
  readonly password: Uint8Array
  /** Whether a server without a quorum will do, which only reads. It will not by default. */
  readonly readOnly?: boolean
}

export interface ConnectResponse {
  /** Milliseconds granted; 0 says that the session asked for is over. */
  readonly timeout: number
  readonly session: bigint
  readonly password: Uint8Array
  /** The server has no quorum and only reads. */
  readonly readOnly: boolean
}

export const NO_PASSWORD: Uint8Array = new Uint8Array(16)

/** Shorter first frames are no ConnectResponse but a reply's header: the server refuses to serve this client. */
const MIN_CONNECT_RESPONSE_BYTES = 36

export function writeConnectRequest(writer: JuteWriter, request: ConnectRequest): void {
  writer.int(0).long(request.lastZxid).int(Math.round(request.timeout)).long(request.session).bytes(request.password)
  // The trailing `readOnly`: servers take a client that leaves it out for one of the time before read-only servers.
  writer.boolean(request.readOnly ?? false)
}

export function readConnectResponse(reader: JuteReader): ConnectResponse {
  if (reader.remaining < MIN_CONNECT_RESPONSE_BYTES) {
    throw new MalformedBytes('the first frame is no answer to a connect request')
  }
  reader.int()
  const timeout = reader.int()
  const session = reader.long()
  // Copied: it lives as long as the session and must not keep a socket's buffer alive.
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

export function readReplyHeader(reader: JuteReader): ReplyHeader {
  return { xid: reader.int(), zxid: reader.long(), code: reader.int() }
}

/** What happened to a znode. `childrenChanged`: a child came or went. */
export type WatchEventType = 'created' | 'deleted' | 'dataChanged' | 'childrenChanged'

const WATCH_EVENT_TYPES: Readonly<Record<number, WatchEventType>> = {
  1: 'created',
  2: 'deleted',
  3: 'dataChanged',
  4: 'childrenChanged',
}

/** One change of one znode, as a watch tells it. */
export interface WatchEvent {
  readonly type: WatchEventType
  readonly path: string
}

/** Undefined for what is no change of a znode. */
export function readWatchEvent(reader: JuteReader): WatchEvent | undefined {
  const type = WATCH_EVENT_TYPES[reader.int()]
  reader.int()
  const path = reader.text()
  return type && { type, path }
}
