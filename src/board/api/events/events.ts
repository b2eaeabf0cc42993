/** The events of a board, and the reporter that logs errors of background work and of listeners and emits `error`. */
import { asError } from '../../../core/errors.ts'
import { Emitter } from '../../../core/events.ts'
import { describeError } from '../../../core/failure.ts'
import type { Logger } from '../../../core/log.ts'
import { defined } from '../../../core/options.ts'
import type { SessionState } from '../../contract/index.ts'
import type { Job } from '../../jobs/job.ts'

/** An event of a job, caused by any board object. */
export interface JobEvent {
  readonly job: Job
}

/**
 * The events that `board.on` accepts. Every connected board emits every change, also those of other boards. A board emits
 * nothing for a job that was posted and ended before the board could read it.
 */
export interface BoardEvents {
  posted: JobEvent
  claimed: JobEvent
  abandoned: JobEvent
  consumed: JobEvent
  trashed: JobEvent
  /**
   * A flow that no living conductor has known for `unacceptedAfter`, while other jobs wait for the resources of its jobs: from
   * now on they no longer wait for these jobs.
   */
  unaccepted: { readonly flow: string; readonly version: string | undefined; readonly job: Job }
  /**
   * Jobs have begun to wait for a limit; `job` is the first of them, and `until` the time at which it may start, if that is known. At most once
   * a minute for each key. Only on boards that claim: others do not find out.
   */
  limited: { readonly key: string; readonly job: Job; readonly until?: Date }
  state: { readonly state: SessionState; readonly reason?: Error }
  /**
   * `missing`: the server's notifications do not arrive, so this process sees changes of others only when it reads the board periodically.
   * `arriving`: they arrive again.
   */
  notifications: { readonly state: 'missing' | 'arriving' }
  /**
   * The servers have lost the data of the board since this board was opened: a Redis that keeps nothing on disk was restarted, or it was emptied. The board
   * was created anew; its jobs, limits and schedules are gone. Other boards than those on Redis do not find out.
   */
  emptied: Readonly<Record<string, never>>
  /** An error of background work, or of a listener. */
  error: { readonly error: Error }
}

const BOARD_EVENTS: Readonly<Record<keyof BoardEvents, true>> = {
  posted: true,
  claimed: true,
  abandoned: true,
  consumed: true,
  trashed: true,
  unaccepted: true,
  limited: true,
  state: true,
  notifications: true,
  emptied: true,
  error: true,
}

/** The maximum number of errors that are kept for the first listener. */
const MAX_UNREPORTED = 100

export class ErrorReporter {
  readonly events: Emitter<BoardEvents>
  readonly #log: Logger
  /** Errors from before a listener was added; they are emitted to the first listener for errors. */
  #unreported: Error[] | undefined = []
  #isAway = false

  constructor(log: Logger) {
    this.#log = log
    this.events = new Emitter((error, event) => this.#listenerFailed(error, event), { events: BOARD_EVENTS })
  }

  /** Logs and emits the error. */
  report(error: Error): void {
    this.#log.warn({ err: error }, 'jobboard: an error in the background')
    if (this.#unreported && this.#unreported.length < MAX_UNREPORTED) this.#unreported.push(error)
    this.events.emit('error', { error })
  }

  /** Emits the state of the session, and logs that the board is away, that its claims are lost, and that it is back: once each. */
  stateChanged({ state, reason }: BoardEvents['state'], uri: string): void {
    const facts = { board: uri, ...defined({ reason: reason && describeError(reason) }) }
    if (state === 'disconnected' && !this.#isAway) this.#log.warn(facts, 'a board is away')
    else if (state === 'lost') this.#log.warn(facts, 'the session of a board is over: its claims are lost')
    else if (state === 'connected' && this.#isAway) this.#log.info({ board: uri }, 'a board is back')
    this.#isAway = state === 'disconnected' || state === 'lost'
    this.events.emit('state', { state, ...defined({ reason }) })
  }

  /** Emits the errors from before the first listener for errors was added. */
  errorListenerAdded(): void {
    const unreported = this.#unreported ?? []
    this.#unreported = undefined
    queueMicrotask(() => {
      for (const error of unreported) this.events.emit('error', { error })
    })
  }

  #listenerFailed(thrown: unknown, event: keyof BoardEvents): void {
    const error = asError(thrown)
    this.#log.error({ err: error, event }, 'jobboard: a listener threw')
    // The error of a listener for errors is only logged: emitting it would call the same listener for ever.
    if (event !== 'error') this.events.emit('error', { error })
  }
}
