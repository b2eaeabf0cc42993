/**
 * ZooKeeper's own C client, by way of the `zookeeper` package, behind the interface of ours.
 *
 * It is there for those who want the official client under their feet, and as a witness of what a server means. It is
 * not its equal: see {@link NATIVE_CAPABILITIES}.
 */
import { abortAfter, rejectOnAbort } from '../../core/async/abort.ts'
import { InvalidArgument, NotConnected, Timeout } from '../../core/errors.ts'
import { Emitter } from '../../core/events.ts'
import { assertLogger, type Logger } from '../../core/log.ts'
import { assertOptions, type KnownOptions } from '../../core/options.ts'
import { type Duration, toMilliseconds } from '../../core/time.ts'
import { CLIENT_EVENTS, type DriverEvents } from '../client-events.ts'
import { Hosts } from '../connection/hosts.ts'
import type { RequestOptions } from '../connection/pending.ts'
import type { ZooKeeperDriver } from '../driver.ts'
import { toPositiveMs } from '../options.ts'
import { ACL, type Acl } from '../protocol/acl.ts'
import { assertList, assertOneOf, checkData, checkRequestOptions, checkVersion } from '../protocol/arguments.ts'
import { parseConnectString } from '../protocol/connect-string.ts'
import { type CreateMode, toCreateKind } from '../protocol/create.ts'
import { ConnectionLoss, NO_NODE, NodeExists, NotSent, RequestTooLarge, toError } from '../protocol/errors.ts'
import { MAX_INT32 } from '../protocol/jute.ts'
import { checkPath, listAncestors } from '../protocol/path.ts'
import type { Stat } from '../protocol/records.ts'
import type { ReadData } from '../protocol/requests.ts'
import type { LeaseHold } from '../session/lease-keeper.ts'
import type { ClientState } from '../session/states.ts'
import { HandlerErrorReporter } from '../watches/handler-faults.ts'
import type { OneShotKind } from '../watches/one-shot-watches.ts'
import type { ReadOptions } from '../watches/watch-manager.ts'
import { DRIVER_NAME, missingCapabilityError, NATIVE_CAPABILITIES, rejectForeignOptions } from './capabilities.ts'
import type { NativeAuth } from './connection.ts'
import {
  checkPackage,
  NATIVE_CODE,
  type NativeAcl,
  type NativeCallback,
  type NativeHandle,
  type NativePackage,
  type NativeRequest,
  type NativeStat,
  type NativeWatch,
  toStat,
} from './package.ts'
import { NativeSession } from './session.ts'
import { NativeWatches } from './watches.ts'

/** Options of a client over the official C client. */
export interface NativeOptions {
  /** `host:port,host:port/chroot` */
  readonly hosts: string
  /** Time after which the server expires a silent session; the server may grant another. 10 s by default. */
  readonly sessionTimeout?: Duration
  /** The server's tick, if it is another than the usual 2 s: what leases depend on. */
  readonly tick?: Duration
  readonly log?: Logger
  /** Larger requests are refused here. By default what a server takes that was left at its own default. */
  readonly maxRequestBytes?: number
  /** Given on every connection before anything else is asked: `{ scheme: 'digest', auth: 'user:password' }`. */
  readonly auth?: readonly NativeAuth[]
  /** Whether another session follows one that is lost. */
  readonly newSession?: 'automatic' | 'never'
  /** Module of `import('zookeeper')`, for programs in which it cannot be resolved, such as a bundle. */
  readonly package?: unknown
}

const KNOWN_OPTIONS: KnownOptions<NativeOptions> = {
  hosts: true,
  sessionTimeout: true,
  tick: true,
  log: true,
  maxRequestBytes: true,
  auth: true,
  newSession: true,
  package: true,
}
const DEFAULT_SESSION_TIMEOUT_MS = 10_000
const DEFAULT_MAX_REQUEST_BYTES = 1_048_575
const ANY_VERSION = -1
const MAX_TTL_MS = MAX_INT32
const NO_DATA = Buffer.alloc(0)
/** A request's header, lengths, flags and the open ACL: never more than that beside path and data. */
const REQUEST_OVERHEAD_BYTES = 64

/**
 * The official C client, of the package `zookeeper`, behind the same interface as ours. What it lacks, `NATIVE_CAPABILITIES` says.
 *
 * @example
 * await using zookeeper = new NativeZooKeeper({ hosts: '127.0.0.1:2181' })
 * await zookeeper.connect()
 */
