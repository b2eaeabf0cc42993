/**
 * The session of a board object: a row with heartbeats, and the lease that they renew.
 *
 *     connected → lost → connected (in a new session)        and from each of them: closed
 *
 * The session is lost when its lease has ended, or when another process has removed its row. The lease ends before the others may remove the
 * row: so a process that was stopped lets go of its claims before another owner can have them.
 */
import { createDeferred } from '../../../../core/async/abort.ts'
import { RecurringError } from '../../../../core/async/recurring-error.ts'
import { asError, NotConnected } from '../../../../core/errors.ts'
import { backoffDelay, startTimer, systemClock } from '../../../../core/time.ts'
import type { SqliteFile } from '../../../../sqlite/index.ts'
import type { BackendSink } from '../../../contract/index.ts'
import { OwnerLease } from '../../lease.ts'
import type { BoardContext } from '../store/change-log.ts'
import { endSession, openSession, renewSession } from '../store/session-rows.ts'
import type { ProcessLife } from './process-life.ts'

export interface SessionOptions {
  readonly file: SqliteFile
  readonly context: BoardContext
  readonly life: ProcessLife
  readonly sink: Pick<BackendSink, 'session' | 'error'>
  /** The URI of the board, for errors. */
  readonly uri: string
  readonly who: string
  /** The TTL in milliseconds. */
  readonly ttl: number
  /** Called when a session has begun, before it is reported. */
  readonly onBegun: () => void
}

/** A session that was not lost yet. */
export interface LiveSession {
  readonly id: number
  /** The name of the session in events. */
  readonly label: string
  readonly lease: OwnerLease
}

export class SessionKeeper {
  readonly #options: SessionOptions
  #current: LiveSession | undefined
  #timer: NodeJS.Timeout | undefined
  #next = createDeferred()
  #isClosed = false
  #failures = 0
  readonly #recurring = new RecurringError()

  constructor(options: SessionOptions) {
    this.#options = options
    this.#next.promise.catch(() => undefined)
  }

  get current(): LiveSession | undefined {
    return this.#current
  }

  /** Begins a session. */
  async begin(): Promise<void> {
    const { file, context, life, who, ttl, sink, onBegun } = this.#options
    const sentAt = systemClock()
    const process = await life.number
    const id = await file.run(() => openSession(context, { process, who, ttl }))
    if (this.#isClosed) {
      await file.run(() => endSession(context.db, { session: id, board: context.board }))
      return
    }
    const lease = new OwnerLease({
      ttl,
      over: () => this.#lose(id, 'the lease has ended, because no heartbeat was written in time'),
    })
    const session = { id, label: `session ${id}`, lease }
    lease.extend(sentAt)
    this.#current = session
    this.#schedule(session)
    onBegun()
    sink.session({ state: 'connected', session: session.label })
    const next = this.#next
    this.#next = createDeferred()
    this.#next.promise.catch(() => undefined)
    next.resolve()
  }

  /** Notes that the row of a session was removed, by this or another process. */
  noteEnded(id: number): void {
    this.#lose(id, 'the session has ended, because its row was removed')
  }

  /** Returns whether the session is certainly alive at this instant. If it is not, it is reported as lost first. */
  isAlive(label: string): boolean {
    return this.#current?.label === label && this.#current.lease.isValid()
  }

  /** Whether there is a session that is certainly alive at this instant. If it is not, it is reported as lost first. */
  get hasAliveSession(): boolean {
    return this.#current !== undefined && this.isAlive(this.#current.label)
  }

  /** Resolves when a session is alive. @throws NotConnected when the board is closed */
  async whenAlive(): Promise<void> {
    while (!this.hasAliveSession) await this.#next.promise
  }

  /** Ends the session. The owner is notified before another one can claim its jobs. */
  async close(): Promise<void> {
    const { file, context, sink, uri } = this.#options
    const session = this.#current
    this.#isClosed = true
    this.#current = undefined
    clearTimeout(this.#timer)
    session?.lease.stop()
    this.#next.reject(new NotConnected(`${uri} is closed`))
    sink.session({ state: 'closed', session: session?.label ?? 'none' })
    if (!session) return
    const ending = file.run(() => endSession(context.db, { session: session.id, board: context.board }))
    // Where the file cannot be written to, the session ends with the process.
    await ending.catch(() => undefined)
  }

  #schedule(session: LiveSession): void {
    this.#timer = startTimer(() => void this.#heartbeat(session), this.#options.ttl / 3)
  }

  async #heartbeat(session: LiveSession): Promise<void> {
    const { file, context } = this.#options
    const sentAt = systemClock()
    try {
      const isThere = await file.runAtOnce(() => renewSession(context.db, session.id))
      // The lease may have ended while the step waited: then the session is reported as lost, and must not be extended.
      if (this.#current !== session || !session.lease.isValid()) return
      this.#recurring.clear()
      if (!isThere) this.noteEnded(session.id)
      else session.lease.extend(sentAt)
    } catch (error) {
      if (this.#current === session) this.#report(asError(error))
    }
    if (this.#current === session) this.#schedule(session)
  }

  #report(error: Error): void {
    if (!this.#recurring.isNew(error)) return
    this.#options.sink.error(error)
  }

  #lose(id: number, why: string): void {
    const { sink, uri } = this.#options
    const session = this.#current
    if (session?.id !== id) return
    this.#current = undefined
    clearTimeout(this.#timer)
    session.lease.stop()
    sink.session({ state: 'lost', session: session.label, reason: new NotConnected(`${uri}: ${why}`) })
    void this.#beginAgain(id)
  }

  /** Ends the former session, whose row may still be there, and begins another one. */
  async #beginAgain(former: number): Promise<void> {
    const { file, context } = this.#options
    try {
      await file.run(() => endSession(context.db, { session: former, board: context.board }))
      if (!this.#isClosed) await this.begin()
      this.#failures = 0
      this.#recurring.clear()
    } catch (error) {
      if (this.#isClosed) return
      this.#report(asError(error))
      this.#failures += 1
      const pause = backoffDelay(this.#failures, { first: 50, max: 2_000 })
      this.#timer = startTimer(() => void this.#beginAgain(former), pause)
    }
  }
}
