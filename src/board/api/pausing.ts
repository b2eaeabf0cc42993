/** Pauses and resumes a board, and records who has paused it. */
import { asError } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import type { Backend } from '../contract/index.ts'
import type { BoardRecords } from '../records/board-records.ts'
import {
  assertPauseOptions,
  type BoardPause,
  type PauseOptions,
  readPause,
  removePause,
  writePause,
} from '../records/pause-record.ts'
import type { LiveView } from '../view/live-view.ts'
import type { BackendEventRouter } from './events/backend-event-router.ts'

export interface PausingOptions {
  readonly backend: Pick<Backend, 'clock' | 'signals'>
  readonly view: Pick<LiveView, 'isOpen'>
  readonly records: BoardRecords
  readonly router: Pick<BackendEventRouter, 'paused' | 'sink'>
  readonly who: string
  readonly onError: (error: Error) => void
}

/** The pause of a board. */
export class Pausing {
  readonly #options: PausingOptions

  constructor(options: PausingOptions) {
    this.#options = options
  }

  /** Pauses the board, and records this. @throws InvalidArgument */
  async pause(options: PauseOptions): Promise<void> {
    assertPauseOptions(options)
    const { backend, records, router, who, onError } = this.#options
    const isPaused = router.paused
    await this.#setGate({ paused: true })
    const { by = who, reason } = options
    const record = { by, at: backend.clock.now(), ...defined({ reason }) }
    // The board is paused already: a rejection would mean to the caller that nothing was done.
    await writePause(records, record, { isPaused }).catch((error: unknown) => onError(asError(error)))
  }

  /** Resumes the board, and removes the record. */
  async resume(): Promise<void> {
    const { records, onError } = this.#options
    await this.#setGate({ paused: false })
    await removePause(records).catch((error: unknown) => onError(asError(error)))
  }

  /** Returns who has paused the board; undefined if it is not paused, or if this was not recorded. */
  async origin(): Promise<BoardPause | undefined> {
    const { records, router } = this.#options
    return router.paused ? readPause(records) : undefined
  }

  async #setGate({ paused }: { readonly paused: boolean }): Promise<void> {
    const { backend, view, router } = this.#options
    await backend.signals.setPaused(paused)
    // A view receives the change before this answer.
    if (!view.isOpen) router.sink.paused(paused)
  }
}
