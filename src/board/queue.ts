/**
 * What is claimable next: one incremental function over the live view. An entry stands in the queue while it is on the
 * board, unclaimed, and its content is known as it is now. Taking walks in claim order past what the caller does not
 * accept and past what is being tried already.
 */
import { isSuspect } from './attempts.ts'
import { ClaimOrder } from './claim-order.ts'
import type { Entry, Place } from './entry.ts'
import type { Posting } from './posting.ts'

export interface Wanted {
  /** At most so many. */
  readonly max: number
  readonly accept: (posting: Posting) => boolean
  /** Whether this process runs a suspect already and must not take another. */
  readonly suspectHeld: boolean
}

export class ClaimQueue {
  readonly #places = new ClaimOrder<Place>()

  get size(): number {
    return this.#places.size
  }

  /** Puts the entry where it belongs now, or takes it out. */
  update(entry: Entry): void {
    const { stored, place } = entry
    const belongs = stored !== undefined && entry.content === 'fresh' && !entry.claimed && !entry.ended
    if (place && belongs && place.stored === stored) return
    if (place) {
      this.#places.delete(place)
      entry.place = undefined
    }
    if (!belongs) return
    entry.place = { id: stored.id, priority: stored.posting.priority, order: stored.order, entry, stored }
    this.#places.add(entry.place)
  }

  /** The first that are claimable. They count as being tried until {@link release}. */
  take(wanted: Wanted): Place[] {
    const taken: Place[] = []
    let { suspectHeld } = wanted
    for (const place of this.#places) {
      if (taken.length >= wanted.max) break
      const { posting } = place.stored
      if (place.entry.chosen || !wanted.accept(posting)) continue
      if (isSuspect(posting)) {
        if (suspectHeld) continue
        suspectHeld = true
      }
      taken.push(place)
    }
    // Not before all were looked at: what `accept` throws must leave nothing chosen.
    for (const { entry } of taken) entry.chosen = true
    return taken
  }

  /** Whether there is anything to take. */
  has(accept: (posting: Posting) => boolean): boolean {
    for (const place of this.#places) {
      if (!place.entry.chosen && accept(place.stored.posting)) return true
    }
    return false
  }

  release(places: readonly Place[]): void {
    for (const place of places) place.entry.chosen = false
  }
}
