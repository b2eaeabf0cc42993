/**
 * The session consists of an owner's key in Redis and the connection that renews it (`keeper.ts`).
 *
 *     away ──connection──→ joining ──→ attached ──broken──→ away
 *                             ↑            │
 *                             └───lost─────┘
 *
 * The session and all its claims end when the key is missing or the lease has expired. The next session has another owner
 * with another key; it first releases what the former owner held. A broken connection does not end the session: on the next
 * connection the session checks that the key exists and includes every group whose answer this process has received.
 */
import { Condition } from '../../../../core/async/abort.ts'
import { isError, NotConnected } from '../../../../core/errors.ts'
import { type Instant, systemClock, withinTime } from '../../../../core/time.ts'
import { newUuid } from '../../../../core/uuid.ts'
import { OwnerLease } from '../../lease.ts'
import { ServerClock } from '../../server-clock.ts'
import type { RedisConnection } from '../store/connection.ts'
import { notConnectedError, sessionOverError, throwRequestError } from '../store/errors.ts'
import type { Watchable } from '../store/layout.ts'
import type { BoardContext } from './context.ts'
import { boardEmptiedError, type OwnerConnection, OwnerKeys, type OwnerStatus } from './owner-keys.ts'
import type { Publications } from './publications.ts'

/** The time limit for answers while the board is closed, in milliseconds. */
export const CLOSE_TIMEOUT_MS = 5_000

export interface OwnerSessionOptions {
  readonly publications: Publications
  /** Called when an owner is attached to a connection. */
  readonly onAttached: () => void
  /** Called with the id of the owner whose session was lost. */
  readonly onLost: (id: string) => void
}

