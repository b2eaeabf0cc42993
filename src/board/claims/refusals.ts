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
import type { Entry, Place } from '../entry.ts'
import type { LiveView } from '../view/live-view.ts'

/** How long a job rests, in milliseconds, whose claim a server refused because of its own troubles. */
const PAUSE = 500
/** The longest rest of one that is refused again and again. */
const LONGEST_PAUSE = 10_000
/** So often a claim may be refused while nothing that is known speaks against it: what does may be on its way. */
const UNEXPLAINED = 3

export interface RefusalsOptions {
  readonly view: LiveView
  /** Whether anything may be claimed at all: where not, that explains a refusal. */
  readonly open: () => boolean
  readonly failed: (error: Error) => void
}

export class Refusals {
  readonly #options: RefusalsOptions
  /** How often they were refused while nothing that is known spoke against them; a change makes another place of it. */
  readonly #unexplained = new WeakMap<Place, number>()
  readonly #resting = new WeakSet<Place>()
  /** The fault of the board that was reported last. */
  #boardFault: string | undefined

  constructor(options: RefusalsOptions) {
    this.#options = options
  }

  /** The claim of `place` was refused with `error`. */
  refused(place: Place, error: Error): void {
    if (isNews(error)) this.#restIfUnexplained(place)
    else if (error instanceof InvalidState) this.#restForBoard(place, error)
    else if (error instanceof JobboardError && error.retryable) this.#rest(place, PAUSE)
    else this.#hide(place.entry, error)
  }

  /** The board grants no claims until it is repaired, which is no fault of the job: it is tried again, and the error reported once. */
  #restForBoard(place: Place, error: InvalidState): void {
    if (this.#boardFault !== error.message) this.#options.failed(error)
    this.#boardFault = error.message
    this.#rest(place, LONGEST_PAUSE / 10)
  }

  /** They may be chosen again, but for those that rest. */
  release(places: readonly Place[]): void {
    this.#options.view.queue.release(places.filter((place) => !this.#resting.has(place)))
    // Whoever found nothing because these were being tried looks again.
    this.#options.view.changed.notify()
  }

  /**
   * A refusal is explained by what has been told: another has the job, or its resource. One that is not, because a permit
   * was left behind by hand say, would come back at once, for ever, and each costs the servers a transaction.
   */
  #restIfUnexplained(place: Place): void {
    const { entry, blocks } = place
    if (entry.place !== place || blocks > 0 || entry.content !== 'fresh' || !this.#options.open()) return
    const times = (this.#unexplained.get(place) ?? 0) + 1
    this.#unexplained.set(place, times)
    if (times >= UNEXPLAINED) this.#rest(place, Math.min(LONGEST_PAUSE, PAUSE * 2 ** (times - UNEXPLAINED)))
  }

  #rest(place: Place, milliseconds: number): void {
    this.#resting.add(place)
    setTimeout(() => {
      this.#resting.delete(place)
      this.release([place])
    }, milliseconds).unref()
  }

  /** Nobody here can claim it, and choosing it again at once would never end. */
  #hide(entry: Entry, error: Error): void {
    entry.content = 'unreadable'
    this.#options.view.queue.update(entry)
    this.#options.failed(error)
  }
}

/** Answers that the view hears about, or that a connection's return changes: choosing again is right. */
function isNews(error: Error): boolean {
  return [Unclaimable, NotFound, NotConnected, OutcomeUnknown, ClaimLost].some((known) => error instanceof known)
}
