/**
 * The session consists of an owner's key in Redis and the connection that renews it.
 *
 *     away ──connection──→ joining ──→ attached ──broken──→ away
 *                             ↑            │
 *                             └───lost─────┘
 *
 * The session and all its claims end when the key is missing or the lease has expired. The next session has another owner
 * with another key; it first releases what the former owner held. A broken connection does not end the session: on the next
 * connection the session checks that the key exists and includes every batch whose answer this process has received.
 */
import { Condition, createDeferred, rejectOnAbort } from '../../../core/async/abort.ts'
import { retryUntilAborted } from '../../../core/async/retry.ts'
import {
  AccessDenied,
  asError,
  IncompatibleVersion,
  InvalidArgument,
  isError,
  JobboardError,
  NotConnected,
  NotFound,
} from '../../../core/errors.ts'
import { describeError } from '../../../core/failure.ts'
import type { Logger } from '../../../core/log.ts'
import { type Instant, startTimer, systemClock, withinTime } from '../../../core/time.ts'
import { newUuid } from '../../../core/uuid.ts'
import type { BackendSink } from '../../contract/index.ts'
import { OwnerLease } from '../lease.ts'
import { NotificationCanary } from '../notification-canary.ts'
import { ServerClock } from '../server-clock.ts'
import { type Argument, loadDriver, RedisConnection } from './connection.ts'
import { accessDeniedError, notConnectedError, toErrorKind } from './errors.ts'
import { type FeedPosition, RedisChangeFeed, toFollowedChanges } from './feed.ts'
import { type Layout, parseRecordField, WATCHABLE, type Watchable } from './layout.ts'
import { boardEmptiedError, type OwnerConnection, OwnerKeys, type OwnerStatus } from './owner-keys.ts'
import type { RedisLocation } from './place.ts'
import { parsePublication } from './replies.ts'
import { loadScripts, SCRIPTS, type Script } from './scripts.ts'

/** The time limit for opening a board, in milliseconds. */
const OPEN_TIMEOUT_MS = 10_000
/** The time limit for answers while the board is closed, in milliseconds. */
export const CLOSE_TIMEOUT_MS = 5_000
/** The time that a received change waits for missing earlier ones before the board is asked, in milliseconds. */
const HOLE_TIMEOUT_MS = 20
/** The pause between an unsigned publication and the request to the board, in milliseconds: a client may send any number of them. */
const UNSIGNED_PAUSE_MS = 50

export interface RedisSessionOptions {
  readonly location: RedisLocation
  readonly layout: Layout
  readonly sink: BackendSink
  readonly log: Logger
  /** Whether a missing board is created. */
  readonly create: boolean
  /** Called when an owner is attached to a connection. */
  readonly onAttached: (attached: OwnerConnection) => void
  /** Called with the id of the owner whose session was lost. */
  readonly onLost: (id: string) => void
  /** Called with a sentence for each damage that scripts have found. */
  readonly damaged: (fault: string) => void
  /** Called when ends of jobs are not finished, because many jobs depend on them, or because nothing has released these. */
  readonly onUnfinished: () => void
  /** Called when postings were added or removed by hand. */
  readonly onInconsistent: () => Promise<void>
}

export class RedisSession {
  readonly feed: RedisChangeFeed
  readonly #canary: NotificationCanary
  readonly clock = new ServerClock()
  readonly #options: RedisSessionOptions
  readonly #owners: OwnerKeys
  readonly #lease: OwnerLease
  readonly #closing = new AbortController()
  readonly #wake = new Condition()
  #id: string | undefined
  /** The former owner, whose claims are not released yet. */
  #previousId: string | undefined
  #label = newUuid()
  #numbers = { acked: 0, sent: 0 }
  #attached: OwnerConnection | undefined
  #joinedBefore = false
  /** Whether changes are to be reported. */
  #isSubscribed = false
  /** The kinds of records, and the uuids of batches, whose changes are reported. */
  readonly #watched = { records: new Set<string>(), batches: new Set<string>() }
  /** The owner and connection that receive the changes of followed jobs. */
  #followingOn: OwnerConnection | undefined
  #running: Promise<void> | undefined
  #leaving: Promise<void> | undefined
  #holeTimer: NodeJS.Timeout | undefined
  /** The secret that signs the publications of the scripts. */
  #secret = ''
  /** Whether an unsigned publication was received, so that the board must be asked for changes. */
  #isHinted = false
  #warnedOfUnsigned = false
  #warnedOfPassword = false
  readonly #proven = new Condition()
  /** The reason why there is no connection. */
  #lastError: unknown
  /** The eviction policy that was reported. */
  #eviction: string | undefined

