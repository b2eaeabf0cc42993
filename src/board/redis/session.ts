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
import { deferred } from '../../core/abort.ts'
import { type Instant, systemClock } from '../../core/clock.ts'
import { Condition } from '../../core/condition.ts'
import { AccessDenied, IncompatibleVersion, InvalidArgument, NotConnected, NotFound } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'
import { atMost, backoff, sleep } from '../../core/time.ts'
import { newUuid } from '../../core/uuid.ts'
import type { Sink } from '../backend.ts'
import { ServerClock } from '../server-clock.ts'
import { type Argument, Connection, loadDriver, type Script } from './connection.ts'
import { accessDenied, complaintOf, notConnected } from './errors.ts'
import { Feed, type Standing } from './feed.ts'
import type { Layout } from './layout.ts'
import { Lease } from './lease.ts'
import { type Attached, emptied, type Outlook, OwnerKeys } from './owner-keys.ts'
import type { RedisPlace } from './place.ts'
import { published } from './replies.ts'

/** How long opening is tried, in milliseconds. */
const OPENING = 10_000
/** How long a server may take to answer when the board is closed, in milliseconds. */
export const FAREWELL = 5_000
/** How long a change that was heard of waits for those before it, in milliseconds. */
const HOLE_PATIENCE = 20
/** How long a publication that is not signed waits until the board is asked, in milliseconds: anybody may send any number. */
const UNSIGNED_PAUSE_MS = 50

export interface SessionOptions {
  readonly place: RedisPlace
  readonly layout: Layout
  readonly sink: Sink
  readonly log: Logger
  /** False: a board that is not there is not made. */
  readonly create: boolean
  /** There is an owner on a connection. */
  readonly attached: (attached: Attached) => void
  /** The owner that had this id is no more. */
  readonly lost: (id: string) => void
  /** Called with what scripts have found damaged, in a sentence. */
  readonly damaged: (fault: string) => void
  /** Postings were put there, or taken away, by hand. */
  readonly uneven: () => Promise<void>
}

export class Session {
  readonly feed: Feed
  readonly clock = new ServerClock()
  readonly #options: SessionOptions
  readonly #owners: OwnerKeys
  readonly #lease: Lease
  readonly #closing = new AbortController()
  readonly #wake = new Condition()
  #id: string | undefined
  /** The one before, whose claims are still to be given back. */
  #former: string | undefined
  #label = newUuid()
  #numbers = { acked: 0, sent: 0 }
  #attached: Attached | undefined
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
  #trouble: unknown

  constructor(options: SessionOptions) {
    this.#options = options
    this.feed = new Feed(options.sink)
    this.#owners = new OwnerKeys(options)
    this.#lease = new Lease({ ttl: options.place.ttl, over: () => this.lose(new Error('its lease is over')) })
  }

  get uri(): string {
    return this.#options.place.uri
  }

  get attached(): Attached | undefined {
    return this.#attached
  }

