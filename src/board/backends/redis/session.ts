/**
 * The session: an owner's key in Redis, and the connection that keeps it alive.
 *
 *     away ──connection──→ joining ──→ attached ──broken──→ away
 *                             ↑            │
 *                             └───lost─────┘
 *
 * A key that is gone, or a lease that is over, is the end of the session and of every claim it held; the next owner is
 * another one, with another key, and what the former one held is given back first. A connection that breaks is no end: on
 * the next one it is asked whether the key is there, and knows all that this side was told was done.
 */
import { createDeferred } from '../../../core/async/abort.ts'
import { Condition } from '../../../core/async/condition.ts'
import { type Instant, systemClock } from '../../../core/clock.ts'
import {
  AccessDenied,
  asError,
  IncompatibleVersion,
  InvalidArgument,
  NotConnected,
  NotFound,
} from '../../../core/errors.ts'
import { describeError } from '../../../core/failure.ts'
import type { Logger } from '../../../core/log.ts'
import { backoffDelay, sleep, withinTime } from '../../../core/time.ts'
import { newUuid } from '../../../core/uuid.ts'
import type { BackendSink } from '../../backend.ts'
import { ServerClock } from '../server-clock.ts'
import { type Argument, loadDriver, RedisConnection, type Script } from './connection.ts'
import { accessDeniedError, notConnectedError, toErrorKind } from './errors.ts'
import { type FeedPosition, RedisChangeFeed } from './feed.ts'
import type { Layout } from './layout.ts'
import { OwnerLease } from './lease.ts'
import { boardEmptiedError, type OwnerConnection, OwnerKeys, type OwnerStatus } from './owner-keys.ts'
import type { RedisLocation } from './place.ts'
import { parsePublication } from './replies.ts'

/** How long opening is tried, in milliseconds. */
const OPEN_TIMEOUT_MS = 10_000
/** How long a server may take to answer when the board is closed, in milliseconds. */
export const CLOSE_TIMEOUT_MS = 5_000
/** How long a change that was heard of waits for those before it, in milliseconds. */
const HOLE_TIMEOUT_MS = 20
/** How long a publication that is not signed waits until the board is asked, in milliseconds: anybody may send any number. */
const UNSIGNED_PAUSE_MS = 50

export interface RedisSessionOptions {
  readonly location: RedisLocation
  readonly layout: Layout
  readonly sink: BackendSink
  readonly log: Logger
  /** False: a board that is not there is not made. */
  readonly create: boolean
  /** There is an owner on a connection. */
  readonly onAttached: (attached: OwnerConnection) => void
  /** The owner that had this id is no more. */
  readonly onLost: (id: string) => void
  /** Called with what scripts have found damaged, in a sentence. */
  readonly damaged: (fault: string) => void
  /** Postings were put there, or taken away, by hand. */
  readonly onInconsistent: () => Promise<void>
}

export class RedisSession {
  readonly feed: RedisChangeFeed
  readonly clock = new ServerClock()
  readonly #options: RedisSessionOptions
  readonly #owners: OwnerKeys
  readonly #lease: OwnerLease
  readonly #closing = new AbortController()
  readonly #wake = new Condition()
  #id: string | undefined
  /** The one before, whose claims are still to be given back. */
  #previousId: string | undefined
  #label = newUuid()
  #numbers = { acked: 0, sent: 0 }
  #attached: OwnerConnection | undefined
  #joinedBefore = false
  #running: Promise<void> | undefined
  #leaving: Promise<void> | undefined
  #holeTimer: NodeJS.Timeout | undefined
  /** Signs what the scripts publish. */
  #secret = ''
  /** Something was published that has to be asked for. */
  #isHinted = false
  #warnedOfUnsigned = false
  readonly #proven = new Condition()
  /** Why there is no connection. */
  #lastError: unknown

