/** Requests of all operations: how each is encoded and how its answer is read. Paths are the server's (see Chroot). */
import { defined } from '../../core/options.ts'
import { type Acl, type Identity, readAcls, readIdentities, writeAcls } from './acl.ts'
import { checkData, checkVersion } from './arguments.ts'
import { type JuteReader, JuteWriter, MAX_INT32 } from './jute.ts'
import { OPCODE, WATCH_KIND, WATCH_MODE, XID } from './opcodes.ts'
import { type ConnectRequest, readStat, type Stat, writeConnectRequest } from './records.ts'

/** A request with its encoded frame. */
export interface Request<T> {
  /** Name of the operation, for errors. */
  readonly operation: string
  readonly path?: string
  /** Whole frame, with room for its length and request number. Encoded when the request is made. */
  readonly frame: Buffer
  /** Request number, where it is a fixed one. */
  readonly xid?: number
  readonly read: (body: JuteReader, zxid: bigint) => T
  /** Converts "the znode does not exist" to a result, where that is an ordinary answer. */
  readonly onAbsent?: () => T
}

const LENGTH_BYTES = 4

interface RequestSpec<T> {
  readonly operation: string
  readonly opcode: number
  readonly path?: string
  readonly xid?: number
  readonly write?: (writer: JuteWriter) => void
  readonly read: (body: JuteReader, zxid: bigint) => T
  readonly absent?: () => T
}

/** Encodes a request at once, so that later changes of the caller's bytes do not reach the frame. */
export function request<T>(shape: RequestSpec<T>): Request<T> {
  const writer = new JuteWriter()
    .int(0)
    .int(shape.xid ?? 0)
    .int(shape.opcode)
  shape.write?.(writer)
  const frame = writer.finish()
  frame.writeInt32BE(frame.length - LENGTH_BYTES, 0)
  return {
    operation: shape.operation,
    frame,
    read: shape.read,
    ...defined({ path: shape.path, xid: shape.xid, onAbsent: shape.absent }),
  }
}

/** Returns the same request with a converted answer. */
export function mapReply<T, U>(request: Request<T>, change: (answer: T) => U): Request<U> {
  const { onAbsent, read, ...rest } = request
  return {
    ...rest,
    read: (body, zxid) => change(read(body, zxid)),
    ...defined({ onAbsent: onAbsent && (() => change(onAbsent())) }),
  }
}

/** Writes the request number into a frame that is about to be sent. */
export function numberFrame(frame: Buffer, xid: number): void {
  frame.writeInt32BE(xid, LENGTH_BYTES)
}

/**
 * Numbers the requests of one client, over all its connections. A server takes a commit for the answer to the oldest
 * write that waits there under the same session and number. The commit may belong to a request that the session sent to
 * another server before its connection broke: if numbers began anew with each connection, the server could report a
 * write as done that was refused, or that never arrived.
 */
export class RequestNumbers {
  #last: number

  /** @param last the number that was assigned last */
  constructor(last = 0) {
    this.#last = last
  }

  /** Returns the next number. Numbers start at 1: servers use 0 themselves, and would never answer such a request. */
  next(): number {
    this.#last = this.#last === MAX_INT32 ? 1 : this.#last + 1
    return this.#last
  }
}

/** Returns the size that the server counts: the frame without its length. */
export function payloadBytes(frame: Buffer): number {
  return frame.length - LENGTH_BYTES
}

/** Encodes the first frame of a connection, which has no header. */
export function connectFrame(connect: ConnectRequest): Buffer {
  const writer = new JuteWriter().int(0)
  writeConnectRequest(writer, connect)
  const frame = writer.finish()
  frame.writeInt32BE(frame.length - LENGTH_BYTES, 0)
  return frame
}

const readNothing = () => undefined

// --- Znodes -------------------------------------------------------------------------------------------------------

export function remove(path: string, version: number): Request<undefined> {
  return request({
    operation: 'delete',
    opcode: OPCODE.delete,
    path,
    write: (writer) => writer.text(path).int(checkVersion(version)),
    read: readNothing,
  })
}

/** The option whether the server reports the next change of the read znode, once. */
interface WatchFlag {
  readonly watch?: boolean
}

export function exists(path: string, { watch = false }: WatchFlag = {}): Request<Stat | undefined> {
  return request({
    operation: 'exists',
    opcode: OPCODE.exists,
    path,
    write: (writer) => writer.text(path).boolean(watch),
    read: readStat,
    absent: readNothing,
  })
}

/** Data and Stat of a znode. */
export interface ReadData {
  /** Data; null is not the same as empty data. */
  readonly data: Uint8Array | null
  readonly stat: Stat
}

export function getData(path: string, { watch = false }: WatchFlag = {}): Request<ReadData> {
  return request({
    operation: 'getData',
    opcode: OPCODE.getData,
    path,
    write: (writer) => writer.text(path).boolean(watch),
    read: readData,
  })
}

export function readData(body: JuteReader): ReadData {
  return { data: detachBytes(body.bytes()), stat: readStat(body) }
}

/** Reads data as a view, which keeps all bytes alive that were received together. */
export function readDataView(body: JuteReader): ReadData {
  return { data: body.bytes(), stat: readStat(body) }
}

/**
 * Detaches data for callers who may keep them for hours. They arrive as a view of all bytes that were received
 * together; a few bytes would keep all of that alive, so they are copied unless they are most of it.
 */
