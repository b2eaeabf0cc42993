/**
 * Connects to the servers, and keeps the session alive on the connection until it breaks: renews the owner's key, and applies the status
 * of the board that each answer has. Then it opens the next connection.
 */
import { Condition, createDeferred, rejectOnAbort } from '../../../../core/async/abort.ts'
import { retryUntilAborted } from '../../../../core/async/retry.ts'
import {
  AccessDenied,
  IncompatibleVersion,
  InvalidArgument,
  isError,
  JobboardError,
  NotFound,
} from '../../../../core/errors.ts'
import { describeError } from '../../../../core/failure.ts'
import { startTimer } from '../../../../core/time.ts'
import { loadDriver } from '../store/clients.ts'
import { RedisConnection } from '../store/connection.ts'
import { accessDeniedError, notConnectedError, sessionOverError, toErrorKind } from '../store/errors.ts'
import { loadScripts } from '../store/scripts.ts'
import type { BoardContext } from './context.ts'
import type { OwnerConnection, OwnerStatus } from './owner-keys.ts'
import type { OwnerSession } from './owner-session.ts'
import type { Publications } from './publications.ts'

/** The time limit for opening a board, in milliseconds. */
const OPEN_TIMEOUT_MS = 10_000

export class SessionKeeper {
  readonly #context: BoardContext
  readonly #session: OwnerSession
  readonly #publications: Publications
  readonly #wake = new Condition()
  #running: Promise<void> | undefined
  #warnedOfPassword = false
  /** The eviction policy that was reported. */
  #eviction: string | undefined

  constructor(
    context: BoardContext,
    { session, publications }: { readonly session: OwnerSession; readonly publications: Publications },
  ) {
    this.#context = context
    this.#session = session
    this.#publications = publications
  }

  /** The policy by which the server evicts keys when its memory is full; undefined if it evicts none. */
  get eviction(): string | undefined {
    return this.#eviction
  }

