/**
 * The client: what there is beside the operations on znodes, which are in `znodes.ts`. What keeps the session alive is in
 * `session/session.ts`.
 */
import { abortAfter, rejectOnAbort } from '../core/async/abort.ts'
import { InvalidArgument, NotConnected, Timeout } from '../core/errors.ts'
import { Emitter } from '../core/events.ts'
import { type Duration, toMilliseconds } from '../core/time.ts'
import { ALL_CAPABILITIES } from './capabilities.ts'
import { CLIENT_EVENTS, type DriverEvents } from './client-events.ts'
import type { ClientCounters } from './connection/counters.ts'
import type { RequestOptions } from './connection/pending.ts'
import { CONFIG_PATH, type EnsembleConfig, parseConfig, type Reconfiguration, reconfig } from './ensemble.ts'
import { checkOptions, DEFAULT_MAX_REQUEST_BYTES, toSessionOptions, type ZooKeeperOptions } from './options.ts'
import type { Identity } from './protocol/acl.ts'
import { checkNames } from './protocol/arguments.ts'
import { formatEndpoint, parseConnectString } from './protocol/connect-string.ts'
import { Chroot } from './protocol/path.ts'
import type { WatchKind, WatchMode } from './protocol/requests.ts'
import * as requests from './protocol/requests.ts'
import { mapReply } from './protocol/requests.ts'
import type { LeaseHold } from './session/lease-keeper.ts'
import { RequestSender } from './session/requester.ts'
import { Session } from './session/session.ts'
import type { SessionInfo } from './session/session-options.ts'
import type { ClientState } from './session/states.ts'
import { HandlerErrorReporter } from './watches/handler-faults.ts'
import type { OneShotHandler } from './watches/one-shot-watches.ts'
import { type Watch, WatchManager } from './watches/watch-manager.ts'
import { type WatchHandler, WatchRegistry } from './watches/watches.ts'
import { Znodes } from './znodes.ts'

export type { ZooKeeperOptions } from './options.ts'

/** Smaller than a server takes: other requests get in between. */
const MAX_ARMING_BYTES = 128 * 1_024

/**
 * A client for ZooKeeper 3.6 and newer.
 *
 * Requests are pipelined: they are sent in the order in which they are made and answered in the same order. Answers and
 * watch events are seen in the order in which the server sent them: when an answer is there, every event before it has
 * been told, and what awaits the answer runs before any event behind it is told.
 *
 * Every operation costs one round trip; writes also a transaction of the ensemble, even those that are refused. Errors
 * are {@link ZooKeeperError}s and say in `outcome` what became of the request, and in `retryable` whether to ask again. While there is no connection requests
 * wait for it: until the session is over, and never longer than the session's timeout.
 *
 * @example
 * await using zookeeper = new ZooKeeper({ hosts: '127.0.0.1:2181' })
 * await zookeeper.connect()
 * const { path } = await zookeeper.create('/greeting', Buffer.from('hello'))
 */
export class ZooKeeper extends Znodes implements AsyncDisposable {
  /** As a driver (`ZooKeeperDriver`) it lacks nothing. */
  readonly capabilities = ALL_CAPABILITIES
  #hosts: string
  readonly #sessionTimeout: number
  readonly #sender: RequestSender
  readonly #watching: WatchManager
  readonly #session: Session
  readonly #emitter: Emitter<DriverEvents>

