/** The client: ZooKeeper's operations as promises. What keeps the session alive is in `session.ts`. */
import { unlessAborted } from '../core/abort.ts'
import { InvalidArgument, NotConnected, Timeout } from '../core/errors.ts'
import { Emitter } from '../core/events.ts'
import { describeError } from '../core/failure.ts'
import { type Logger, silent } from '../core/log.ts'
import { type Duration, milliseconds, monotonic } from '../core/time.ts'
import { parseConnectString, Rotation } from './connect-string.ts'
import { ConnectionLoss, NoNode, NoWatcher, RequestTooLarge, ZooKeeperError } from './errors.ts'
import { multi, type Op, type ResultsOf } from './multi.ts'
import { Chroot, checkPath } from './path.ts'
import { Pending, type RequestOptions } from './pending.ts'
import type { Stat } from './records.ts'
import type { CreateMode, Request, WatchMode } from './requests.ts'
import * as requests from './requests.ts'
import { Session, type SessionInfo } from './session.ts'
import type { ClientState } from './states.ts'
import * as tree from './tree.ts'
import { Watches, type WatchHandler } from './watches.ts'

export interface ZooKeeperOptions {
  /** `host:port,host:port/chroot` */
  readonly hosts: string
  /** How long the server keeps the session when it hears nothing of it; the server may grant another. 10 s by default. */
  readonly sessionTimeout?: Duration
  /** How long to wait for one server before trying the next; a third of the session's timeout by default. */
  readonly connectTimeout?: Duration
  readonly log?: Logger
  /** Larger answers close the connection. 64 MiB by default: a long list of children is large. */
  readonly maxReplyBytes?: number
  /** Larger requests are refused here. By default what a server takes that was left at its own default. */
  readonly maxRequestBytes?: number
  /** Whether another session follows one that is lost. */
  readonly newSession?: 'automatic' | 'never'
}

export interface StateEvent {
  readonly state: ClientState
  readonly previous: ClientState
  /** The session there is after the change. */
  readonly session?: bigint
  /** Why the connection or the session is gone. */
  readonly reason?: Error
}

export interface SessionEvent {
  readonly session: bigint
  /** The one before, if there was one. Its ephemeral znodes are gone, or about to go. */
  readonly previous?: bigint
}

interface ClientEvents {
  state: StateEvent
  session: SessionEvent
}

export interface Watch {
  readonly path: string
  /** Stops telling the handler, at once. */
  remove(): Promise<void>
}

type Versioned = RequestOptions & { readonly version?: number }

const DEFAULT_SESSION_TIMEOUT = 10_000
const DEFAULT_MAX_REPLY = 64 * 1_024 * 1_024
/** `jute.maxbuffer` as servers ship. */
const DEFAULT_MAX_REQUEST = 1_048_575
const ANY_VERSION = -1

/**
 * A client for ZooKeeper 3.6 and newer.
 *
 * Requests are pipelined: they are sent in the order in which they are made and answered in the same order. Answers and
 * watch events are seen in the order in which the server sent them: when an answer is there, every event before it has
 * been told, and what awaits the answer runs before any event behind it is told.
 *
 * Every operation costs one round trip; writes also a transaction of the ensemble, even those that are refused. Errors
 * are {@link ZooKeeperError}s and say in `outcome` what became of the request. While there is no connection requests
 * wait for it: until the session is over, and never longer than the session's timeout.
 *
 * @example
 * await using zookeeper = new ZooKeeper({ hosts: '127.0.0.1:2181' })
 * await zookeeper.connect()
 * const { path } = await zookeeper.create('/greeting', Buffer.from('hello'))
 */
export class ZooKeeper implements AsyncDisposable {
  readonly #hosts: string
  readonly #chroot: Chroot
  readonly #sessionTimeout: number
  readonly #maxRequestBytes: number
  readonly #watches: Watches
  readonly #session: Session
  readonly #emitter: Emitter<ClientEvents>

  /** @throws InvalidArgument for options that cannot mean anything */
  constructor(options: ZooKeeperOptions) {
    const log = options.log ?? silent
    const { endpoints, chroot } = parseConnectString(options.hosts)
    this.#hosts = options.hosts
    this.#chroot = new Chroot(chroot)
    this.#sessionTimeout = milliseconds(options.sessionTimeout ?? DEFAULT_SESSION_TIMEOUT, 'sessionTimeout')
    if (this.#sessionTimeout < 1) throw new InvalidArgument('sessionTimeout: a session must last longer than no time')
    this.#maxRequestBytes = options.maxRequestBytes ?? DEFAULT_MAX_REQUEST
    this.#watches = new Watches((error) => log.error({ reason: describeError(error) }, 'a watch handler threw'))
    this.#emitter = new Emitter((error, event) =>
      log.error({ event, reason: describeError(error) }, 'a listener of the ZooKeeper client threw'),
    )
    this.#session = new Session(
      {
        rotation: new Rotation(endpoints),
        sessionTimeout: this.#sessionTimeout,
        connectTimeout: milliseconds(options.connectTimeout ?? this.#sessionTimeout / 3, 'connectTimeout'),
        maxReplyBytes: options.maxReplyBytes ?? DEFAULT_MAX_REPLY,
        newSession: options.newSession ?? 'automatic',
        log,
      },
      {
        stateChanged: (event) => this.#emitter.emit('state', event),
        sessionChanged: (event) => this.#emitter.emit('session', event),
        events: (batch) => this.#watches.dispatch(batch),
        gap: () => this.#watches.gap(),
        arming: (zxid) => this.#watches.portions().map((portion) => requests.setWatches(portion, zxid)),
      },
    )
  }

