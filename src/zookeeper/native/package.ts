/** The used part of the `zookeeper` package, and the meaning of its numbers. */
import { InvalidArgument } from '../../core/errors.ts'
import type { Stat } from '../protocol/records.ts'

/** Class that the package exports, version 7. */
export type NativePackage = new (config: NativeConfig) => NativeHandle

export interface NativeConfig {
  readonly connect: string
  /** Timeout of the session, in milliseconds. */
  readonly timeout: number
  /** Log level; 0 for silence: the C client writes to standard error by itself. */
  readonly debug_level: number
  readonly host_order_deterministic: boolean
  /** Number of unanswered polls after which the package reports, wrongly, that the session has expired. */
  readonly response_counter_limit: number
}

/**
 * Handle of one session. Operations return at once; a number other than 0 means that the callback will not be called.
 */
export interface NativeHandle {
  /** Session id in hexadecimal; with the password, it lets another handle attach to the session. */
  readonly client_id: string
  readonly client_password: string
  readonly timeout: number
  /** State: one of {@link NATIVE_STATE}, among others. */
  readonly state: number
  init(config: object): unknown
  /** Ends the session, blocking the process until the server has answered, but only if the state is `connected`. */
  close(): unknown
  /** Closes the socket at once, and not the session, where its server is not among these. */
  set_servers(hosts: string): number
  on(event: 'connect' | 'connecting', listener: () => void): unknown
  on(event: 'close', listener: (handle: unknown, code: number) => void): unknown
  a_create(path: string, data: Buffer, flags: number, done: CompletionCallback<[path: string]>): number
  a_createTtl(path: string, data: Buffer, flags: number, ttl: number, done: CompletionCallback<[path: string]>): number
  a_delete_(path: string, version: number, done: CompletionCallback<[]>): number
  a_exists(path: string, watch: boolean, done: CompletionCallback<[stat: NativeStat | null]>): number
  a_get(path: string, watch: boolean, done: CompletionCallback<[stat: NativeStat | null, data: Buffer | null]>): number
  a_set(path: string, data: Buffer, version: number, done: CompletionCallback<[stat: NativeStat | null]>): number
  a_get_children2(
    path: string,
    watch: boolean,
    done: CompletionCallback<[names: string[] | null, stat: NativeStat | null]>,
  ): number
  aw_exists(path: string, watch: NativeWatch, done: CompletionCallback<[stat: NativeStat | null]>): number
  aw_get(
    path: string,
    watch: NativeWatch,
    done: CompletionCallback<[stat: NativeStat | null, data: Buffer | null]>,
  ): number
  aw_get_children2(
    path: string,
    watch: NativeWatch,
    done: CompletionCallback<[names: string[] | null, stat: NativeStat | null]>,
  ): number
  a_get_acl(path: string, done: CompletionCallback<[acl: NativeAcl[] | null, stat: NativeStat | null]>): number
  a_set_acl(path: string, version: number, acl: NativeAcl[], done: CompletionCallback<[]>): number
  add_auth(scheme: string, auth: string, done: CompletionCallback<[]>): number
  a_sync(path: string, done: CompletionCallback<[path: string]>): number
}

type CompletionCallback<Rest extends readonly unknown[]> = (code: number, text: string, ...rest: Rest) => void

/** Called for session events, too, with types below 0. */
export type NativeWatch = (type: number, state: number, path: string) => void

export interface NativeAcl {
  readonly perms: number
  readonly scheme: string
  readonly auth: string
}

export interface NativeStat {
  readonly czxid: number
  readonly mzxid: number
  readonly pzxid: number
  readonly ctime: Date
  readonly mtime: Date
  readonly version: number
  readonly cversion: number
  readonly aversion: number
  /** Hexadecimal. */
  readonly ephemeralOwner: string
  readonly dataLength: number
  readonly numChildren: number
}

/** Codes that are handled here; other codes of the server are in `protocol/errors.ts`. */
export const NATIVE_CODE = {
  ok: 0,
  connectionLoss: -4,
  operationTimeout: -7,
  noNode: -101,
  expired: -112,
  authFailed: -113,
  closing: -116,
} as const

/** Values of `state` of a usable handle. */
export const NATIVE_STATE = {
  /** There is no socket: the last one failed, or `init` did. */
  none: 0,
  connecting: 1,
  associating: 2,
  connected: 3,
  /** The C client has closed its socket inside a request, and has not reported it. */
  notConnected: 999,
} as const

const NEEDED_METHODS = [
  'init',
  'close',
  'set_servers',
  'a_create',
  'a_createTtl',
  'a_delete_',
  'a_exists',
  'a_get',
  'a_set',
  'a_sync',
].concat(['aw_exists', 'aw_get', 'aw_get_children2', 'a_get_children2', 'a_get_acl', 'a_set_acl', 'add_auth'])

/** @throws InvalidArgument when it is something else, or too old */
export function checkPackage(loaded: unknown): NativePackage {
  if (isNativePackage(loaded)) return loaded
  throw new InvalidArgument('this is not the zookeeper package that the native driver needs: install zookeeper@7.3.0')
}

function isNativePackage(value: unknown): value is NativePackage {
  if (typeof value !== 'function') return false
  const prototype: unknown = value.prototype
  return typeof prototype === 'object' && prototype !== null && NEEDED_METHODS.every((name) => name in prototype)
}

export function toStat(stat: NativeStat): Stat {
  return {
    czxid: BigInt(stat.czxid),
    mzxid: BigInt(stat.mzxid),
    pzxid: BigInt(stat.pzxid),
    ctime: stat.ctime.getTime(),
    mtime: stat.mtime.getTime(),
    version: stat.version,
    cversion: stat.cversion,
    aversion: stat.aversion,
    ephemeralOwner: parseSessionId(stat.ephemeralOwner),
    dataLength: stat.dataLength,
    numChildren: stat.numChildren,
  }
}

/** A session's id: 64 bits with a sign, which the package prints without. */
export function parseSessionId(hexadecimal: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${hexadecimal}`))
}

/** Callback with the code, and with a function that reads the result if the code is 0. */
export type NativeCallback<T> = (code: number, read: () => T) => void

/** Request to a handle, with the decoder of its callback. */
export interface NativeRequest<T> {
  readonly operation: string
  readonly path: string
  /** `answer` is called later, unless the number returned is not 0. */
  readonly send: (handle: NativeHandle, answer: NativeCallback<T>) => number
}
