/** Opens and closes a board: its session, and with it what depends on the session. */
import { followSignals } from '../../core/async/abort.ts'
import type { Lifecycle } from '../../core/async/lifecycle.ts'
import { InvalidState } from '../../core/errors.ts'
import type { HeldClaims } from '../claims/held-claims.ts'
import type { Backend } from '../contract/index.ts'
import type { LiveView } from '../view/live-view.ts'
import type { BackendEventRouter } from './events/backend-event-router.ts'

export interface BoardLifeOptions {
  readonly lifecycle: Lifecycle
  readonly backend: Pick<Backend, 'session' | 'uri'>
  readonly router: Pick<BackendEventRouter, 'sink'>
  readonly held: Pick<HeldClaims, 'loseAll'>
  readonly view: Pick<LiveView, 'close'>
}

/** The beginning and the end of one open board. */
export class BoardLife {
  readonly #options: BoardLifeOptions

  constructor(options: BoardLifeOptions) {
    this.#options = options
  }

  /** Resolves when the board is connected. */
  open({ signal }: { readonly signal?: AbortSignal }): Promise<void> {
    const { lifecycle, backend, router } = this.#options
    return lifecycle.start(
      async (stopped) => {
        using either = followSignals([stopped, signal])
        await backend.session.open(router.sink, either)
      },
      () => backend.session.close(),
    )
  }

  /** Ends the session, and with it every claim that was not settled. Idempotent. */
  close(): Promise<void> {
    const { lifecycle, backend, held, view } = this.#options
    return lifecycle.stop(async () => {
      await backend.session.close()
      held.loseAll('the board was closed')
      view.close(new InvalidState(`board ${backend.uri} was closed`))
    })
  }
}