function detachBytes(data: Buffer | null): Uint8Array | null {
  if (data === null) return null
  const most = data.length * 2 >= data.buffer.byteLength
  return most ? new Uint8Array(data.buffer, data.byteOffset, data.length) : new Uint8Array(data)
}

export function setData(path: string, data: Uint8Array | null, version: number): Request<Stat> {
  return request({
    operation: 'setData',
    opcode: OPCODE.setData,
    path,
    write: (writer) => writer.text(path).bytes(checkData(data)).int(checkVersion(version)),
    read: readStat,
  })
}

export function getChildren(
  path: string,
  { watch = false }: WatchFlag = {},
): Request<{ readonly names: string[]; readonly stat: Stat }> {
  return request({
    operation: 'getChildren',
    opcode: OPCODE.getChildren2,
    path,
    write: (writer) => writer.text(path).boolean(watch),
    read: (body) => ({ names: readTexts(body), stat: readStat(body) }),
  })
}

export function readTexts(body: JuteReader): string[] {
  const lengthPrefix = 4
  return body.vector(lengthPrefix, () => body.text())
}

export function getAllChildrenNumber(path: string): Request<number> {
  return request({
    operation: 'getAllChildrenNumber',
    opcode: OPCODE.getAllChildrenNumber,
    path,
    write: (writer) => writer.text(path),
    read: (body) => body.int(),
  })
}

export function getEphemerals(prefix: string): Request<string[]> {
  return request({
    operation: 'getEphemerals',
    opcode: OPCODE.getEphemerals,
    path: prefix,
    write: (writer) => writer.text(prefix),
    read: readTexts,
  })
}

export function getAcl(path: string): Request<{ readonly acl: Acl[]; readonly stat: Stat }> {
  return request({
    operation: 'getACL',
    opcode: OPCODE.getAcl,
    path,
    write: (writer) => writer.text(path),
    read: (body) => ({ acl: readAcls(body), stat: readStat(body) }),
  })
}

export function setAcl(path: string, acl: readonly Acl[], aversion: number): Request<Stat> {
  return request({
    operation: 'setACL',
    opcode: OPCODE.setAcl,
    path,
    write: (writer) => {
      writer.text(path)
      writeAcls(writer, acl)
      writer.int(checkVersion(aversion))
    },
    read: readStat,
  })
}

export function sync(path: string): Request<undefined> {
  return request({
    operation: 'sync',
    opcode: OPCODE.sync,
    path,
    write: (writer) => writer.text(path),
    read: readNothing,
  })
}

// --- Watches ------------------------------------------------------------------------------------------------------

/** Scope of a persistent watch: one znode and its children, or all znodes below it as well (`recursive`). */
export type WatchMode = keyof typeof WATCH_MODE

export function addWatch(path: string, mode: WatchMode): Request<undefined> {
  return request({
    operation: 'addWatch',
    opcode: OPCODE.addWatch,
    path,
    write: (writer) => writer.text(path).int(WATCH_MODE[mode]),
    read: readNothing,
  })
}

/** Kind of watches: `data` of exists and getData, `children` of getChildren, `any` both and the persistent ones. */
export type WatchKind = keyof typeof WATCH_KIND

export function removeWatches(path: string, kind: WatchKind): Request<undefined> {
  return request({
    operation: 'removeWatches',
    opcode: OPCODE.removeWatches,
    path,
    write: (writer) => writer.text(path).int(WATCH_KIND[kind]),
    read: readNothing,
  })
}

/** Kinds of watches that are armed again, in the order of the request. */
export const ARMED_KINDS = ['data', 'exist', 'child', 'persistent', 'recursive'] as const
export type ArmedKind = (typeof ARMED_KINDS)[number]
export type ArmedPaths = Readonly<Record<ArmedKind, readonly string[]>>

/**
 * Arms watches again on a new connection. The server reports changes since `lastZxid` to one-shot watches only (the
 * first three kinds): owners of persistent watches have to read again.
 */
export function setWatches(paths: ArmedPaths, lastZxid: bigint): Request<undefined> {
  return request({
    operation: 'setWatches',
    opcode: OPCODE.setWatches2,
    xid: XID.setWatches,
    write: (writer) => {
      writer.long(lastZxid)
      for (const kind of ARMED_KINDS) writer.vector(paths[kind], (path) => writer.text(path))
    },
    read: readNothing,
  })
}

// --- Session ------------------------------------------------------------------------------------------------------

export function ping(): Request<undefined> {
  return request({ operation: 'ping', opcode: OPCODE.ping, xid: XID.ping, read: readNothing })
}

/** Requests the identities of this connection; ZooKeeper 3.7 or newer. */
export function whoAmI(): Request<Identity[]> {
  return request({ operation: 'whoAmI', opcode: OPCODE.whoAmI, read: readIdentities })
}

/** Adds an identity to a connection. Its answer overtakes the answers to the requests before it. */
export function auth(scheme: string, credentials: Uint8Array): Request<undefined> {
  return request({
    operation: 'addAuth',
    opcode: OPCODE.auth,
    xid: XID.auth,
    write: (writer) => writer.int(0).text(scheme).bytes(credentials),
    read: readNothing,
  })
}

export function closeSession(): Request<undefined> {
  return request({ operation: 'closeSession', opcode: OPCODE.closeSession, read: readNothing })
}
