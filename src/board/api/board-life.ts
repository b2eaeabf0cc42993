/** Opens and closes a board: its session, and with it what depends on the session. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { followSignals, isSettledWithin } from '../../core/async/abort.ts'
import type { Lifecycle } from '../../core/async/lifecycle.ts'
import { InvalidState } from '../../core/errors.ts'
import type { HeldClaims } from '../claims/held-claims.ts'
import type { Backend } from '../contract/index.ts'
import type { PostSettings } from '../settings/post-settings.ts'
import type { LiveView } from '../view/live-view.ts'
import type { BackendEventRouter } from './events/backend-event-router.ts'

/** The time that a close waits for the settings of flows: servers that are away do not answer. */
const SETTINGS_LIMIT_MS = 1_000

export interface BoardLifeOptions {
  readonly lifecycle: Lifecycle
  readonly backend: Pick<Backend, 'session' | 'uri'>
  readonly router: Pick<BackendEventRouter, 'sink'>
  readonly held: Pick<HeldClaims, 'loseAll'>
  readonly view: Pick<LiveView, 'close'>
  readonly postSettings: Pick<PostSettings, 'whenKnown' | 'whenIdle'>
}

/** The beginning and the end of one open board. */
export class BoardLife {
  readonly #options: BoardLifeOptions

  constructor(options: BoardLifeOptions) {
    this.#options = options
  }

  /** Resolves when the board is connected. */
  open({ signal }: { readonly signal?: AbortSignal }): Promise<void> {
    const { lifecycle, backend, router, postSettings } = this.#options
    return lifecycle.start(
      async (stopped) => {
        using either = followSignals([stopped, signal])
        await backend.session.open(router.sink, either)
        // The first post need not wait for it. If it fails, the post tries again.
        postSettings.whenKnown()?.catch(() => undefined)
      },
      () => backend.session.close(),
    )
  }

  /** Ends the session, and with it every claim that was not settled. Idempotent. */
  close(): Promise<void> {
    const { lifecycle, backend, held, view, postSettings } = this.#options
    return lifecycle.stop(async () => {
      // Posts that wait for the settings were called before, and are sent first.
      await isSettledWithin(SETTINGS_LIMIT_MS, postSettings.whenIdle())
      await nextTurn()
      await backend.session.close()
      held.loseAll('the board was closed')
      view.close(new InvalidState(`board ${backend.uri} was closed`))
    })
  }
}
