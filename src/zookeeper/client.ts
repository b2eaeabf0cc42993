/**
 * The client, except for the operations on znodes, which are in `znodes.ts`. The session is kept alive in
 * `session/session.ts`.
 */
import { abortAfter, rejectOnAbort } from '../core/async/abort.ts'
import { InvalidArgument, NotConnected, Timeout } from '../core/errors.ts'
import { Emitter } from '../core/events.ts'
import { type Duration, toMilliseconds } from '../core/time.ts'
import { CLIENT_EVENTS, type ClientEvents } from './client-events.ts'
import type { ClientCounters } from './connection/counters.ts'
import type { RequestOptions } from './connection/pending.ts'
import { CONFIG_PATH, type EnsembleConfig, parseConfig, type Reconfiguration, reconfig } from './ensemble.ts'
import { checkOptions, toSessionOptions, type ZooKeeperOptions } from './options.ts'
import type { Identity } from './protocol/acl.ts'
import { checkNames } from './protocol/arguments.ts'
import { formatEndpoint, parseConnectString } from './protocol/connect-string.ts'
import { Chroot } from './protocol/path.ts'
import type { WatchKind, WatchMode } from './protocol/requests.ts'
import * as requests from './protocol/requests.ts'
import { mapReply } from './protocol/requests.ts'
import type { LeaseHold } from './session/lease-keeper.ts'
import { RequestSender } from './session/request-sender.ts'
import { Session } from './session/session.ts'
import type { SessionInfo } from './session/session-options.ts'
import type { ClientState } from './session/states.ts'
import { HandlerErrorReporter } from './watches/handler-faults.ts'
import type { OneShotHandler } from './watches/one-shot-watches.ts'
import { type Watch, WatchManager } from './watches/watch-manager.ts'
import { type WatchHandler, WatchRegistry } from './watches/watches.ts'
import { Znodes } from './znodes.ts'

export type { ZooKeeperOptions } from './options.ts'

/** Far below a server's limit, so that other requests are sent between two portions. */
const MAX_ARMING_BYTES = 128 * 1_024

/**
 * A client for ZooKeeper 3.6 and newer.
 *
 * Requests are pipelined: they are sent in the order in which they are made and answered in the same order. Answers and
 * watch events are delivered in the order in which the server sent them: before an answer is delivered, all earlier
 * events have been delivered, and code that awaits the answer runs before any later event.
 *
 * Every operation costs one round trip; writes also cost a transaction of the ensemble, even refused ones. Errors are
 * `ZooKeeperError`s: their `outcome` says whether the request was carried out, their `retryable` whether to
 * retry. While there is no connection, requests wait for one until the session is over, but never longer than the
 * session's timeout.
 *
 * @example
 * await using zookeeper = new ZooKeeper({ hosts: '127.0.0.1:2181' })
 * await zookeeper.connect()
 * const { path } = await zookeeper.create('/greeting', Buffer.from('hello'))
 */
export class ZooKeeper extends Znodes implements AsyncDisposable {
  #hosts: string
  readonly #sessionTimeout: number
  readonly #sender: RequestSender
  readonly #watching: WatchManager
  readonly #session: Session
  readonly #emitter: Emitter<ClientEvents>