  get state(): ClientState {
    return this.#session.state
  }

  /** Undefined while there is none. */
  get session(): SessionInfo | undefined {
    return this.#session.info
  }

  /**
   * Opens the first session; called once. A client that could not connect is closed.
   *
   * @param options.timeout how long to try; the session's timeout by default
   * @throws NotConnected naming the servers and what the last of them did
   * @throws IncompatibleVersion when the server is older than 3.6
   */
  async connect(options: { readonly signal?: AbortSignal; readonly timeout?: Duration } = {}): Promise<void> {
    const timeout = milliseconds(options.timeout ?? this.#sessionTimeout, 'timeout')
    const first = this.#session.start()
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(new Timeout(`no session within ${timeout} ms`)), timeout)
    try {
      await unlessAborted(unlessAborted(first, options.signal), limit.signal)
    } catch (error) {
      const { lastFault } = this.#session
      await this.close()
      if (error !== limit.signal.reason) throw error
      const cause = lastFault ?? limit.signal.reason
      const why = lastFault ? lastFault.message : 'no server answered'
      throw new NotConnected(`no ZooKeeper session at ${this.#hosts} within ${timeout} ms: ${why}`, { cause })
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Closes the session at the server, so that its ephemeral znodes go at once. What was asked before is still answered;
   * whatever is pending after that is rejected. Never throws, may be called again, takes a few seconds at the most.
   */
  close(): Promise<void> {
    return this.#session.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Calls `listener`, synchronously, at each event until the function returned is called. */
  on<E extends keyof ClientEvents>(event: E, listener: (event: ClientEvents[E]) => void): () => void {
    return this.#emitter.on(event, listener)
  }

  // --- Znodes -----------------------------------------------------------------------------------------------------

  /**
   * Creates a znode. Without data it has none (null), which is not the same as empty data.
   *
   * @param options.ephemeral it lives as long as this session
   * @param options.sequential the server appends ten digits, counted per parent, to the name
   * @throws NodeExists, NoNode (no parent), NoChildrenForEphemerals, NoAuth, InvalidAcl
   */
  async create(
    path: string,
    data: Uint8Array | null = null,
    options: CreateMode & RequestOptions = {},
  ): Promise<{ path: string; stat: Stat }> {
    const sequential = options.sequential ?? false
    const created = await this.#ask(requests.create(this.#outward(path, { sequential }), data, options), options)
    return { path: this.#inward(created.path), stat: created.stat }
  }

  /**
   * @param options.version what the znode must be at; any by default
   * @throws NoNode, BadVersion, NotEmpty, NoAuth
   */
  async delete(path: string, options: Versioned = {}): Promise<void> {
    await this.#ask(requests.remove(this.#outward(path), options.version ?? ANY_VERSION), options)
  }

  /** Undefined where there is no such znode. */
  async exists(path: string, options: RequestOptions = {}): Promise<Stat | undefined> {
    try {
      return await this.#ask(requests.exists(this.#outward(path)), options)
    } catch (error) {
      if (error instanceof NoNode) return undefined
      throw error
    }
  }

  /** @throws NoNode, NoAuth */
  async getData(path: string, options: RequestOptions = {}): Promise<{ data: Uint8Array | null; stat: Stat }> {
    return this.#ask(requests.getData(this.#outward(path)), options)
  }

  /**
   * @param options.version what the znode must be at; any by default
   * @throws NoNode, BadVersion, NoAuth
   */
  async setData(path: string, data: Uint8Array | null, options: Versioned = {}): Promise<Stat> {
    return this.#ask(requests.setData(this.#outward(path), data, options.version ?? ANY_VERSION), options)
  }

  /**
   * The names of the children, in no order.
   *
   * @throws NoNode, NoAuth
   */
  async getChildren(path: string, options: RequestOptions = {}): Promise<{ names: string[]; stat: Stat }> {
    return this.#ask(requests.getChildren(this.#outward(path)), options)
  }

  /**
   * Lets the server this client is attached to catch up with the leader: what is read after it shows every write that
   * was answered, to anybody, before it. There is no need to await it: ask, and read right behind it.
   */
  async sync(path: string, options: RequestOptions = {}): Promise<void> {
    await this.#ask(requests.sync(this.#outward(path)), options)
  }

  /**
   * One transaction: all operations, in order, or none. They see each other's effects.
   *
   * @throws the error of the operation that was refused; its `index` says which
   * @example
   * const { zxid, results: [, created] } = await zookeeper.multi([op.check('/a', { version: 3 }), op.create('/a/b', null)])
   */
  async multi<const Ops extends readonly Op[]>(
    ops: Ops,
    options: RequestOptions = {},
  ): Promise<{ zxid: bigint; results: ResultsOf<Ops> }> {
    const outward = ops.map((each) => {
      const sequential = each.type === 'create' && each.sequential === true
      return { ...each, path: this.#outward(each.path, { sequential }) }
    })
    const { zxid, results } = await this.#ask(multi(outward), options)
    const inward = results.map((result) =>
      result && 'path' in result ? { ...result, path: this.#inward(result.path) } : result,
    )
    // One result per operation, of its type, is what the answer was read as.
    return { zxid, results: inward as ResultsOf<Ops> }
  }

  /**
   * Makes a znode and whatever is missing above it, without data. Two round trips; a transaction for each that is made.
   * Of `/` under a chroot it makes the chroot.
   */
  async mkdirp(path: string, options: Pick<CreateMode, 'acl'> & RequestOptions = {}): Promise<void> {
    const target = this.#outward(path)
    await tree.makePath((request) => this.#ask(request, options), target, options.acl ? { acl: options.acl } : {})
  }

  /**
   * Deletes a znode and everything under it, children first, in several transactions. What is made meanwhile is deleted,
   * too, up to a point.
   *
   * @param options.limit how many znodes may be deleted; 100,000 by default
   * @returns how many were deleted; 0 where there was nothing
   * @throws InvalidState before anything is deleted when there are more than `limit`
   * @throws NotEmpty when children are made faster than they are deleted
   */
  async deleteRecursive(path: string, options: RequestOptions & { readonly limit?: number } = {}): Promise<number> {
    const limit = options.limit === undefined ? {} : { limit: options.limit }
    return tree.deleteTree((request) => this.#ask(request, options), this.#outward(path), limit)
  }

  // --- Watches ----------------------------------------------------------------------------------------------------

  /**
   * Watches a znode, which need not exist, until the watch is removed: over connections and sessions.
   *
   * `persistent` tells of the znode itself and of children made and deleted (`childrenChanged`, without names);
   * `recursive` tells of the znode and of everything below it, by `created`, `deleted` and `dataChanged`.
   *
   * Handlers are called synchronously. `gap` is called whenever the watch was armed on a new connection, because nothing
   * that happened in between is told: read everything again. What a handler asks in it goes ahead of what was waiting
   * for the connection. Watch first, then read: what changes after the reading is told.
   *
   * @throws InvalidState when the path is watched in the other mode
   */
  async watch(
    path: string,
    options: { readonly mode: WatchMode; readonly signal?: AbortSignal },
    handler: WatchHandler,
  ): Promise<Watch> {
    const outward = this.#outward(path)
    const registration = this.#watches.add(outward, options.mode, this.#inwardHandler(handler))
    const remove = async () => {
      if (!this.#watches.remove(registration)) return
      await this.#ask(requests.removeWatches(outward)).catch(ignoreGone)
    }
    try {
      await this.#armWatch(outward, options)
    } catch (error) {
      remove().catch(() => undefined)
      throw error
    }
    return { path, remove }
  }

  /** A watch that is registered is armed with every new connection; asking again after one is lost does no harm. */
  async #armWatch(path: string, options: { mode: WatchMode; signal?: AbortSignal }): Promise<void> {
    const signal = options.signal ? { signal: options.signal } : {}
    for (;;) {
      try {
        return await this.#ask(requests.addWatch(path, options.mode), signal)
      } catch (error) {
        if (!(error instanceof ConnectionLoss) || this.state === 'closed') throw error
      }
    }
  }

  #inwardHandler(handler: WatchHandler): WatchHandler {
    return {
      gap: () => handler.gap(),
      events: (batch) => handler.events(batch.map((event) => ({ ...event, path: this.#inward(event.path) }))),
    }
  }

  // --- Asking -----------------------------------------------------------------------------------------------------

  #ask<T>(request: Request<T>, options: RequestOptions = {}): Promise<T> {
    const bytes = requests.payloadBytes(request.frame)
    if (bytes > this.#maxRequestBytes) {
      const { operation, path } = request
      const subject = path === undefined ? operation : `${operation} ${path}`
      const message = `${subject}: not sent, ${bytes} bytes are more than the ${this.#maxRequestBytes} that a server takes`
      return Promise.reject(new RequestTooLarge(message, { path }))
    }
    const pending = new Pending(request, monotonic(), options)
    this.#session.submit(pending)
    return pending.promise
  }

  #outward(path: string, options: { sequential?: boolean } = {}): string {
    checkPath(path, options)
    return this.#chroot.outward(path)
  }

  #inward(path: string): string {
    return this.#chroot.inward(path) ?? path
  }
}

/** The watch is gone, one way or another: with the session, with the connection, or before. */
function ignoreGone(error: unknown): void {
  if (error instanceof NoWatcher || (error instanceof ZooKeeperError && error.outcome !== 'refused')) return
  throw error
}
