/** Views a board for callers, and calls their listeners. */
import { followSignals } from '../../../core/async/abort.ts'
import type { Lifecycle } from '../../../core/async/lifecycle.ts'
import type { LiveView } from '../../view/live-view.ts'
import type { BoardEvents, ErrorReporter } from './events.ts'

/** The events whose listeners do not open the view. */
const EVENTS_WITHOUT_VIEW: ReadonlySet<keyof BoardEvents> = new Set(['error', 'state', 'notifications', 'emptied'])

export interface ViewingOptions {
  readonly lifecycle: Lifecycle
  readonly view: LiveView
  readonly errorReporter: ErrorReporter
}

/** The view and the events of a board, as its users open them. */
export class Viewing {
  readonly #options: ViewingOptions

  constructor(options: ViewingOptions) {
    this.#options = options
  }

  /** Calls `listener` for each event until the returned function is called: see `JobBoard.on`. */
  on<E extends keyof BoardEvents>(event: E, listener: (event: BoardEvents[E]) => unknown): () => void {
    const { lifecycle, view, errorReporter } = this.#options
    const off = errorReporter.events.on(event, listener)
    if (event === 'error') errorReporter.errorListenerAdded()
    if (EVENTS_WITHOUT_VIEW.has(event) || lifecycle.state !== 'running') return off
    const held = view.hold()
    if (event === 'posted') view.announceAll()
    if (event === 'unaccepted') view.unaccepted.start()
    return () => {
      off()
      held[Symbol.dispose]()
    }
  }

  /** Resolves when the board is viewed; it is viewed until the result is disposed. @throws NotConnected, AccessDenied */
  async open({ signal }: { readonly signal?: AbortSignal }): Promise<Disposable> {
    const { lifecycle, view } = this.#options
    const held = view.hold()
    using either = followSignals([lifecycle.signal, signal])
    try {
      await view.whenEntered(either)
      return held
    } catch (error) {
      held[Symbol.dispose]()
      throw error
    }
  }
}