  /** @throws AccessDenied, IncompatibleVersion, NotFound; NotConnected where it takes too long */
  async open(options: { readonly signal: AbortSignal }): Promise<void> {
    await loadDriver(this.#options.place)
    const first = deferred()
    this.#running = this.#run(first)
    const { promise: late, reject } = deferred<never>()
    const timer = setTimeout(() => reject(undefined), OPENING)
    const stop = () => reject(options.signal.reason)
    options.signal.addEventListener('abort', stop, { once: true })
    try {
      options.signal.throwIfAborted()
      await Promise.race([first.promise, late])
    } catch (error) {
      throw error ?? notConnected(`opening ${this.uri}`, this.#trouble)
    } finally {
      clearTimeout(timer)
      options.signal.removeEventListener('abort', stop)
    }
  }

  /** Tells that it is over, gives back what is held, and leaves. */
  close(): Promise<void> {
    this.#leaving ??= this.#leave()
    return this.#leaving
  }

  async #leave(): Promise<void> {
    const { sink } = this.#options
    const there = this.#attached
    this.#attached = undefined
    this.#id = undefined
    this.#lease.stop()
    clearTimeout(this.#holeTimer)
    this.feed.end()
    sink.session({ state: 'closed', session: this.#label })
    const left = there && this.#bury(there.connection, there.id, { itself: true }).catch(() => undefined)
    if (left) await atMost(FAREWELL, left)
    this.#closing.abort(new NotConnected(`${this.uri} was closed`))
    there?.connection.break(new Error('the board was closed'))
    await this.#running
  }

  /** The session is over, and with it every claim it held. */
  lose(reason: Error): void {
    const id = this.#id
    if (id === undefined) return
    this.#id = undefined
    this.#former = id
    this.#attached = undefined
    this.#lease.stop()
    this.#options.sink.session({ state: 'lost', session: id, reason })
    this.#options.lost(id)
    this.#wake.notify()
  }

  alive(id: string): boolean {
    return this.#id === id && this.#lease.holds()
  }

  /** Resolves with the session's id when it is certain to be alive. */
  async proven(): Promise<string> {
    while (!(this.#attached && this.alive(this.#attached.id))) {
      this.#closing.signal.throwIfAborted()
      await this.#proven.wait({ signal: this.#closing.signal })
    }
    return this.#attached.id
  }

  /** A request that was sent at that time, in this session, was answered. */
  answered(id: string, sentAt: Instant): void {
    if (this.#id === id) this.#lease.extend(sentAt)
  }

  /** Runs one of the scripts that take all keys. @throws NotConnected */
  async run(what: Script, args: readonly Argument[]): Promise<unknown> {
    const { connection, id } = this.#there()
    return connection.run(what, this.#options.layout.keys(id), args).catch((error: unknown) => this.#failed(error))
  }

  async ask(command: string, ...args: Argument[]): Promise<unknown> {
    return this.#there()
      .connection.ask(command, ...args)
      .catch((error: unknown) => this.#failed(error))
  }

  /** Everything that was committed before is told when it resolves, and what dead owners held is free. */
  async look(): Promise<void> {
    const there = this.#there()
    const outlook = await this.#look(there, this.feed.seen).catch((error: unknown) => this.#failed(error))
    if (!outlook) throw notConnected(this.uri, new Error('the session is over'))
    await this.#heed(there, outlook).catch((error: unknown) => this.#failed(error))
  }

  /** Gives back what these held, as far as they are dead. */
  async bury(ids: readonly string[]): Promise<void> {
    const { connection } = this.#there()
    await Promise.all(ids.map((id) => this.#bury(connection, id))).catch((error: unknown) => this.#failed(error))
  }

  // --- Inside -----------------------------------------------------------------------------------------------------

  get #isLeaving(): boolean {
    return this.#leaving !== undefined
  }

  #there(): Attached {
    if (this.#attached) return this.#attached
    throw notConnected(this.uri, this.#trouble)
  }

  #failed(error: unknown): never {
    if (complaintOf(error) === 'denied' && error instanceof Error) throw this.#denied(error)
    if (complaintOf(error) === 'odd' || complaintOf(error) === 'refused') throw error
    throw notConnected(this.uri, error)
  }

  #denied(error: Error): AccessDenied {
    return accessDenied(this.uri, error, { given: this.#options.place.credentials !== undefined })
  }

  async #run(first: { resolve(): void; reject(reason: unknown): void }): Promise<void> {
    const driver = await loadDriver(this.#options.place)
    const { place, layout, sink, log } = this.#options
    const { signal } = this.#closing
    // Longer than a slow answer takes, and so short that another connection can be had before the lease is over.
    const patience = Math.max(500, place.ttl / 3)
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      let connection: Connection | undefined
      try {
        const { channel } = layout
        const heard = (message: Buffer) => this.#heard(message)
        connection = await Connection.open(driver, { place, channel, patience, heard, signal })
        await this.#serve(connection, () => {
          attempt = 1
          first.resolve()
        })
      } catch (error) {
        this.#trouble = error
        // While it is being opened nobody else can be told.
        log.debug({ reason: describeError(error) }, 'no connection to Redis')
        const fatal = complaintOf(error) === 'denied' && error instanceof Error ? this.#denied(error) : error
        if (isFinal(fatal)) first.reject(fatal)
        if (isFinal(fatal) && this.#joinedBefore && !signal.aborted) sink.error(fatal)
      }
      connection?.break(new Error('another connection is tried'))
      this.#detached()
      await sleep(backoff(attempt, { first: 50, max: 2_000 }), { signal }).catch(() => undefined)
    }
  }

  /** Until the connection breaks. */
  async #serve(connection: Connection, begun: () => void): Promise<void> {
    const { ttl } = this.#options.place
    let broken: Error | undefined
    void connection.broken.then((why) => {
      broken = why
      this.#trouble = why
      this.#detached()
      this.#wake.notify()
    })
    while (!broken && !this.#closing.signal.aborted) {
      if (this.#isLeaving) {
        // The connection is needed yet, and whoever leaves does not come back as another.
        await this.#rest(ttl)
        continue
      }
      let there = this.#attached
      let outlook: Outlook | undefined
      if (there) outlook = await this.#look(there, this.feed.seen)
      else {
        ;[there, outlook] = await this.#attach(connection)
        if (there) begun()
      }
      if (!there || !outlook) continue
      const earliest = Number(outlook[5]) - this.clock.now()
      await this.#heed(there, outlook)
      if (this.#attached === there) await this.#rest(Math.max(10, Math.min(ttl / 3, earliest + 5)))
    }
    if (broken) throw broken
  }

  /** Until that time has passed, or something has happened. */
  async #rest(ms: number): Promise<void> {
    const timer = setTimeout(() => this.#wake.notify(), ms).unref()
    await this.#wake.wait({ signal: this.#closing.signal }).catch(() => undefined)
    clearTimeout(timer)
  }

  /** The session goes on here, or a new one begins. Neither, where the old one turned out to be over. */
  async #attach(connection: Connection): Promise<[Attached, Outlook] | [undefined, undefined]> {
    const { sink } = this.#options
    const id = this.#id ?? newUuid()
    const isNew = this.#id === undefined
    if (isNew) this.#numbers = { acked: 0, sent: 0 }
    const { acked, sent } = this.#numbers
    const there: Attached = { id, connection, acked, sent }
    const sentAt = systemClock()
    if (isNew && this.#former !== undefined) {
      await this.#bury(connection, this.#former, { itself: true })
      this.#former = undefined
    }
    const outlook = isNew ? await this.#join(there) : await this.#look(there, undefined)
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
    sink.counted(outlook[7])
    this.feed.begin(standingOf(outlook))
    sink.session({ state: 'connected', session: id })
    this.#options.attached(there)
    this.#proven.notify()
    return [there, outlook]
  }

  async #join(there: Attached): Promise<Outlook> {
    const { create, sink, place } = this.#options
    const { made, outlook } = await this.#owners.join(there, { mayMake: create || this.#joinedBefore })
    if (made && this.#joinedBefore) sink.error(emptied(place.uri))
    this.#joinedBefore = true
    return outlook
  }

  /** Undefined where it told that the session is over. */
  async #look(there: Attached, seen: number | undefined): Promise<Outlook | undefined> {
    const sentAt = systemClock()
    const told = await this.#owners.look(there, seen)
    if (told.alive) {
      this.answered(there.id, sentAt)
      return told.outlook
    }
    if (this.#id === there.id) this.lose(told.reason)
    return undefined
  }

  async #bury(connection: Connection, id: string, options: { readonly itself?: boolean } = {}): Promise<void> {
    for (const fault of await this.#owners.bury(connection, id, options)) this.#options.damaged(fault)
  }

  async #heed(there: Attached, outlook: Outlook): Promise<void> {
    const [now, version, changes, , late, , uneven, jobs, secret, faults] = outlook
    this.#secret = secret
    for (const fault of faults) this.#options.damaged(fault)
    this.clock.observe(Number(now))
    if (this.#attached === there) this.feed.answered(changes, standingOf(outlook))
    // Of what came after it nothing may have been told yet, or it would be counted twice.
    if (this.feed.seen === Number(version)) this.#options.sink.counted(jobs)
    const dead = late.filter((id) => id !== there.id)
    await Promise.all(dead.map((id) => this.#bury(there.connection, id)))
    // What is mended waits for the next connection where this one breaks, and who makes that must not wait for it.
    if (uneven && this.#attached === there) await Promise.race([this.#options.uneven(), there.connection.broken])
    // What was done just now is told by what was published, or by the next look: here it has to be known at once.
    if ((dead.length > 0 || uneven) && this.#attached === there) {
      const next = await this.#look(there, this.feed.seen)
      if (next && this.#attached === there) this.feed.answered(next[2], standingOf(next))
    }
  }

  /**
   * Takes what was published for what it is: of the board's own scripts the changes themselves, of anybody else a hint to ask
   * for them. It is called by a socket's event, so what it threw would end the process.
   */
  #heard(message: Buffer): void {
    const part = published(message, this.#secret)
    try {
      if (part) this.feed.heard(part)
      else this.#warnOfUnsigned(message)
    } catch (error) {
      this.#options.sink.error(error instanceof Error ? error : new Error(String(error)))
      this.#options.sink.gap()
    }
    this.#isHinted ||= part === undefined
    this.#askSoon()
  }

  /** One question at a time, however many publications come. */
  #askSoon(): void {
    if (!this.#isHinted && !this.feed.hasHole) return
    const pause = this.#isHinted ? UNSIGNED_PAUSE_MS : HOLE_PATIENCE
    this.#holeTimer ??= setTimeout(() => void this.#ask(), pause)
  }

  /** Asks for the changes that were not published. */
  async #ask(): Promise<void> {
    const isHinted = this.#isHinted
    this.#isHinted = false
    if (this.#attached && (isHinted || this.feed.hasHole)) await this.look().catch(() => undefined)
    this.#holeTimer = undefined
    if (this.#attached) this.#askSoon()
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
    const reason = this.#trouble instanceof Error ? { reason: this.#trouble } : {}
    this.#options.sink.session({ state: 'disconnected', session: id, ...reason })
  }
}

function standingOf([, version, , paused]: Outlook): Standing {
  return { version: Number(version), paused }
}

/** What another connection would be told, too. */
function isFinal(error: unknown): error is Error {
  const known = [AccessDenied, InvalidArgument, NotFound, IncompatibleVersion, TypeError, RangeError]
  return complaintOf(error) === 'odd' || known.some((final) => error instanceof final)
}