  /** @throws InvalidArgument for invalid options */
  constructor(options: ZooKeeperOptions) {
    checkOptions(options)
    const chroot = new Chroot(parseConnectString(options.hosts).chroot)
    const settings = toSessionOptions(options)
    const { traceCallers = false } = options
    const faults = new HandlerErrorReporter({ log: options.log, emit: (fault) => emitter.emit('error', fault) })
    const watches: WatchRegistry = new WatchRegistry({
      chroot,
      armingBytes: () => Math.min(MAX_ARMING_BYTES, session.limit.bytes / 2),
      onFault: (error, path) => faults.reportWatch(error, path),
    })
    const emitter = new Emitter<ClientEvents>((error, event) => faults.reportListener(error, event), {
      events: CLIENT_EVENTS,
    })
    const session: Session = new Session(settings, {
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
    const sender = new RequestSender({
      chroot,
      limit: session.limit,
      traceCallers,
      submit: (pending) => session.submit(pending),
    })
    const watching = new WatchManager(sender, watches)
    super(sender, watching, options.acl)
    this.#hosts = options.hosts
    this.#sessionTimeout = settings.sessionTimeout
    this.#sender = sender
    this.#watching = watching
    this.#session = session
    this.#emitter = emitter
  }

  get state(): ClientState {
    return this.#session.state
  }

  /** Current session; undefined while there is none. */
  get session(): SessionInfo | undefined {
    return this.#session.info
  }

  /** Largest request that is sent, in bytes: the option, or less after a server with a smaller limit was found. */
  get maxRequestBytes(): number {
    return this.#session.limit.bytes
  }

  /**
   * Opens the first session; called once. A client that could not connect is closed.
   *
   * @param options.timeout how long to try; the session's timeout by default
   * @throws NotConnected, with the servers and the last error; create a new client to try again
   * @throws TlsFailed, which is a NotConnected, when no certificate is trusted, or only one side speaks TLS
   * @throws IncompatibleVersion when the server is older than 3.6
   * @throws AuthFailed when the server does not accept this client's credentials
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
   * Maintains a lease on the session until the hold is released. Six times per session timeout the client proves that
   * the session is alive, by a `sync` and an empty transaction after its answer, unless other writes prove it.
   * `session.leaseUntil` is the instant until which the session is certainly alive. At that instant the session is
   * lost, before the server could give its locks to another client.
   *
   * Any number of callers may hold a lease. Without a hold only pings are sent, which prove too little to rely on.
   *
   * @example
   * using hold = zookeeper.holdLease()
   * const { session } = await hold.proven()
   * await zookeeper.create('/leader', null, { ephemeral: true, session })
   */
  holdLease(): LeaseHold {
    return this.#session.lease.hold()
  }

  /** @internal Sends the requests of this turn of the event loop at once, before the callers of earlier requests go on. */
  flush(): void {
    this.#session.flush()
  }

  /**
   * Replaces the list of servers. A connection to a server that is not in the new list is closed; the session continues
   * on another server.
   *
   * @param hosts in the form of the option `hosts`; the chroot must be the same, or left out
   * @throws InvalidArgument
   */
  updateHosts(hosts: string): void {
    const { endpoints, chroot } = parseConnectString(hosts)
    const before = parseConnectString(this.#hosts).chroot
    if (chroot !== '' && chroot !== before) throw new InvalidArgument('updateHosts: the chroot cannot be changed')
    this.#hosts = `${endpoints.map(formatEndpoint).join()}${before}`
    this.#session.updateHosts(endpoints)
  }

  /** Returns counters of the work done so far. */
  counters(): ClientCounters {
    return this.#session.counters
  }

  /**
   * Closes the session at the server, so that its ephemeral znodes are deleted at once. Earlier requests are still
   * answered; requests that are pending after that are rejected. Never throws, may be called again, takes a few seconds
   * at the most.
   */
  close(): Promise<void> {
    return this.#session.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /**
   * Calls `listener` synchronously at each event until the returned function is called: `state` and `session`, and
   * `error` when a listener or a handler of a watch threw.
   *
   * @throws InvalidArgument for an unknown event
   */
  on<E extends keyof ClientEvents>(event: E, listener: (event: ClientEvents[E]) => void): () => void {
    return this.#emitter.on(event, listener)
  }

  // --- Watches ----------------------------------------------------------------------------------------------------

  /**
   * Watches a znode, which need not exist, until the watch is removed, across connections and sessions.
   *
   * `persistent` reports changes of the znode itself, and children created and deleted (`childrenChanged`, without
   * names); `recursive` reports `created`, `deleted` and `dataChanged` of the znode and of everything below it.
   *
   * Handlers are called synchronously. `gap` is called whenever the watch was armed on a new connection, because
   * changes in between are not reported: read everything again. Requests that a handler makes in `gap` are sent before
   * requests that were waiting for the connection. Watch first, then read: changes after the read are reported.
   *
   * @throws InvalidArgument for an unknown mode or an invalid handler
   * @throws InvalidState when this client watches the same path in the other mode, or has a one-shot watch there
   */
  async watch(
    path: string,
    options: { readonly mode: WatchMode; readonly signal?: AbortSignal },
    handler: WatchHandler,
  ): Promise<Watch> {
    return this.#watching.watch(path, options, handler)
  }

  /**
   * Removes watches of this client; none of them is called afterwards. One-shot watches have a kind: `data` for
   * exists and getData, `children` for getChildren. `any` removes both, and the persistent watches of that path.
   * Costs one round trip, or none where other handlers still wait for the same change.
   *
   * @param options.kind `any` by default
   * @param options.handler removes only the watches of this function
   * @throws NoWatcher when there is no such watch
   */
  async removeWatches(
    path: string,
    options: { readonly kind?: WatchKind; readonly handler?: OneShotHandler } = {},
  ): Promise<void> {
    await this.#watching.remove(path, { ...options, kind: options.kind ?? 'any' })
  }

  // --- Identities and configuration -----------------------------------------------------------------------------------

  /**
   * Adds an identity, such as `digest` with `user:password`, to this connection and all later ones. Resolves when a
   * server has accepted it; if this connection breaks, that is on the next one. Before `connect()` it has the same
   * effect as the option `auth`.
   *
   * @throws InvalidArgument for an invalid identity
   * @throws AuthFailed when the server does not know the scheme or rejects the identity: it closes the connection then,
   * and the next connection does without it
   * @throws NotSent, ConnectionLoss when the client is closed before
   */
  addAuth(scheme: string, auth: string | Uint8Array): Promise<void> {
    return this.#session.addAuth({ scheme, auth })
  }

  /**
   * Returns the identities that the servers assign to this client; needs ZooKeeper 3.7 or newer.
   *
   * @throws Unimplemented by older servers, which close the connection
   */
  whoAmI(options: RequestOptions = {}): Promise<Identity[]> {
    return this.#sender.send(requests.whoAmI, options)
  }

  /**
   * Reads the members of the ensemble. The configuration is outside of every chroot; a client without a chroot can also
   * watch it with `getData('/zookeeper/config')`.
   */
  getConfig(options: RequestOptions = {}): Promise<EnsembleConfig> {
    return this.#sender.send(() => mapReply(requests.getData(CONFIG_PATH), parseConfig), options)
  }

  /**
   * Changes the members of the ensemble at run time. Joining servers must be running.
   *
   * @throws ReconfigRefused, NoAuth (it takes WRITE on the configuration, by default the super user's), BadVersion,
   * BadArguments
   */
  reconfig(change: Reconfiguration, options: RequestOptions = {}): Promise<EnsembleConfig> {
    return this.#sender.send(() => reconfig(change), options)
  }
}
