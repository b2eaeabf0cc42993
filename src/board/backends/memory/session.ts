/** The session of a memory board, which lasts as long as the board object, and the clock of its jobs. */
import type { AlarmClock } from '../../../core/time.ts'
import type { BackendClock, BackendSession, BackendSink, LeaseWatch } from '../../contract/index.ts'
import type { MemorySpace } from './space.ts'
import type { MemoryBoard } from './store/board.ts'

export class MemorySession implements BackendSession {
  readonly #board: MemoryBoard<unknown>
  readonly #space: MemorySpace

  constructor(board: MemoryBoard<unknown>, space: MemorySpace) {
    this.#board = board
    this.#space = space
  }

  async open(sink: BackendSink): Promise<void> {
    const session = this.#space.newSession()
    this.#board.begin({ sink, session })
    sink.session({ state: 'connected', session })
    sink.paused(this.#space.signals.paused)
  }

  async close(): Promise<void> {
    const open = this.#board.end()
    if (!open) return
    // The owner is notified first: it must know before another board can claim.
    open.sink.session({ state: 'closed', session: open.session })
    this.#space.endSession(open.session)
  }

  /** Returns a watch that does nothing: a session of this backend lasts as long as the board object. */
  watchLease(): LeaseWatch {
    return { whenAlive: () => undefined, [Symbol.dispose]: () => undefined }
  }

  isAlive(session: string): boolean {
    return this.#board.open?.session === session
  }

  leftMs(): number {
    return Number.POSITIVE_INFINITY
  }
}

export class MemoryClock implements BackendClock {
  readonly alarms: AlarmClock

  constructor(alarms: AlarmClock) {
    this.alarms = alarms
  }

  now(): number {
    return this.alarms.now()
  }

  async read(): Promise<void> {
    // The board uses the clock of this process, which needs no request.
  }
}