export class NativeZooKeeper implements ZooKeeperDriver {
  readonly capabilities = NATIVE_CAPABILITIES
  readonly #options: NativeOptions
  readonly #sessionTimeout: number
  readonly #emitter: Emitter<DriverEvents>
  readonly #watches: NativeWatches
  readonly #session: NativeSession

  /**
   * @throws InvalidArgument for invalid options
   * @throws UnsupportedCapability for `tls` and `sasl`
   */
  constructor(options: NativeOptions) {
    rejectForeignOptions(Object(options))
    assertOptions(options, KNOWN_OPTIONS, 'a native client')
    if (options.log !== undefined) assertLogger(options.log)
    if (options.newSession !== undefined) assertOneOf(options.newSession, ['automatic', 'never'], 'newSession')
    const { endpoints, chroot } = parseConnectString(options.hosts)
    this.#options = options
    this.#sessionTimeout = toPositiveMs(options.sessionTimeout ?? DEFAULT_SESSION_TIMEOUT_MS, 'sessionTimeout')
    const faults = new HandlerErrorReporter({ log: options.log, emit: (fault) => this.#emitter.emit('error', fault) })
    this.#emitter = new Emitter((error, event) => faults.reportListener(error, event), { events: CLIENT_EVENTS })
    this.#watches = new NativeWatches((error, path) => faults.reportWatch(error, path))
    this.#session = new NativeSession(
      {
        hosts: new Hosts(endpoints),
        chroot,
        sessionTimeout: this.#sessionTimeout,
        tick: options.tick === undefined ? undefined : toPositiveMs(options.tick, 'tick'),
        newSession: options.newSession ?? 'automatic',
        auth: options.auth ?? [],
        onOver: (reason) => this.#watches.sessionOver(reason),
        onReattached: (ask) => this.#watches.rearm(ask, isGap),
      },
      this.#emitter,
    )
  }

  get state(): ClientState {
    return this.#session.state
  }

  get session(): { readonly id: bigint; readonly timeout: number; readonly leaseUntil: number } | undefined {
    return this.#session.info
  }

  /**
   * Maintains a lease on the session until the hold is released, as {@link ZooKeeper.holdLease}. The proofs are in
   * `lease.ts`.
   */
  holdLease(): LeaseHold {
    return this.#session.lease.hold()
  }

  /**
   * Loads the package and opens the first session; called once. A client that could not connect is closed.
   *
   * @param options.timeout how long to try; the session's timeout by default
   * @throws InvalidArgument when the package is not installed, saying how to install it
   * @throws NotConnected naming the servers
   */
  async connect(options: { readonly signal?: AbortSignal; readonly timeout?: Duration } = {}): Promise<void> {
    const timeout = toMilliseconds(options.timeout ?? this.#sessionTimeout, 'timeout')
    const first = this.#session.start(() => loadPackage(this.#options.package))
    const limit = new AbortController()
    using _timer = abortAfter(limit, timeout, () => new Timeout(`no session within ${timeout} ms`))
    try {
      await rejectOnAbort(rejectOnAbort(first, options.signal), limit.signal)
    } catch (error) {
      await this.close()
      if (error !== limit.signal.reason) throw error
      throw new NotConnected(`no ZooKeeper session at ${this.#options.hosts} within ${timeout} ms`, { cause: error })
    }
  }

  /** Waits for requests in flight, and ends the session at the server. Never throws, may be called again. */
  close(): Promise<void> {
    return this.#session.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  on<E extends keyof DriverEvents>(event: E, listener: (event: DriverEvents[E]) => void): () => void {
    return this.#emitter.on(event, listener)
  }

  // --- Znodes -------------------------------------------------------------------------------------------------------

  async create(
    path: string,
    data: Uint8Array | null = NO_DATA,
    options: CreateMode & RequestOptions = {},
  ): Promise<{ path: string }> {
    const { acl = ACL.open, sequential = false } = options
    checkPath(path, { sequential })
    if (JSON.stringify(acl) !== JSON.stringify(ACL.open)) throw missingCapabilityError('aclOnCreate')
    const bytes = this.#writable('create', path, data)
    const { flag, ttl } = toCreateKind(options)
    if (ttl !== undefined && ttl > MAX_TTL_MS) {
      throw new InvalidArgument(`ttl: ${DRIVER_NAME} takes at most ${MAX_TTL_MS} ms, some 24 days`)
    }
    return this.#send<{ path: string }>(options, {
      operation: 'create',
      path,
      send: (handle, answer) => {
        const done = (code: number, _: string, made: string) => answer(code, () => ({ path: made }))
        if (ttl === undefined) return handle.a_create(path, bytes, flag, done)
        return handle.a_createTtl(path, bytes, flag, Number(ttl), done)
      },
    })
  }

