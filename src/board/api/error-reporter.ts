/** What fails in the background, and listeners that throw: logged, and told to whoever listens for errors. */
import { asError } from '../../core/errors.ts'
import { Emitter } from '../../core/events.ts'
import type { Logger } from '../../core/log.ts'
import type { BoardEvents } from './events.ts'

const BOARD_EVENTS: Readonly<Record<keyof BoardEvents, true>> = {
  posted: true,
  claimed: true,
  abandoned: true,
  consumed: true,
  trashed: true,
  unaccepted: true,
  state: true,
  error: true,
}

export class ErrorReporter {
  readonly events: Emitter<BoardEvents>
  readonly #log: Logger
  /** What failed while nobody could listen yet; the first listener for errors is told. */
  #unreported: Error[] | undefined = []

  constructor(log: Logger) {
    this.#log = log
    this.events = new Emitter((error, event) => this.#listenerFailed(error, event), { events: BOARD_EVENTS })
  }

  /** @param options.opening nobody can listen to a board that is being opened */
  report(error: Error, options: { opening: boolean }): void {
    this.#log.warn({ err: error }, 'jobboard: a fault in the background')
    if (options.opening) this.#unreported?.push(error)
    this.events.emit('error', { error })
  }

  /** Somebody listens for errors from now on. */
  errorListenerAdded(): void {
    queueMicrotask(() => {
      const unheard = this.#unreported ?? []
      this.#unreported = undefined
      for (const error of unheard) this.events.emit('error', { error })
    })
  }

  #listenerFailed(thrown: unknown, event: keyof BoardEvents): void {
    const error = asError(thrown)
    this.#log.error({ err: error, event }, 'jobboard: a listener threw')
    // A listener for errors that throws must not be called about it for ever.
    if (event !== 'error') this.events.emit('error', { error })
  }
}