  constructor(options: RedisSessionOptions) {
    this.#options = options
    this.feed = new RedisChangeFeed(options.sink)
    this.#owners = new OwnerKeys(options)
    this.#lease = new OwnerLease({
      ttl: options.location.ttl,
      over: () => this.markLost(new Error('its lease is over')),
    })
  }

  get uri(): string {
    return this.#options.location.uri
  }

  get attached(): OwnerConnection | undefined {
    return this.#attached
  }

  /** @throws AccessDenied, IncompatibleVersion, NotFound; NotConnected where it takes too long */
  async open(options: { readonly signal: AbortSignal }): Promise<void> {
    await loadDriver(this.#options.location)
    const first = createDeferred()
    this.#running = this.#run(first)
    const { promise: late, reject } = createDeferred<never>()
    const timer = setTimeout(() => reject(undefined), OPEN_TIMEOUT_MS)
    const stop = () => reject(options.signal.reason)
    options.signal.addEventListener('abort', stop, { once: true })
    try {
      options.signal.throwIfAborted()
      await Promise.race([first.promise, late])
    } catch (error) {
      throw error ?? notConnectedError(`opening ${this.uri}`, this.#lastError)
    } finally {
      clearTimeout(timer)
      options.signal.removeEventListener('abort', stop)
    }
  }

  /** Tells that it is over, gives back what is held, and leaves. */
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
    const left = there && this.#bury(there.connection, there.id, { itself: true }).catch(() => undefined)
    if (left) await withinTime(CLOSE_TIMEOUT_MS, left)
    this.#closing.abort(new NotConnected(`${this.uri} was closed`))
    there?.connection.disconnect(new Error('the board was closed'))
    await this.#running
  }

  /** The session is over, and with it every claim it held. */
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

  /** Resolves with the session's id when it is certain to be alive. */
  async whenAlive(): Promise<string> {
    while (!(this.#attached && this.isAlive(this.#attached.id))) {
      this.#closing.signal.throwIfAborted()
      await this.#proven.wait({ signal: this.#closing.signal })
    }
    return this.#attached.id
  }

  /** A request that was sent at that time, in this session, was answered. */
  noteAnswer(id: string, sentAt: Instant): void {
    if (this.#id === id) this.#lease.extend(sentAt)
  }

  /** Runs one of the scripts that take all keys. @throws NotConnected */
  async run(what: Script, args: readonly Argument[]): Promise<unknown> {
    const { connection, id } = this.#requireAttached()
    return connection.run(what, this.#options.layout.keys(id), args).catch((error: unknown) => this.#reportError(error))
  }

  async command(command: string, ...args: Argument[]): Promise<unknown> {
    return this.#requireAttached()
      .connection.command(command, ...args)
      .catch((error: unknown) => this.#reportError(error))
  }

  /** Everything that was committed before is told when it resolves, and what dead owners held is free. */
  async refresh(): Promise<void> {
    const there = this.#requireAttached()
    const outlook = await this.#renew(there, this.feed.seen).catch((error: unknown) => this.#reportError(error))
    if (!outlook) throw notConnectedError(this.uri, new Error('the session is over'))
    await this.#applyStatus(there, outlook).catch((error: unknown) => this.#reportError(error))
  }

  /** Gives back what these held, as far as they are dead. */
  async releaseOwners(ids: readonly string[]): Promise<void> {
    const { connection } = this.#requireAttached()
    await Promise.all(ids.map((id) => this.#bury(connection, id))).catch((error: unknown) => this.#reportError(error))
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
    if (toErrorKind(error) === 'denied' && error instanceof Error) throw this.#isAccessDenied(error)
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
    // Longer than a slow answer takes, and so short that another connection can be had before the lease is over.
    const patience = Math.max(500, location.ttl / 3)
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      let connection: RedisConnection | undefined
      try {
        const { channel } = layout
        const onMessage = (message: Buffer) => this.#onMessage(message)
        connection = await RedisConnection.open(driver, { location, channel, timeoutMs: patience, onMessage, signal })
        await this.#serve(connection, () => {
          attempt = 1
          first.resolve()
        })
      } catch (error) {
        this.#lastError = error
        // While it is being opened nobody else can be told.
        log.debug({ reason: describeError(error) }, 'no connection to Redis')
        const fatal = toErrorKind(error) === 'denied' && error instanceof Error ? this.#isAccessDenied(error) : error
        if (isFinal(fatal)) first.reject(fatal)
        if (isFinal(fatal) && this.#joinedBefore && !signal.aborted) sink.error(fatal)
      }
      connection?.disconnect(new Error('another connection is tried'))
      this.#detached()
      await sleep(backoffDelay(attempt, { first: 50, max: 2_000 }), { signal }).catch(() => undefined)
    }
  }

  /** Until the connection breaks. */
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
        // The connection is needed yet, and whoever leaves does not come back as another.
        await this.#pause(ttl)
        continue
      }
      let there = this.#attached
      let outlook: OwnerStatus | undefined
      if (there) outlook = await this.#renew(there, this.feed.seen)
      else {
        ;[there, outlook] = await this.#attach(connection)
        if (there) begun()
      }
      if (!there || !outlook) continue
      const earliest = Number(outlook[5]) - this.clock.now()
      await this.#applyStatus(there, outlook)
      if (this.#attached === there) await this.#pause(Math.max(10, Math.min(ttl / 3, earliest + 5)))
    }
    if (broken) throw broken
  }

  /** Until that time has passed, or something has happened. */
  async #pause(ms: number): Promise<void> {
    const timer = setTimeout(() => this.#wake.notify(), ms).unref()
    await this.#wake.wait({ signal: this.#closing.signal }).catch(() => undefined)
    clearTimeout(timer)
  }

  /** The session goes on here, or a new one begins. Neither, where the old one turned out to be over. */
  async #attach(connection: RedisConnection): Promise<[OwnerConnection, OwnerStatus] | [undefined, undefined]> {
    const { sink } = this.#options
    const id = this.#id ?? newUuid()
    const isNew = this.#id === undefined
    if (isNew) this.#numbers = { acked: 0, sent: 0 }
    const { acked, sent } = this.#numbers
    const there: OwnerConnection = { id, connection, acked, sent }
    const sentAt = systemClock()
    if (isNew && this.#previousId !== undefined) {
      await this.#bury(connection, this.#previousId, { itself: true })
      this.#previousId = undefined
    }
    const outlook = isNew ? await this.#join(there) : await this.#renew(there, undefined)
    if (this.#isLeaving) await this.#bury(connection, id, { itself: true })
    // While that was asked, its lease may have run out: what was told to be over does not come back.
    const over = !isNew && this.#id !== id
    if (!outlook || over || this.#isLeaving) return [undefined, undefined]
    this.#id = id
    this.#label = id
    this.#numbers = there
    this.#lease.extend(sentAt)
    this.#attached = there
    this.#secret = outlook[8]
    sink.jobCount(outlook[7])
    this.feed.begin(toFeedPosition(outlook))
    sink.session({ state: 'connected', session: id })
    this.#options.onAttached(there)
    this.#proven.notify()
    return [there, outlook]
  }

  async #join(there: OwnerConnection): Promise<OwnerStatus> {
    const { create, sink, location } = this.#options
    const { made, outlook } = await this.#owners.join(there, { mayMake: create || this.#joinedBefore })
    if (made && this.#joinedBefore) sink.error(boardEmptiedError(location.uri))
    this.#joinedBefore = true
    return outlook
  }

  /** Undefined where it told that the session is over. */
  async #renew(there: OwnerConnection, seen: number | undefined): Promise<OwnerStatus | undefined> {
    const sentAt = systemClock()
    const status = await this.#owners.renew(there, seen)
    if (status.alive) {
      this.noteAnswer(there.id, sentAt)
      return status.outlook
    }
    if (this.#id === there.id) this.markLost(status.reason)
    return undefined
  }

  async #bury(connection: RedisConnection, id: string, options: { readonly itself?: boolean } = {}): Promise<void> {
    for (const fault of await this.#owners.releaseOwner(connection, id, options)) this.#options.damaged(fault)
  }

  async #applyStatus(there: OwnerConnection, outlook: OwnerStatus): Promise<void> {
    const [now, version, changes, , late, , uneven, jobs, secret, faults] = outlook
    this.#secret = secret
    for (const fault of faults) this.#options.damaged(fault)
    this.clock.observe(Number(now))
    if (this.#attached === there) this.feed.applyReply(changes, toFeedPosition(outlook))
    // Of what came after it nothing may have been told yet, or it would be counted twice.
    if (this.feed.seen === Number(version)) this.#options.sink.jobCount(jobs)
    const dead = late.filter((id) => id !== there.id)
    await Promise.all(dead.map((id) => this.#bury(there.connection, id)))
    // What is mended waits for the next connection where this one breaks, and who makes that must not wait for it.
    if (uneven && this.#attached === there)
      await Promise.race([this.#options.onInconsistent(), there.connection.broken])
    // What was done just now is told by what was published, or by the next look: here it has to be known at once.
    if ((dead.length > 0 || uneven) && this.#attached === there) {
      const next = await this.#renew(there, this.feed.seen)
      if (next && this.#attached === there) this.feed.applyReply(next[2], toFeedPosition(next))
    }
  }

  /**
   * Takes what was published for what it is: of the board's own scripts the changes themselves, of anybody else a hint to ask
   * for them. It is called by a socket's event, so what it threw would end the process.
   */
  #onMessage(message: Buffer): void {
    const part = parsePublication(message, this.#secret)
    try {
      if (part) this.feed.applyMessage(part)
      else this.#warnOfUnsigned(message)
    } catch (error) {
      this.#options.sink.error(asError(error))
      this.#options.sink.gap()
    }
    this.#isHinted ||= part === undefined
    this.#refreshSoon()
  }

  /** One question at a time, however many publications come. */
  #refreshSoon(): void {
    if (!this.#isHinted && !this.feed.hasHole) return
    const pause = this.#isHinted ? UNSIGNED_PAUSE_MS : HOLE_TIMEOUT_MS
    this.#holeTimer ??= setTimeout(() => void this.#refreshInBackground(), pause)
  }

  /** Asks for the changes that were not published. */
  async #refreshInBackground(): Promise<void> {
    const isHinted = this.#isHinted
    this.#isHinted = false
    if (this.#attached && (isHinted || this.feed.hasHole)) await this.refresh().catch(() => undefined)
    this.#holeTimer = undefined
    if (this.#attached) this.#refreshSoon()
  }

  #warnOfUnsigned(message: Buffer): void {
    // Before the board has answered its secret is not known, and an empty message asks for a look and nothing else.
    if (this.#warnedOfUnsigned || !this.#attached || message.length === 0) return
    this.#warnedOfUnsigned = true
    this.#options.log.warn(
      { channel: this.#options.layout.channel },
      'a publication is not signed with the secret of the board, and was not believed: a process of an older release is ' +
        'on the board, or somebody else may publish on its channel; restrict the channels of its users (ACL SETUSER … resetchannels)',
    )
  }

  #detached(): void {
    const id = this.#attached?.id
    if (id === undefined) return
    this.#attached = undefined
    this.feed.end()
    const reason = this.#lastError instanceof Error ? { reason: this.#lastError } : {}
    this.#options.sink.session({ state: 'disconnected', session: id, ...reason })
  }
}

function toFeedPosition([, version, , paused]: OwnerStatus): FeedPosition {
  return { version: Number(version), paused }
}

/** What another connection would be told, too. */
function isFinal(error: unknown): error is Error {
  const known = [AccessDenied, InvalidArgument, NotFound, IncompatibleVersion, TypeError, RangeError]
  return toErrorKind(error) === 'odd' || known.some((final) => error instanceof final)
}
