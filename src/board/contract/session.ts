/** The session of a backend, and its clock. */
import type { AlarmClock } from '../../core/time.ts'
import type { BackendSink } from './sink.ts'

export interface BackendSession {
  /** Milliseconds without a heartbeat after which a session expires; absent where a session lasts as long as its process. */
  readonly timeout?: number | undefined
  /**
   * Connects, and creates the board if it is missing. From then on the sink receives the session, errors, and whether the board is
   * paused as it was read last; changes only after `changes.subscribe`. Takes as long for a long board as for an empty one.
   */
  open(sink: BackendSink, options: { signal: AbortSignal }): Promise<void>
  /** Ends the session, and with it every claim. Idempotent. */
  close(): Promise<void>
  /**
   * Watches the lease of the session until the result is disposed: the backend reports `lost` before another owner could be granted
   * what this session holds.
   */
  watchLease(): LeaseWatch
  /** Returns whether this session is certain to be alive at this instant, without a request; reports `lost` first if it is not. */
  isAlive(session: string): boolean
  /**
   * Returns for how many milliseconds this board's session is certain to be alive, without a request; undefined without a session, and
   * infinite for a session that lasts as long as its process.
   */
  leftMs(): number | undefined
}

export interface LeaseWatch extends Disposable {
  /**
   * Resolves as soon as the session, or the next one, is certain to be alive; undefined if it is certain at this instant, as nearly always.
   *
   * @throws NotConnected
   */
  whenAlive(): Promise<unknown> | undefined
}

export interface BackendClock {
  /** The clock for delays and deadlines of the board's jobs; by default the clock of the process. */
  readonly alarms?: AlarmClock
  /**
   * Returns the time of the clock that delays are counted by, in milliseconds since 1970: the servers' clock, or this machine's clock
   * until an answer has shown the servers'.
   */
  now(): number
  /** Resolves when {@link now} is the servers' time; a round trip if no answer has shown it yet. Errors: NotConnected. */
  read(): Promise<void>
}