  /** @throws InvalidArgument for options that cannot mean anything */
  constructor(options: ZooKeeperOptions) {
    checkOptions(options)
    const chroot = new Chroot(parseConnectString(options.hosts).chroot)
    const settings = toSessionOptions(options)
    const { maxRequestBytes = DEFAULT_MAX_REQUEST_BYTES, traceCallers = false } = options
    const faults = new HandlerErrorReporter({ log: options.log, emit: (fault) => emitter.emit('error', fault) })
    const watches = new WatchRegistry({
      chroot,
      armingBytes: Math.min(MAX_ARMING_BYTES, maxRequestBytes / 2),
      onFault: (error, path) => faults.reportWatch(error, path),
    })
    const emitter = new Emitter<DriverEvents>((error, event) => faults.reportListener(error, event), {
      events: CLIENT_EVENTS,
    })
    const session = new Session(settings, {
      stateChanged: (event) => {
        emitter.emit('state', event)
        if (event.state === 'lost') watches.sessionOver(event.reason)
        if (event.state === 'closed') watches.close()
      },
      sessionChanged: (event) => void emitter.emit('session', event),
      events: (batch) => watches.dispatch(batch),
      gap: () => watches.gap(),
      arming: (zxid) => watches.armingPortions().map((portion) => requests.setWatches(portion, zxid)),
    })
    const asker = new RequestSender({
      chroot,
      maxRequestBytes,
      traceCallers,
      submit: (pending) => session.submit(pending),
    })
    const watching = new WatchManager(asker, watches)
    super(asker, watching, options.acl)
    this.#hosts = options.hosts
    this.#sessionTimeout = settings.sessionTimeout
    this.#sender = asker
    this.#watching = watching
    this.#session = session
    this.#emitter = emitter
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
   * @throws NotConnected naming the servers and what the last of them did; to try again takes a new client
   * @throws TlsFailed, which is a NotConnected, when no certificate is trusted, or one side speaks TLS and the other not
   * @throws IncompatibleVersion when the server is older than 3.6
   * @throws AuthFailed when the server does not accept what this client says of itself
   */
  async connect(options: { readonly signal?: AbortSignal; readonly timeout?: Duration } = {}): Promise<void> {
    checkNames(options)
    const timeout = toMilliseconds(options.timeout ?? this.#sessionTimeout, 'timeout')
    const first = this.#session.start()
    const limit = new AbortController()
    using _timer = abortAfter(limit, timeout, () => new Timeout(`no session within ${timeout} ms`))
    try {
      await rejectOnAbort(rejectOnAbort(first, options.signal), limit.signal)
    } catch (error) {
      const { lastFault } = this.#session
      await this.close()
      if (error !== limit.signal.reason) throw error
      const cause = lastFault ?? limit.signal.reason
      const why = lastFault ? lastFault.message : 'no server answered'
      throw new NotConnected(`no ZooKeeper session at ${this.#hosts} within ${timeout} ms: ${why}`, { cause })
    }
  }

  /**
   * Relies on the session from now on until the hold is released. Six times in a session's timeout the session is proven
   * to be alive, by a `sync` and an empty transaction behind its answer, unless what is written anyway proves it as well;
   * `session.leaseUntil` tells until when it certainly is. When that instant comes the session is lost, before the server
   * could give anything of it to somebody else.
   *
   * Any number may hold it. Without a hold nothing but pings is sent, which prove too little to rely on.
   *
   * @example
   * using hold = zookeeper.holdLease()
   * const { session } = await hold.proven()
   * await zookeeper.create('/leader', null, { ephemeral: true, session })
   */
  holdLease(): LeaseHold {
    return this.#session.lease.hold()
  }

  /**
   * From now on these servers. A connection to one that is not among them is left, with the same session.
   *
   * @param hosts as at the beginning; the chroot must be the same, or left out
   * @throws InvalidArgument
   */
  updateHosts(hosts: string): void {
    const { endpoints, chroot } = parseConnectString(hosts)
    const before = parseConnectString(this.#hosts).chroot
    if (chroot !== '' && chroot !== before) throw new InvalidArgument('updateHosts: the chroot cannot be changed')
    this.#hosts = `${endpoints.map(formatEndpoint).join()}${before}`
    this.#session.updateHosts(endpoints)
  }

  /** What was done so far, in numbers. */
  counters(): ClientCounters {
    return this.#session.counters
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

  /**
   * Calls `listener`, synchronously, at each event until the function returned is called: `state` and `session`, and
   * `error` when a listener or a handler of a watch threw.
   *
   * @throws InvalidArgument for an event that there is not
   */
  on<E extends keyof DriverEvents>(event: E, listener: (event: DriverEvents[E]) => void): () => void {
    return this.#emitter.on(event, listener)
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
   * @throws InvalidArgument for a mode that there is not, and for what is no handler
   * @throws InvalidState when this client watches the same path in the other mode, or waits for a one-shot watch there
   */
  async watch(
    path: string,
    options: { readonly mode: WatchMode; readonly signal?: AbortSignal },
    handler: WatchHandler,
  ): Promise<Watch> {
    return this.#watching.watch(path, options, handler)
  }

  /**
   * Takes watches of this client away; none of them is called any more. One-shot ones are of a kind: `data` those of
   * exists and getData, `children` those of getChildren. `any` are both, and the persistent ones of that very path.
   * One round trip, none where others still wait for the same change.
   *
   * @param options.kind `any` by default
   * @param options.handler only this function's
   * @throws NoWatcher when there is no such watch
   */
  async removeWatches(
    path: string,
    options: { readonly kind?: WatchKind; readonly handler?: OneShotHandler } = {},
  ): Promise<void> {
    await this.#watching.remove(path, { ...options, kind: options.kind ?? 'any' })
  }

  // --- Who we are, who they are ---------------------------------------------------------------------------------------

  /**
   * One more identity, such as `digest` with `user:password`, on this connection and all that follow. Resolves when a
   * server has accepted it, which is on the next connection where this one breaks. Before `connect()` it is as if it stood
   * in the option `auth`.
   *
   * @throws InvalidArgument for what is no identity
   * @throws AuthFailed when the server does not know the scheme or does not accept it: it hangs up then, and the next
   * connection does without
   * @throws NotSent, ConnectionLoss when the client is closed before
   */
  addAuth(scheme: string, auth: string | Uint8Array): Promise<void> {
    return this.#session.addAuth({ scheme, auth })
  }

  /**
   * The identities that servers know this client by; ZooKeeper 3.7 or newer.
   *
   * @throws Unimplemented by older servers, which close the connection
   */
  whoAmI(options: RequestOptions = {}): Promise<Identity[]> {
    return this.#sender.send(requests.whoAmI, options)
  }

  /**
   * Who the servers are. It is outside of every chroot: `getData('/zookeeper/config')` of a client without one may also be
   * watched.
   */
  getConfig(options: RequestOptions = {}): Promise<EnsembleConfig> {
    return this.#sender.send(() => mapReply(requests.getData(CONFIG_PATH), parseConfig), options)
  }

  /**
   * Changes who the servers are, while they run. Those who join must be running.
   *
   * @throws ReconfigRefused, NoAuth (it takes WRITE on the configuration, by default the super user's), BadVersion,
   * BadArguments
   */
  reconfig(change: Reconfiguration, options: RequestOptions = {}): Promise<EnsembleConfig> {
    return this.#sender.send(() => reconfig(change), options)
  }
}
