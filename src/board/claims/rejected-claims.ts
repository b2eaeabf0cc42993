/**
 * What becomes of places whose claim was refused. Most refusals are news that the view has heard already: another was
 * faster, and the place is not chosen again. What would be chosen again at once, for ever, rests or is hidden.
 */
import {
  ClaimLost,
  InvalidState,
  JobboardError,
  NotConnected,
  NotFound,
  OutcomeUnknown,
  Unclaimable,
} from '../../core/errors.ts'
import type { JobEntry, QueueEntry } from '../model/entry.ts'
import type { LiveView } from '../view/live-view.ts'

/** How long a job rests, in milliseconds, whose claim a server refused because of its own troubles. */
const RETRY_PAUSE_MS = 500
/** The longest rest of one that is refused again and again. */
const MAX_RETRY_PAUSE_MS = 10_000
/** So often a claim may be refused while nothing that is known speaks against it: what does may be on its way. */
const MAX_UNEXPLAINED_REJECTIONS = 3

export interface RejectedClaimsOptions {
  readonly view: LiveView
  /** Whether anything may be claimed at all: where not, that explains a refusal. */
  readonly canClaim: () => boolean
  readonly onError: (error: Error) => void
}

export class RejectedClaims {
  readonly #options: RejectedClaimsOptions
  /** How often they were refused while nothing that is known spoke against them; a change makes another place of it. */
  readonly #unexplained = new WeakMap<QueueEntry, number>()
  readonly #paused = new WeakSet<QueueEntry>()
  /** The fault of the board that was reported last. */
  #boardFault: string | undefined

  constructor(options: RejectedClaimsOptions) {
    this.#options = options
  }

  /** The claim of `place` was refused with `error`. */
  rejected(place: QueueEntry, error: Error): void {
    if (isExpectedRejection(error)) this.#pauseIfUnexplained(place)
    else if (error instanceof InvalidState) this.#restForBoard(place, error)
    else if (error instanceof JobboardError && error.retryable) this.#pauseJob(place, RETRY_PAUSE_MS)
    else this.#hide(place.entry, error)
  }

  /** The board grants no claims until it is repaired, which is no fault of the job: it is tried again, and the error reported once. */
  #restForBoard(place: QueueEntry, error: InvalidState): void {
    if (this.#boardFault !== error.message) this.#options.onError(error)
    this.#boardFault = error.message
    this.#pauseJob(place, MAX_RETRY_PAUSE_MS / 10)
  }

  /** They may be chosen again, but for those that rest. */
  release(places: readonly QueueEntry[]): void {
    this.#options.view.queue.release(places.filter((place) => !this.#paused.has(place)))
    // Whoever found nothing because these were being tried looks again.
    this.#options.view.changed.notify()
  }

  /**
   * A refusal is explained by what has been told: another has the job, or its resource. One that is not, because a permit
   * was left behind by hand say, would come back at once, for ever, and each costs the servers a transaction.
   */
  #pauseIfUnexplained(place: QueueEntry): void {
    const { entry, blockerCount } = place
    if (entry.queueEntry !== place || blockerCount > 0 || entry.content !== 'fresh' || !this.#options.canClaim()) return
    const times = (this.#unexplained.get(place) ?? 0) + 1
    this.#unexplained.set(place, times)
    if (times >= MAX_UNEXPLAINED_REJECTIONS)
      this.#pauseJob(place, Math.min(MAX_RETRY_PAUSE_MS, RETRY_PAUSE_MS * 2 ** (times - MAX_UNEXPLAINED_REJECTIONS)))
  }

  #pauseJob(place: QueueEntry, milliseconds: number): void {
    this.#paused.add(place)
    setTimeout(() => {
      this.#paused.delete(place)
      this.release([place])
    }, milliseconds).unref()
  }

  /** Nobody here can claim it, and choosing it again at once would never end. */
  #hide(entry: JobEntry, error: Error): void {
    entry.content = 'unreadable'
    this.#options.view.queue.update(entry)
    this.#options.onError(error)
  }
}

/** Answers that the view hears about, or that a connection's return changes: choosing again is right. */
function isExpectedRejection(error: Error): boolean {
  return [Unclaimable, NotFound, NotConnected, OutcomeUnknown, ClaimLost].some((known) => error instanceof known)
}