  constructor(options: RedisSessionOptions) {
    this.#options = options
    this.#canary = new NotificationCanary({ sink: options.sink, period: options.location.ttl / 3 })
    this.feed = new RedisChangeFeed(options.sink, this.#canary)
    this.#owners = new OwnerKeys(options)
    this.#lease = new OwnerLease({
      ttl: options.location.ttl,
      over: () => this.markLost(new Error('its lease has expired')),
    })
  }

  get uri(): string {
    return this.#options.location.uri
  }

  get attached(): OwnerConnection | undefined {
    return this.#attached
  }

  /** Opens the session. @throws AccessDenied, IncompatibleVersion, InvalidState, NotFound; NotConnected after the time limit */
  async open(options: { readonly signal: AbortSignal }): Promise<void> {
    await loadDriver(this.#options.location)
    loadScripts()
    const first = createDeferred()
    this.#running = this.#run(first)
    const expire = () => first.reject(notConnectedError(`opening ${this.uri}`, this.#lastError))
    const timer = setTimeout(expire, OPEN_TIMEOUT_MS)
    await rejectOnAbort(first.promise, options.signal).finally(() => clearTimeout(timer))
  }

  /** Reports changes from now on, on this connection and on later ones. @throws NotConnected */
  async subscribe(): Promise<void> {
    const there = this.#requireAttached()
    const { channel } = this.#options.layout
    await there.connection.subscribe(channel).catch((error: unknown) => this.#reportError(error))
    try {
      const status = await this.#renew(there, undefined).catch((error: unknown) => this.#reportError(error))
      if (!status || this.#attached !== there) throw notConnectedError(this.uri, new Error('the session is over'))
      this.#isSubscribed = true
      this.#beginFeed(status)
    } catch (error) {
      await there.connection.unsubscribe(channel)
      throw error
    }
  }

  /** Ends the reports of changes. */
  async unsubscribe(): Promise<void> {
    this.#isSubscribed = false
    this.feed.end()
    clearTimeout(this.#holeTimer)
    this.#holeTimer = undefined
    await this.#attached?.connection.unsubscribe(this.#options.layout.channel)
  }

  /** Reports changes of records of a kind, or of a batch, on this connection and on later ones. @throws NotConnected */
  async watch(what: Watchable, name: string): Promise<void> {
    const there = this.#requireAttached()
    this.#watched[what].add(name)
    const subscribing = there.connection.subscribe(this.#options.layout.watchChannel(what))
    await subscribing.catch((error: unknown) => this.#reportError(error))
    if (this.#attached !== there) throw notConnectedError(this.uri, new Error('the session is over'))
  }

  /** Ends what {@link watch} began. */
  async unwatch(what: Watchable, name: string): Promise<void> {
    this.#watched[what].delete(name)
    if (this.#watched[what].size > 0) return
    await this.#attached?.connection.unsubscribe(this.#options.layout.watchChannel(what))
  }

  /** Follows these jobs, and returns the answer of the script. @throws NotConnected */
  async follow(ids: readonly string[]): Promise<unknown> {
    const there = this.#requireAttached()
    if (this.#followingOn !== there) {
      const subscribing = there.connection.subscribe(this.#options.layout.channelOf(there.id))
      await subscribing.catch((error: unknown) => this.#reportError(error))
      this.#followingOn = there
    }
    if (this.#attached !== there) throw notConnectedError(this.uri, new Error('the session is over'))
    return this.run(SCRIPTS.follow, [there.id, '1', ...ids])
  }

  /** Ends what {@link follow} began. An entry that stays is removed with its job. */
  async unfollow(ids: readonly string[]): Promise<void> {
    await this.run(SCRIPTS.follow, [this.#requireAttached().id, '0', ...ids])
  }

  /** Ends the session: reports it as closed, releases its claims, and disconnects. */
  close(): Promise<void> {
    this.#leaving ??= this.#shutDown()
    return this.#leaving
  }

  async #shutDown(): Promise<void> {
    const { sink } = this.#options
    const there = this.#attached
    this.#attached = undefined
    this.#id = undefined
    this.#lease.stop()
    clearTimeout(this.#holeTimer)
    this.feed.end()
    sink.session({ state: 'closed', session: this.#label })
    const left = there && this.#releaseOwner(there.connection, there.id, { itself: true }).catch(() => undefined)
    if (left) await withinTime(CLOSE_TIMEOUT_MS, left)
    this.#closing.abort(new NotConnected(`${this.uri} was closed`))
    there?.connection.disconnect(new Error('the board was closed'))
    await this.#running
  }

  /** Ends the session and all its claims. */
  markLost(reason: Error): void {
    const id = this.#id
    if (id === undefined) return
    this.#id = undefined
    this.#previousId = id
    this.#attached = undefined
    this.#lease.stop()
    this.#options.sink.session({ state: 'lost', session: id, reason })
    this.#options.onLost(id)
    this.#wake.notify()
  }

  isAlive(id: string): boolean {
    return this.#id === id && this.#lease.isValid()
  }

  /** The time for which the session is certainly alive, in milliseconds; undefined without a session. */
  get leaseLeftMs(): number | undefined {
    return this.#id === undefined ? undefined : this.#lease.leftMs
  }

  /** Resolves with the session's id when the session is certainly alive. */
  async whenAlive(): Promise<string> {
    while (!(this.#attached && this.isAlive(this.#attached.id))) {
      this.#closing.signal.throwIfAborted()
      await this.#proven.wait({ signal: this.#closing.signal })
    }
    return this.#attached.id
  }

  /** Extends the lease after an answer to a request of this session that was sent at this time. */
  noteAnswer(id: string, sentAt: Instant): void {
    if (this.#id === id) this.#lease.extend(sentAt)
  }

  /** Runs a script that takes all keys. @throws NotConnected */
  async run(what: Script, args: readonly Argument[]): Promise<unknown> {
    const { connection, id } = this.#requireAttached()
    return connection.run(what, this.#options.layout.keys(id), args).catch((error: unknown) => this.#reportError(error))
  }

  async command(command: string, ...args: Argument[]): Promise<unknown> {
    return this.#requireAttached()
      .connection.command(command, ...args)
      .catch((error: unknown) => this.#reportError(error))
  }

  /** Resolves when the sink has received everything committed before the call, and dead owners were released. */
  async refresh(): Promise<void> {
    const there = this.#requireAttached()
    const status = await this.#renew(there, this.feed.seen).catch((error: unknown) => this.#reportError(error))
    if (!status) throw notConnectedError(this.uri, new Error('the session is over'))
    await this.#applyStatus(there, status).catch((error: unknown) => this.#reportError(error))
  }

  /** Releases the claims of these owners if they are dead. */
  async releaseOwners(ids: readonly string[]): Promise<void> {
    const { connection } = this.#requireAttached()
    await Promise.all(ids.map((id) => this.#releaseOwner(connection, id))).catch((error: unknown) =>
      this.#reportError(error),
    )
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  get #isLeaving(): boolean {
    return this.#leaving !== undefined
  }

  #requireAttached(): OwnerConnection {
    if (this.#attached) return this.#attached
    throw notConnectedError(this.uri, this.#lastError)
  }

  #reportError(error: unknown): never {
    if (toErrorKind(error) === 'denied' && isError(error)) throw this.#isAccessDenied(error)
    if (toErrorKind(error) === 'odd' || toErrorKind(error) === 'refused') throw error
    throw notConnectedError(this.uri, error)
  }

  #isAccessDenied(error: Error): AccessDenied {
    return accessDeniedError(this.uri, error, { given: this.#options.location.credentials !== undefined })
  }

  async #run(first: { resolve(): void; reject(reason: unknown): void }): Promise<void> {
    const driver = await loadDriver(this.#options.location)
    const { location, layout, sink, log } = this.#options
    const { signal } = this.#closing
    // The limit allows slow answers, but leaves time for another connection before the lease expires.
    const timeoutMs = Math.max(500, location.ttl / 3)
    const onMessage = (channel: string, message: Buffer) => this.#onMessage(channel, message)
    const onUnneededPassword = () => this.#warnOfPassword()
    // Serves the session on one connection; rejects when the session was not attached to it.
    const serveOnce = async () => {
      let connection: RedisConnection | undefined
      let isServed = false
      try {
        connection = await RedisConnection.open(driver, { location, timeoutMs, onMessage, onUnneededPassword, signal })
        this.#reportEviction(connection.eviction)
        if (this.#isSubscribed) await connection.subscribe(layout.channel)
        for (const what of WATCHABLE)
          if (this.#watched[what].size > 0) await connection.subscribe(layout.watchChannel(what))
        await this.#serve(connection, () => {
          isServed = true
          first.resolve()
        })
      } catch (error) {
        this.#lastError = error
        // While the board is being opened, the log is the only place to report it.
        log.debug({ reason: describeError(error) }, 'no connection to Redis')
        const fatal = toErrorKind(error) === 'denied' && isError(error) ? this.#isAccessDenied(error) : error
        if (isFinal(fatal)) first.reject(fatal)
        if (isFinal(fatal) && this.#joinedBefore && !signal.aborted) sink.error(fatal)
        if (!isServed) throw error
      } finally {
        connection?.disconnect(new Error('another connection is opened'))
        this.#detached()
      }
    }
    // A session that was served before counts as one failure: there is a pause before the next connection.
    const pauses = { firstPauseMs: 50, maxPauseMs: 2_000, signal }
    for (let failuresBefore = 0; !signal.aborted; failuresBefore = 1)
      await retryUntilAborted(serveOnce, { ...pauses, failuresBefore })
  }

  #warnOfPassword(): void {
    if (this.#warnedOfPassword) return
    this.#warnedOfPassword = true
    this.#options.log.warn({ board: this.uri }, 'this Redis needs no password, but one was given')
  }

  /** The policy by which the server evicts keys when its memory is full; undefined if it evicts none. */
  get eviction(): string | undefined {
    return this.#eviction
  }

  #reportEviction(policy: string | undefined): void {
    if (policy !== undefined && policy !== this.#eviction) {
      const text = `Redis evicts keys when its memory is full (${policy}), and jobs are lost: set maxmemory-policy noeviction`
      this.#options.sink.error(new JobboardError(`${this.uri}: ${text}`))
    }
    this.#eviction = policy
  }

  /** Serves the session on a connection until the connection breaks. */
  async #serve(connection: RedisConnection, begun: () => void): Promise<void> {
    const { ttl } = this.#options.location
    let broken: Error | undefined
    void connection.broken.then((why) => {
      broken = why
      this.#lastError = why
      this.#detached()
      this.#wake.notify()
    })
    while (!broken && !this.#closing.signal.aborted) {
      if (this.#isLeaving) {
        // The connection is still needed to leave, and a session that leaves is not replaced by another.
        await this.#pause(ttl)
        continue
      }
      let there = this.#attached
      let status: OwnerStatus | undefined
      if (there) status = await this.#renew(there, this.feed.seen)
      else {
        ;[there, status] = await this.#attach(connection)
        if (there) begun()
      }
      if (!there || !status) continue
      const earliest = Number(status[5]) - this.clock.now()
      await this.#applyStatus(there, status)
      if (this.#attached === there) await this.#pause(Math.max(10, Math.min(ttl / 3, earliest + 5)))
    }
    if (broken) throw broken
  }

  /** Resolves after this time, or when the session is woken. */
  async #pause(ms: number): Promise<void> {
    const timer = startTimer(() => this.#wake.notify(), ms).unref()
    await this.#wake.wait({ signal: this.#closing.signal }).catch(() => undefined)
    clearTimeout(timer)
  }

  /** Continues the session on this connection, or begins a new one. Returns nothing if the old session is over. */
  async #attach(connection: RedisConnection): Promise<[OwnerConnection, OwnerStatus] | [undefined, undefined]> {
    const { sink } = this.#options
    const id = this.#id ?? newUuid()
    const isNew = this.#id === undefined
    if (isNew) this.#numbers = { acked: 0, sent: 0 }
    const { acked, sent } = this.#numbers
    const there: OwnerConnection = { id, connection, acked, sent }
    const sentAt = systemClock()
    if (isNew && this.#previousId !== undefined) {
      await this.#releaseOwner(connection, this.#previousId, { itself: true })
      this.#previousId = undefined
    }
    const status = isNew ? await this.#join(there) : await this.#renew(there, undefined)
    if (this.#isLeaving) await this.#releaseOwner(connection, id, { itself: true })
    // The lease may have expired meanwhile: a session that was reported as lost does not continue.
    const over = !isNew && this.#id !== id
    if (!status || over || this.#isLeaving) return [undefined, undefined]
    this.#id = id
    this.#label = id
    this.#numbers = there
    this.#lease.extend(sentAt)
    this.#attached = there
    if (this.#isSubscribed) this.#beginFeed(status)
    else {
      // The board may have been unsubscribed since this connection was opened.
      void connection.unsubscribe(this.#options.layout.channel)
      sink.gap()
      sink.paused(toFeedPosition(status).paused)
    }
    // Publications of the time without a connection are lost.
    if (this.#watched.records.size > 0) sink.records()
    if (this.#watched.batches.size > 0) sink.batchChanged()
    sink.session({ state: 'connected', session: id })
    this.#options.onAttached(there)
    this.#proven.notify()
    return [there, status]
  }

  #beginFeed(status: OwnerStatus): void {
    this.#secret = status[8]
    this.#options.sink.jobCount(status[7])
    this.feed.begin(toFeedPosition(status))
  }

  async #join(there: OwnerConnection): Promise<OwnerStatus> {
    const { create, sink, location } = this.#options
    const { made, status } = await this.#owners.join(there, { mayMake: create || this.#joinedBefore })
    if (made && this.#joinedBefore) sink.error(boardEmptiedError(location.uri))
    this.#joinedBefore = true
    return status
  }

  /** Renews the owner's key. Returns undefined if the session is over, which is reported. */
  async #renew(there: OwnerConnection, seen: number | undefined): Promise<OwnerStatus | undefined> {
    const sentAt = systemClock()
    const renewed = await this.#owners.renew(there, seen)
    if (renewed.alive) {
      this.noteAnswer(there.id, sentAt)
      return renewed.status
    }
    if (this.#id === there.id) this.markLost(renewed.reason)
    return undefined
  }

  async #releaseOwner(
    connection: RedisConnection,
    id: string,
    options: { readonly itself?: boolean } = {},
  ): Promise<void> {
    for (const fault of await this.#owners.releaseOwner(connection, id, options)) this.#options.damaged(fault)
  }

  async #applyStatus(there: OwnerConnection, status: OwnerStatus): Promise<void> {
    const [now, version, changes, , late, , uneven, jobs, secret, faults, unfinished] = status
    this.#secret = secret
    if (unfinished) this.#options.onUnfinished()
    for (const fault of faults) this.#options.damaged(fault)
    this.clock.observe(Number(now))
    if (this.#attached === there) this.feed.applyReply(changes, toFeedPosition(status))
    // The count is valid only if no later change was delivered, which would be counted twice.
    if (this.feed.seen === Number(version)) this.#options.sink.jobCount(jobs)
    const dead = late.filter((id) => id !== there.id)
    await Promise.all(dead.map((id) => this.#releaseOwner(there.connection, id)))
    // If this connection breaks, the repair waits for the next one; this loop opens it, so it must not wait for the repair.
    if (uneven && this.#attached === there)
      await Promise.race([this.#options.onInconsistent(), there.connection.broken])
    // These changes would arrive by publication or with the next status, but they must be delivered before this call ends.
    if ((dead.length > 0 || uneven) && this.#attached === there) {
      const next = await this.#renew(there, this.feed.seen)
      if (next && this.#attached === there) this.feed.applyReply(next[2], toFeedPosition(next))
    }
  }

  /**
   * Handles a publication. A message of the board's scripts contains the changes; any other message is only a hint to ask for
   * them. A socket's event calls this method, so an error that it throws would end the process.
   */
  #onMessage(channel: string, message: Buffer): void {
    const watched = WATCHABLE.find((what) => channel === this.#options.layout.watchChannel(what))
    if (watched) {
      this.#onHint(watched, message.toString())
      return
    }
    const part = parsePublication(message, this.#secret)
    try {
      if (channel !== this.#options.layout.channel) {
        if (part) this.#options.sink.followed(toFollowedChanges(part.entries))
        return
      }
      if (part) {
        this.#canary.onAnnounced()
        this.feed.applyMessage(part)
      } else this.#warnOfUnsigned(message)
    } catch (error) {
      this.#options.sink.error(asError(error))
      this.#options.sink.gap()
    }
    this.#isHinted ||= part === undefined
    this.#refreshSoon()
  }

  #onHint(what: Watchable, message: string): void {
    const { sink } = this.#options
    if (what === 'batches') {
      if (this.#watched.batches.has(message)) sink.batchChanged(message)
      return
    }
    const name = parseRecordField(message)
    if (!name) sink.records()
    else if (this.#watched.records.has(name.kind)) sink.records([name])
  }

  /** Schedules a refresh; one at a time, however many publications arrive. */
  #refreshSoon(): void {
    if (!this.#isHinted && !this.feed.hasHole) return
    const pause = this.#isHinted ? UNSIGNED_PAUSE_MS : HOLE_TIMEOUT_MS
    this.#holeTimer ??= startTimer(() => void this.#refreshInBackground(), pause)
  }

  /** Asks the board for changes that were not published. */
  async #refreshInBackground(): Promise<void> {
    const isHinted = this.#isHinted
    this.#isHinted = false
    if (this.#attached && (isHinted || this.feed.hasHole)) await this.refresh().catch(() => undefined)
    this.#holeTimer = undefined
    if (this.#attached) this.#refreshSoon()
  }

  #warnOfUnsigned(message: Buffer): void {
    // The secret is unknown until the board has answered, and an empty message only requests a refresh.
    if (this.#warnedOfUnsigned || !this.#attached || message.length === 0) return
    this.#warnedOfUnsigned = true
    this.#options.log.warn(
      { channel: this.#options.layout.channel },
      'a publication is not signed with the secret of the board and was ignored: a process of an older release uses ' +
        'the board, or another client may publish on its channel; restrict the channels of its users (ACL SETUSER … resetchannels)',
    )
  }

  #detached(): void {
    const id = this.#attached?.id
    if (id === undefined) return
    this.#attached = undefined
    this.feed.end()
    const reason = isError(this.#lastError) ? { reason: this.#lastError } : {}
    this.#options.sink.session({ state: 'disconnected', session: id, ...reason })
  }
}

function toFeedPosition([, version, , paused]: OwnerStatus): FeedPosition {
  return { version: Number(version), paused }
}

/** Returns whether another connection would fail with the same error. */
function isFinal(error: unknown): error is Error {
  const known = [AccessDenied, InvalidArgument, NotFound, IncompatibleVersion, TypeError, RangeError]
  return toErrorKind(error) === 'odd' || known.some((final) => error instanceof final)
}