export class OwnerSession {
  readonly clock = new ServerClock()
  /** The reason why there is no connection. */
  lastError: unknown
  /** Throws the error of a request that failed: what the server has answered, AccessDenied or NotConnected. */
  readonly rethrow = (error: unknown): never => throwRequestError(error, this.#context.location)
  readonly #context: BoardContext
  readonly #options: OwnerSessionOptions
  readonly #owners: OwnerKeys
  readonly #lease: OwnerLease
  readonly #closing = new AbortController()
  readonly #proven = new Condition()
  #id: string | undefined
  /** The former owner, whose claims are not released yet. */
  #previousId: string | undefined
  #label = newUuid()
  #numbers = { acked: 0, sent: 0 }
  #attached: OwnerConnection | undefined
  #hasJoined = false
  /** The secret of the board that was joined last. */
  #secret = ''
  /** Whether the board was found to be emptied, and this is not reported yet. */
  #wasEmptied = false
  #leaving: Promise<void> | undefined

  constructor(context: BoardContext, options: OwnerSessionOptions) {
    this.#context = context
    this.#options = options
    this.#owners = new OwnerKeys(context)
    this.#lease = new OwnerLease({
      ttl: context.location.ttl,
      over: () => this.markLost(new Error('its lease has expired')),
    })
  }

  get uri(): string {
    return this.#context.location.uri
  }

  get attached(): OwnerConnection | undefined {
    return this.#attached
  }

  /** Whether the board was joined by any session of this process. */
  get hasJoined(): boolean {
    return this.#hasJoined
  }

  get isLeaving(): boolean {
    return this.#leaving !== undefined
  }

  /** Aborts when the session has left, and connections are not needed any more. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** Returns the owner on its connection. @throws NotConnected */
  requireAttached(): OwnerConnection {
    if (this.#attached) return this.#attached
    throw notConnectedError(this.uri, this.lastError)
  }

  /** Reports changes of records of a kind, or of a batch, on this connection and on later ones. @throws NotConnected */
  async watch(what: Watchable, name: string): Promise<void> {
    const attached = this.requireAttached()
    this.#options.publications.watched[what].add(name)
    await attached.connection.subscribe(this.#context.layout.watchChannel(what)).catch(this.rethrow)
    if (this.#attached !== attached) throw sessionOverError(this.uri)
  }

  /** Ends what {@link watch} began. */
  async unwatch(what: Watchable, name: string): Promise<void> {
    const names = this.#options.publications.watched[what]
    names.delete(name)
    if (names.size > 0) return
    await this.#attached?.connection.unsubscribe(this.#context.layout.watchChannel(what))
  }

  isAlive(id: string): boolean {
    return this.#id === id && this.#lease.isValid()
  }

  /** The time for which the session is certainly alive, in milliseconds; undefined without a session. */
  get leaseLeftMs(): number | undefined {
    return this.#id === undefined ? undefined : this.#lease.leftMs
  }

  /** Whether the session has a connection, and is certainly alive at this instant. */
  get isAttachedAlive(): boolean {
    return this.#attached !== undefined && this.isAlive(this.#attached.id)
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

  /** Continues the session on this connection, or begins a new one. Returns nothing if the old session is over. */
  async attach(connection: RedisConnection): Promise<[OwnerConnection, OwnerStatus] | [undefined, undefined]> {
    const { publications, onAttached } = this.#options
    const id = this.#id ?? newUuid()
    const isNew = this.#id === undefined
    if (isNew) this.#numbers = { acked: 0, sent: 0 }
    const { acked, sent } = this.#numbers
    const attached: OwnerConnection = { id, connection, acked, sent }
    const sentAt = systemClock()
    if (isNew && this.#previousId !== undefined) {
      await this.endOwner(connection, this.#previousId, { itself: true })
      this.#previousId = undefined
    }
    const status = isNew ? await this.#join(attached) : await this.renew(attached, undefined)
    if (this.isLeaving) await this.endOwner(connection, id, { itself: true })
    // The lease may have expired meanwhile: a session that was reported as lost does not continue.
    const over = !isNew && this.#id !== id
    if (!status || over || this.isLeaving) return [undefined, undefined]
    this.#id = id
    this.#label = id
    this.#numbers = attached
    this.#lease.extend(sentAt)
    this.#attached = attached
    publications.attached(connection, status)
    this.#context.sink.session({ state: 'connected', session: id })
    if (this.#wasEmptied) {
      this.#wasEmptied = false
      this.#context.sink.health('emptied')
    }
    onAttached()
    this.#proven.notify()
    return [attached, status]
  }

  async #join(attached: OwnerConnection): Promise<OwnerStatus> {
    const { create, sink, location } = this.#context
    const { isNew, status } = await this.#owners.join(attached, { mayCreate: create || this.#hasJoined })
    if (isNew && this.#hasJoined) sink.error(boardEmptiedError(location.uri))
    // The first owner that comes back has created the board anew, with another secret; the others find a board.
    const { 8: secret } = status
    if (this.#hasJoined && secret !== this.#secret) this.#wasEmptied = true
    this.#hasJoined = true
    this.#secret = secret
    return status
  }

  /** Renews the owner's key. Returns undefined if the session is over, which is reported. */
  async renew(attached: OwnerConnection, seen: number | undefined): Promise<OwnerStatus | undefined> {
    const sentAt = systemClock()
    const renewed = await this.#owners.renew(attached, seen)
    if (renewed.alive) {
      this.noteAnswer(attached.id, sentAt)
      return renewed.status
    }
    if (this.#id === attached.id) this.markLost(renewed.reason)
    return undefined
  }

  /** Releases the claims of these owners if they are dead. */
  async endOwners(ids: readonly string[]): Promise<void> {
    const { connection } = this.requireAttached()
    await Promise.all(ids.map((id) => this.endOwner(connection, id))).catch(this.rethrow)
  }

  /** Releases the claims of an owner if it is dead, or if it leaves `itself`. @throws the error of the driver or of the server */
  async endOwner(connection: RedisConnection, id: string, options: { readonly itself?: boolean } = {}): Promise<void> {
    for (const fault of await this.#owners.endOwner(connection, id, options)) this.#context.damaged(fault)
  }

  /** Notes that the connection is gone; the session continues on the next one. */
  detach(): void {
    const id = this.#attached?.id
    if (id === undefined) return
    this.#attached = undefined
    this.#options.publications.feed.end()
    const reason = isError(this.lastError) ? { reason: this.lastError } : {}
    this.#context.sink.session({ state: 'disconnected', session: id, ...reason })
  }

  /** Ends the session and all its claims. */
  markLost(reason: Error): void {
    const id = this.#id
    if (id === undefined) return
    this.#id = undefined
    this.#previousId = id
    this.#attached = undefined
    this.#lease.stop()
    this.#context.sink.session({ state: 'lost', session: id, reason })
    this.#options.onLost(id)
  }

  /** Ends the session: reports it as closed, releases its claims, and disconnects. */
  close(): Promise<void> {
    this.#leaving ??= this.#shutDown()
    return this.#leaving
  }

  async #shutDown(): Promise<void> {
    const attached = this.#attached
    this.#attached = undefined
    this.#id = undefined
    this.#lease.stop()
    this.#options.publications.close()
    this.#context.sink.session({ state: 'closed', session: this.#label })
    const left = attached && this.endOwner(attached.connection, attached.id, { itself: true }).catch(() => undefined)
    if (left) await withinTime(CLOSE_TIMEOUT_MS, left)
    this.#closing.abort(new NotConnected(`${this.uri} was closed`))
    attached?.connection.disconnect(new Error('the board was closed'))
  }
}