  async delete(path: string, options: RequestOptions & { readonly version?: number } = {}): Promise<void> {
    checkPath(path)
    const version = checkVersion(options.version ?? ANY_VERSION)
    return this.#send<void>(options, {
      operation: 'delete',
      path,
      send: (handle, answer) => handle.a_delete_(path, version, (code) => answer(code, () => undefined)),
    })
  }

  /** @param options.watch called when it is created, deleted or written */
  async exists(path: string, options: ReadOptions = {}): Promise<Stat | undefined> {
    const reading = { operation: 'exists', path, kind: 'data', statOf: (stat: Stat | undefined) => stat } as const
    return this.#read<Stat | undefined>(reading, options, (handle, watch, answer) => {
      const done = (code: number, _: string, stat: NativeStat | null) =>
        code === NATIVE_CODE.noNode ? answer(NATIVE_CODE.ok, () => undefined) : answer(code, () => requireStat(stat))
      return watch ? handle.aw_exists(path, watch, done) : handle.a_exists(path, false, done)
    })
  }

  /** @param options.watch called when it is deleted or written */
  async getData(path: string, options: ReadOptions = {}): Promise<ReadData> {
    const reading = { operation: 'getData', path, kind: 'data', statOf: ({ stat }: ReadData) => stat } as const
    return this.#read<ReadData>(reading, options, (handle, watch, answer) => {
      const done = (code: number, _: string, stat: NativeStat | null, data: Buffer | null) =>
        answer(code, () => ({ data, stat: requireStat(stat) }))
      return watch ? handle.aw_get(path, watch, done) : handle.a_get(path, false, done)
    })
  }

  async setData(
    path: string,
    data: Uint8Array | null,
    options: RequestOptions & { readonly version?: number } = {},
  ): Promise<Stat> {
    checkPath(path)
    const bytes = this.#writable('setData', path, data)
    const version = checkVersion(options.version ?? ANY_VERSION)
    return this.#send(options, {
      operation: 'setData',
      path,
      send: (handle, answer) =>
        handle.a_set(path, bytes, version, (code, _, stat) => answer(code, () => requireStat(stat))),
    })
  }

  /** @param options.watch called when a child is created or deleted, and when the znode itself is deleted */
  async getChildren(path: string, options: ReadOptions = {}): Promise<{ names: string[]; stat: Stat }> {
    type Children = { names: string[]; stat: Stat }
    const reading = { operation: 'getChildren', path, kind: 'children', statOf: ({ stat }: Children) => stat } as const
    return this.#read<Children>(reading, options, (handle, watch, answer) => {
      const done = (code: number, _: string, names: string[] | null, stat: NativeStat | null) =>
        answer(code, () => ({ names: names ?? [], stat: requireStat(stat) }))
      return watch ? handle.aw_get_children2(path, watch, done) : handle.a_get_children2(path, false, done)
    })
  }

  async getACL(path: string, options: RequestOptions = {}): Promise<{ acl: Acl[]; stat: Stat }> {
    checkPath(path)
    // For a missing znode the binding reads an ACL that does not exist, and the process crashes.
    if (!(await this.exists(path, options))) throw toError(NO_NODE, { operation: 'getACL', path })
    return this.#send(options, {
      operation: 'getACL',
      path,
      send: (handle, answer) =>
        handle.a_get_acl(path, (code, _, acl, stat) =>
          answer(code, () => ({ acl: (acl ?? []).map(toAcl), stat: requireStat(stat) })),
        ),
    })
  }

  /** Replaces the ACL. Znodes are created open to all: until this is answered, any client may change them. */
  async setACL(
    path: string,
    acl: readonly Acl[],
    options: RequestOptions & { readonly aversion?: number } = {},
  ): Promise<undefined> {
    checkPath(path)
    assertList(acl, 'acl')
    const aversion = checkVersion(options.aversion ?? ANY_VERSION)
    const list = acl.map(({ permissions, scheme, id }) => ({ perms: permissions, scheme, auth: id }))
    return this.#send<undefined>(options, {
      operation: 'setACL',
      path,
      send: (handle, answer) => handle.a_set_acl(path, aversion, list, (code) => answer(code, () => undefined)),
    })
  }

  async sync(path: string, options: RequestOptions = {}): Promise<void> {
    checkPath(path)
    return this.#send<void>(options, {
      operation: 'sync',
      path,
      send: (handle, answer) => handle.a_sync(path, (code) => answer(code, () => undefined)),
    })
  }

  /** Creates a znode and its missing ancestors, with empty data: one round trip for each. */
  async mkdirp(path: string, options: Pick<CreateMode, 'acl'> & RequestOptions = {}): Promise<void> {
    checkPath(path)
    for (const each of listAncestors(path)) {
      if (await this.exists(each, options)) continue
      await this.create(each, NO_DATA, options).catch((error: unknown) => {
        if (!(error instanceof NodeExists)) throw error
      })
    }
  }

  // --- Missing operations ---------------------------------------------------------------------------------------------

  async multi(): Promise<never> {
    throw missingCapabilityError('multi')
  }

  async watch(): Promise<never> {
    throw missingCapabilityError('persistentWatch')
  }

  async removeWatches(): Promise<never> {
    throw missingCapabilityError('removeWatches')
  }

  // --- Asking -------------------------------------------------------------------------------------------------------

  /**
   * Sends a request. Every operation returns this very promise: one more `await` in one of them would reorder answers.
   */
  #send<T>(options: RequestOptions, question: NativeRequest<T>): Promise<T> {
    checkRequestOptions(options)
    return this.#session.send(question, options)
  }

  /** Reads with a watch, if one is wanted; a read without an answer sets no watch. */
  #read<T>(
    { operation, path, kind, statOf }: NativeRead<T>,
    options: ReadOptions,
    ask: (handle: NativeHandle, watch: NativeWatch | undefined, answer: NativeCallback<T>) => number,
  ): Promise<T> {
    checkPath(path)
    const watch = options.watch && this.#watches.add(path, kind, options.watch)
    const question = {
      operation,
      path,
      send: (handle: NativeHandle, answer: NativeCallback<T>) => ask(handle, watch?.listener(), answer),
    }
    const answer = this.#send<T>(options, question)
    if (watch) {
      answer.then(
        (value) => watch.set(statOf(value)),
        () => this.#watches.forget(watch),
      )
    }
    return answer
  }

  #writable(operation: string, path: string, given: Uint8Array | null): Buffer {
    const data = checkData(given)
    if (data === null) throw missingCapabilityError('nullData')
    const bytes = data.length + Buffer.byteLength(path) + REQUEST_OVERHEAD_BYTES
    const most = this.#options.maxRequestBytes ?? DEFAULT_MAX_REQUEST_BYTES
    if (bytes > most) {
      const message = `${operation} ${path}: not sent, about ${bytes} bytes are more than the ${most} that a server takes`
      throw new RequestTooLarge(message, { path })
    }
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  }
}