  /** Opens the session. @throws AccessDenied, IncompatibleVersion, InvalidState, NotFound; NotConnected after the time limit */
  async open(options: { readonly signal: AbortSignal }): Promise<void> {
    const { location } = this.#context
    await loadDriver(location)
    loadScripts()
    const first = createDeferred()
    this.#running = this.#run(first)
    const expire = () => first.reject(notConnectedError(`opening ${location.uri}`, this.#session.lastError))
    const timer = setTimeout(expire, OPEN_TIMEOUT_MS)
    await rejectOnAbort(first.promise, options.signal).finally(() => clearTimeout(timer))
  }

  /** Closes the session and the last connection. */
  async close(): Promise<void> {
    await this.#session.close()
    await this.#running
  }

  /** Ends the pause before the next renewal. */
  wake(): void {
    this.#wake.notify()
  }

  /** Resolves when the sink has received everything committed before the call, and dead owners were released. */
  async refresh(): Promise<void> {
    const { uri, rethrow } = this.#session
    const attached = this.#session.requireAttached()
    const status = await this.#session.renew(attached, this.#publications.feed.seen).catch(rethrow)
    if (!status) throw sessionOverError(uri)
    await this.#applyStatus(attached, status).catch(rethrow)
  }

  async #run(first: { resolve(): void; reject(reason: unknown): void }): Promise<void> {
    const { location, sink, log } = this.#context
    const driver = await loadDriver(location)
    const signal = this.#session.closing
    const timeoutMs = location.timeout
    const onMessage = (channel: string, message: Buffer) => this.#publications.receive(channel, message)
    const onUnneededPassword = () => this.#warnOfPassword()
    // Serves the session on one connection; rejects when the session was not attached to it.
    const serveOnce = async () => {
      let connection: RedisConnection | undefined
      let isServed = false
      try {
        connection = await RedisConnection.open(driver, { location, timeoutMs, onMessage, onUnneededPassword, signal })
        this.#reportEviction(connection.eviction)
        await this.#publications.connect(connection)
        await this.#serve(connection, () => {
          isServed = true
          first.resolve()
        })
      } catch (error) {
        this.#session.lastError = error
        // While the board is being opened, the log is the only place to report it.
        log.debug({ reason: describeError(error) }, 'no connection to Redis')
        const fatal = toErrorKind(error) === 'denied' && isError(error) ? accessDeniedError(location, error) : error
        if (isFinal(fatal)) first.reject(fatal)
        if (isFinal(fatal) && this.#session.hasJoined && !signal.aborted) sink.error(fatal)
        if (!isServed) throw error
      } finally {
        connection?.disconnect(new Error('another connection is opened'))
        this.#session.detach()
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
    const { location, log } = this.#context
    log.warn({ board: location.uri }, 'this Redis needs no password, but one was given')
  }

  #reportEviction(policy: string | undefined): void {
    if (policy !== undefined && policy !== this.#eviction) {
      const { location, sink } = this.#context
      const text = `Redis evicts keys when its memory is full (${policy}), and jobs are lost: set maxmemory-policy noeviction`
      sink.error(new JobboardError(`${location.uri}: ${text}`))
    }
    this.#eviction = policy
  }

  /** Serves the session on a connection until the connection breaks. @param begun called when the session is attached to it */
  async #serve(connection: RedisConnection, begun: () => void): Promise<void> {
    const { ttl } = this.#context.location
    const session = this.#session
    let broken: Error | undefined
    void connection.broken.then((why) => {
      broken = why
      session.lastError = why
      session.detach()
      this.#wake.notify()
    })
    while (!broken && !session.closing.aborted) {
      if (session.isLeaving) {
        // The connection is still needed to leave, and a session that leaves is not replaced by another.
        await this.#pause(ttl)
        continue
      }
      let attached = session.attached
      let status: OwnerStatus | undefined
      if (attached) status = await session.renew(attached, this.#publications.feed.seen)
      else {
        ;[attached, status] = await session.attach(connection)
        if (attached) begun()
      }
      if (!attached || !status) continue
      const earliest = Number(status[5]) - session.clock.now()
      await this.#applyStatus(attached, status)
      if (session.attached === attached) await this.#pause(Math.max(10, Math.min(ttl / 3, earliest + 5)))
    }
    if (broken) throw broken
  }

  /** Resolves after this time, or when the keeper is woken. */
  async #pause(ms: number): Promise<void> {
    const timer = startTimer(() => this.#wake.notify(), ms).unref()
    await this.#wake.wait({ signal: this.#session.closing }).catch(() => undefined)
    clearTimeout(timer)
  }

  async #applyStatus(attached: OwnerConnection, status: OwnerStatus): Promise<void> {
    const { sink, damaged, onUnfinished, onInconsistent } = this.#context
    const [session, publications] = [this.#session, this.#publications]
    const [now, version, , , late, , uneven, jobs, secret, faults, unfinished] = status
    publications.secret = secret
    if (unfinished) onUnfinished()
    for (const fault of faults) damaged(fault)
    session.clock.observe(Number(now))
    if (session.attached === attached) publications.apply(status)
    // The count is valid only if no later change was delivered, which would be counted twice.
    if (publications.feed.seen === Number(version)) sink.jobCount(jobs)
    const dead = late.filter((id) => id !== attached.id)
    await Promise.all(dead.map((id) => session.endOwner(attached.connection, id)))
    // If this connection breaks, the repair waits for the next one; this loop opens it, so it must not wait for the repair.
    if (uneven && session.attached === attached) await Promise.race([onInconsistent(), attached.connection.broken])
    // These changes would arrive by publication or with the next status, but they must be delivered before this call ends.
    if ((dead.length > 0 || uneven) && session.attached === attached) {
      const next = await session.renew(attached, publications.feed.seen)
      if (next && session.attached === attached) publications.apply(next)
    }
  }
}

/** Returns whether another connection would fail with the same error. */
function isFinal(error: unknown): error is Error {
  const known = [AccessDenied, InvalidArgument, NotFound, IncompatibleVersion, TypeError, RangeError]
  return toErrorKind(error) === 'odd' || known.some((final) => error instanceof final)
}
