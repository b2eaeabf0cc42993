/** The operations: for each, what is asked and how the answer is read. Paths are the server's (see Chroot). */
import { type JuteReader, JuteWriter } from './jute.ts'
import { ANY_WATCH, CREATE_FLAG, OPCODE, WATCH_MODE, XID } from './opcodes.ts'
import {
  type Acl,
  type ConnectRequest,
  OPEN_ACL,
  readStat,
  type Stat,
  writeAcls,
  writeConnectRequest,
} from './records.ts'

/** One request, before it is on its way. */
export interface Request<T> {
  /** For errors. */
  readonly operation: string
  readonly path?: string
  /** The whole frame, with room for its length and request number. Encoded when the request is made. */
  readonly frame: Buffer
  /** The request number, where it is a fixed one. */
  readonly xid?: number
  read(body: JuteReader, zxid: bigint): T
}

const LENGTH_BYTES = 4

interface Shape<T> {
  readonly operation: string
  readonly opcode: number
  readonly path?: string
  readonly xid?: number
  readonly write?: (writer: JuteWriter) => void
  readonly read: (body: JuteReader, zxid: bigint) => T
}

/** Encodes a request. Encoding at once keeps what the caller does to its bytes afterwards out of what is sent. */
export function request<T>(shape: Shape<T>): Request<T> {
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
    ...(shape.path === undefined ? {} : { path: shape.path }),
    ...(shape.xid === undefined ? {} : { xid: shape.xid }),
  }
}

/** Numbers a frame for the connection it is about to leave on. */
export function numberFrame(frame: Buffer, xid: number): void {
  frame.writeInt32BE(xid, LENGTH_BYTES)
}

const LARGEST_XID = 2_147_483_647

/** Numbers start at 1: servers use 0 for themselves and would count every request under it as never answered. */
export function xidAfter(xid: number): number {
  return xid === LARGEST_XID ? 1 : xid + 1
}

/** The size of what the server will count: the frame without its length. */
export function payloadBytes(frame: Buffer): number {
  return frame.length - LENGTH_BYTES
}

/** The first frame of a connection has no header. */
export function connectFrame(connect: ConnectRequest): Buffer {
  const writer = new JuteWriter().int(0)
  writeConnectRequest(writer, connect)
  const frame = writer.finish()
  frame.writeInt32BE(frame.length - LENGTH_BYTES, 0)
  return frame
}

const nothing = () => undefined

// --- Znodes -------------------------------------------------------------------------------------------------------

export interface CreateMode {
  /** Deleted by the server when this session ends. */
  readonly ephemeral?: true
  /** The server appends ten digits, counted per parent, to the name. */
  readonly sequential?: true
  /** Who may do what; everybody everything by default. */
  readonly acl?: readonly Acl[]
}

export function create(path: string, data: Uint8Array | null, mode: CreateMode): Request<{ path: string; stat: Stat }> {
  return request({
    operation: 'create',
    opcode: OPCODE.create2,
    path,
    write: (writer) => writeCreate(writer, path, data, mode),
    read: (body) => ({ path: body.text(), stat: readStat(body) }),
  })
}

export function writeCreate(writer: JuteWriter, path: string, data: Uint8Array | null, mode: CreateMode): void {
  writer.text(path).bytes(data)
  writeAcls(writer, mode.acl ?? OPEN_ACL)
  writer.int((mode.ephemeral ? CREATE_FLAG.ephemeral : 0) | (mode.sequential ? CREATE_FLAG.sequential : 0))
}

export function remove(path: string, version: number): Request<undefined> {
  return request({
    operation: 'delete',
    opcode: OPCODE.delete,
    path,
    write: (writer) => writer.text(path).int(version),
    read: nothing,
  })
}

export function exists(path: string): Request<Stat> {
  return request({
    operation: 'exists',
    opcode: OPCODE.exists,
    path,
    write: (writer) => writer.text(path).boolean(false),
    read: readStat,
  })
}

export function getData(path: string): Request<{ data: Uint8Array | null; stat: Stat }> {
  return request({
    operation: 'getData',
    opcode: OPCODE.getData,
    path,
    write: (writer) => writer.text(path).boolean(false),
    read: (body) => ({ data: keepable(body.bytes()), stat: readStat(body) }),
  })
}

/**
 * Data for a caller who may keep them for hours. They arrive as a view of whatever was received together; a few bytes
 * would keep all of that alive, so they are copied unless they are most of it.
 */
function keepable(data: Buffer | null): Uint8Array | null {
  if (data === null) return null
  const most = data.length * 2 >= data.buffer.byteLength
  return most ? new Uint8Array(data.buffer, data.byteOffset, data.length) : new Uint8Array(data)
}

export function setData(path: string, data: Uint8Array | null, version: number): Request<Stat> {
  return request({
    operation: 'setData',
    opcode: OPCODE.setData,
    path,
    write: (writer) => writer.text(path).bytes(data).int(version),
    read: readStat,
  })
}

export function getChildren(path: string): Request<{ names: string[]; stat: Stat }> {
  const lengthPrefix = 4
  return request({
    operation: 'getChildren',
    opcode: OPCODE.getChildren2,
    path,
    write: (writer) => writer.text(path).boolean(false),
    read: (body) => ({ names: body.vector(lengthPrefix, () => body.text()), stat: readStat(body) }),
  })
}

export function sync(path: string): Request<undefined> {
  return request({
    operation: 'sync',
    opcode: OPCODE.sync,
    path,
    write: (writer) => writer.text(path),
    read: nothing,
  })
}

// --- Watches ------------------------------------------------------------------------------------------------------

export type WatchMode = keyof typeof WATCH_MODE

export function addWatch(path: string, mode: WatchMode): Request<undefined> {
  return request({
    operation: 'addWatch',
    opcode: OPCODE.addWatch,
    path,
    write: (writer) => writer.text(path).int(WATCH_MODE[mode]),
    read: nothing,
  })
}

export function removeWatches(path: string): Request<undefined> {
  return request({
    operation: 'removeWatches',
    opcode: OPCODE.removeWatches,
    path,
    write: (writer) => writer.text(path).int(ANY_WATCH),
    read: nothing,
  })
}

export interface ArmedPaths {
  readonly persistent: readonly string[]
  readonly recursive: readonly string[]
}

/** Arms persistent watches again on a new connection. It replays nothing: what changed meanwhile has to be read. */
export function setWatches(paths: ArmedPaths, lastZxid: bigint): Request<undefined> {
  const none: readonly string[] = []
  return request({
    operation: 'setWatches',
    opcode: OPCODE.setWatches2,
    xid: XID.setWatches,
    write: (writer) => {
      writer.long(lastZxid)
      // Three kinds of one-shot watches come first; this client arms none of them.
      for (const kind of [none, none, none, paths.persistent, paths.recursive]) {
        writer.vector(kind, (path) => writer.text(path))
      }
    },
    read: nothing,
  })
}

// --- Session ------------------------------------------------------------------------------------------------------

export function ping(): Request<undefined> {
  return request({ operation: 'ping', opcode: OPCODE.ping, xid: XID.ping, read: nothing })
}

export function closeSession(): Request<undefined> {
  return request({ operation: 'closeSession', opcode: OPCODE.closeSession, read: nothing })
}