interface NativeRead<T> {
  readonly operation: string
  readonly path: string
  /** Returns the kind of watch that the server sets for the operation. */
  readonly kind: OneShotKind
  /** Returns the Stat in the answer; undefined where there is no znode. */
  readonly statOf: (value: T) => Stat | undefined
}

/** Whether the connection broke before an answer, so that the next connection has to find out. */
function isGap(error: unknown): boolean {
  return error instanceof ConnectionLoss || error instanceof NotSent
}

async function loadPackage(given: unknown): Promise<NativePackage> {
  if (given !== undefined) return checkPackage(given)
  let loaded: unknown
  try {
    loaded = (await import('zookeeper')).default
  } catch (cause) {
    const how = 'npm install zookeeper@7.3.0 (on Linux it compiles: it needs a C++ compiler, make and Python)'
    throw new InvalidArgument(`${DRIVER_NAME} cannot be loaded; install it: ${how}`, { cause })
  }
  return checkPackage(loaded)
}

function toAcl({ perms, scheme, auth }: NativeAcl): Acl {
  return { permissions: perms, scheme, id: auth }
}

/** Returns the Stat of an answer without an error, which always has one. */
function requireStat(stat: NativeStat | null): Stat {
  if (!stat) throw new InvalidArgument('the zookeeper package answered without a Stat; install zookeeper@7.3.0')
  return toStat(stat)
}
