/**
 * Pauses and resumes a board, or one of its queues, and records who has done so. The pause of a queue stops the limit `queue/NAME`. Every job of the
 * queue has this limit, and each claim checks limits in its transaction.
 */
import { asError } from '../../core/errors.ts'
import { assertOptions, defined } from '../../core/options.ts'
import type { Backend } from '../contract/index.ts'
import type { Limits } from '../limits/limits.ts'
import { isQueueKey, queueLimitKey, toQueueOfKey } from '../model/limits.ts'
import type { BoardRecords } from '../records/board-records.ts'
import {
  assertPauseOptions,
  assertQueueOption,
  type BoardPause,
  type PauseOptions,
  type QueuePause,
  readPause,
  removePause,
  writePause,
} from '../records/pause-record.ts'
import type { LiveView } from '../view/live-view.ts'
import type { BackendEventRouter } from './events/backend-event-router.ts'

/** The options of `board.resume`. */
export interface ResumeOptions {
  /** The queue whose pause ends; by default the pause of the board ends. */
  readonly queue?: string | undefined
}

export interface PausingOptions {
  readonly backend: Pick<Backend, 'clock' | 'signals' | 'shared'>
  readonly view: Pick<LiveView, 'isOpen'>
  readonly records: BoardRecords
  readonly limits: Pick<Limits, 'stop' | 'resume' | 'list'>
  readonly router: Pick<BackendEventRouter, 'paused' | 'sink'>
  readonly who: string
  readonly onError: (error: Error) => void
}

/** Pauses and resumes a board or a queue. */
export class Pausing {
  readonly #options: PausingOptions

  constructor(options: PausingOptions) {
    this.#options = options
  }

  /** Pauses the board, or a queue, and records this. @throws InvalidArgument */
  async pause(options: PauseOptions): Promise<void> {
    assertPauseOptions(options)
    const { backend, records, limits, router, who, onError } = this.#options
    const { queue, ...origin } = options
    if (queue !== undefined) return limits.stop(queueLimitKey(queue), defined({ by: who, ...defined(origin) }))
    const wasPaused = router.paused
    await this.#setGate({ paused: true })
    const { by = who, reason } = options
    const record = { by, at: backend.clock.now(), ...defined({ reason }) }
    // By now the board is paused: a rejection would tell the caller that nothing was done.
    await writePause(records, record, { isPaused: wasPaused }).catch((error: unknown) => onError(asError(error)))
  }

  /** Resumes the board, or a queue, and removes the record. @throws InvalidArgument */
  async resume(options: ResumeOptions = {}): Promise<void> {
    assertOptions<ResumeOptions>(options, { queue: true }, 'resume')
    const { queue } = options
    assertQueueOption(queue, 'resume')
    const { records, limits, onError } = this.#options
    if (queue !== undefined) {
      await limits.resume(queueLimitKey(queue))
      return
    }
    await this.#setGate({ paused: false })
    await removePause(records).catch((error: unknown) => onError(asError(error)))
  }

  /** Returns who has paused the board; undefined if it is not paused, or if this was not recorded. */
  async origin(): Promise<BoardPause | undefined> {
    const { records, router } = this.#options
    return router.paused ? readPause(records) : undefined
  }

  /** Returns the queues and patterns of queues that are paused, with who has paused them, when and why. */
  async queues(): Promise<readonly QueuePause[]> {
    const { backend, limits } = this.#options
    // A board that is shared with TaskFlow has no limits.
    if (backend.shared) return []
    return (await limits.list()).flatMap(({ key, held }) => {
      if (!held || !isQueueKey(key)) return []
      const { by, since, reason } = held
      return { queue: toQueueOfKey(key), by, since, ...defined({ reason }) }
    })
  }

  async #setGate({ paused }: { readonly paused: boolean }): Promise<void> {
    const { backend, view, router } = this.#options
    await backend.signals.setPaused(paused)
    // An open view has received the change already.
    if (!view.isOpen) router.sink.paused(paused)
  }
}
