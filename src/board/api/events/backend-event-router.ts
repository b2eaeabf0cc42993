/** Routes the reports of the backend to the view, the claims, the entities and the listeners, and keeps the newest state. */

import type { ClaimParts } from '../../claims/assemble-claims.ts'
import type { BackendSink, BoardSessionEvent, SessionState } from '../../contract/index.ts'
import type { LimitBook } from '../../limits/limit-book.ts'
import type { BoardRecords } from '../../records/board-records.ts'
import type { EntityRegistry } from '../../records/entity-registry.ts'
import type { PostSettings } from '../../settings/post-settings.ts'
import type { LiveView } from '../../view/live-view.ts'
import type { BatchWaits } from '../batches/batch-waits.ts'
import type { ErrorReporter } from './events.ts'
import type { HealthCounters } from './health-counters.ts'

export interface BackendEventRouterOptions {
  readonly view: LiveView
  readonly claims: Pick<ClaimParts, 'session' | 'held' | 'settler'>
  readonly entities: EntityRegistry
  readonly records: BoardRecords
  readonly limitBook: Pick<LimitBook, 'readAnew'>
  readonly postSettings: Pick<PostSettings, 'forget'>
  /** The board, for the log. */
  readonly uri: string
  readonly errorReporter: ErrorReporter
  readonly healthCounters: HealthCounters
  /** Receives the hints that batches have changed. */
  readonly batches: Pick<BatchWaits, 'onHint'>
  readonly onError: (error: Error) => void
}

export class BackendEventRouter {
  /** The sink that the backend reports to. */
  readonly sink: BackendSink
  readonly #options: BackendEventRouterOptions
  #session: BoardSessionEvent | undefined
  /** Whether the board is paused; undefined until it is known. */
  #paused: boolean | undefined

  constructor(options: BackendEventRouterOptions) {
    this.#options = options
    const { view, claims, records, batches, healthCounters, limitBook, postSettings, onError } = options
    this.sink = {
      changes: (batch) => view.apply(batch),
      followed: (batch) => view.follower.onChanges(batch),
      gap: () => {
        view.resync()
        records.onGap()
        batches.onHint()
      },
      batchChanged: (uuid) => batches.onHint(uuid),
      records: (names) => records.onHints(names),
      jobCount: (jobs) => view.setJobCount(jobs),
      doomed: (ids) => claims.settler.doomed.add(ids),
      mayExist: (uuid) => view.mayContain(uuid),
      paused: (paused) => this.#pausedChanged(paused),
      session: (event) => this.#sessionChanged(event),
      health: (event) => {
        if (event === 'emptied') {
          postSettings.forget()
          void limitBook.readAnew()
        }
        healthCounters.note(event)
      },
      error: onError,
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
    claims.session.pausedChanged(paused)
    view.changed.notify()
  }

  #sessionChanged(event: BoardSessionEvent): void {
    const { claims, view, entities, errorReporter, onError, uri } = this.#options
    this.#session = event
    claims.session.sessionChanged(event)
    if (event.state === 'lost' || event.state === 'closed') claims.held.loseAll(`the session with ${uri} is over`)
    if (event.state === 'connected') {
      entities.sessionStarted(event.session).catch(onError)
    }
    errorReporter.stateChanged(event, uri)
    view.changed.notify()
  }
}
