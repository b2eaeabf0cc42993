/** What the backend tells of the board and of the session: kept for who asks, and passed on to whom it concerns. */
import type { SessionEvent, SessionState, Sink } from './backend.ts'
import type { HeldClaims } from './claims/held-claims.ts'
import type { EntityRegistry } from './entity-registry.ts'
import type { Faults } from './faults.ts'
import type { LiveView } from './view/live-view.ts'

export interface NewsOptions {
  readonly view: LiveView
  readonly claims: HeldClaims
  readonly entities: EntityRegistry
  readonly faults: Faults
  readonly failed: (error: Error) => void
}

export class News {
  /** What the backend is given. */
  readonly sink: Sink
  readonly #options: NewsOptions
  #session: SessionEvent | undefined
  /** Undefined until it is known. */
  #paused: boolean | undefined

  constructor(options: NewsOptions) {
    this.#options = options
    const { view, failed } = options
    this.sink = {
      changes: (batch) => view.apply(batch),
      gap: () => view.resync(),
      counted: (jobs) => view.counted(jobs),
      holds: (uuid) => view.mayHold(uuid),
      paused: (paused) => this.#pausedChanged(paused),
      session: (event) => this.#sessionChanged(event),
      error: failed,
    }
  }

  get state(): SessionState {
    return this.#session?.state ?? 'closed'
  }

  /** Whether the board grants no claims, as far as this process knows. */
  get paused(): boolean {
    return this.#paused === true
  }

  #pausedChanged(paused: boolean): void {
    const { claims, view } = this.#options
    this.#paused = paused
    claims.pausedChanged(paused)
    view.changed.notify()
  }

  #sessionChanged(event: SessionEvent): void {
    const { claims, view, entities, faults, failed } = this.#options
    this.#session = event
    claims.sessionChanged(event)
    if (event.state === 'connected') {
      entities.connected(event.session).catch(failed)
    }
    faults.events.emit('state', { state: event.state, ...(event.reason ? { reason: event.reason } : {}) })
    view.changed.notify()
  }
}
