/**
 * Applies a listing of the board to the index: after the view was opened, and after each gap in the changes. What the listing does not show
 * has ended, or is outside the window; everything that it shows has to be read again, because it may have changed.
 */
import type { BoardChange, JobSummary } from '../contract/index.ts'
import type { JobEntry, WindowStatus } from '../model/entry.ts'
import type { JobIndex } from './job-index.ts'
import type { ViewListing } from './window.ts'

/** The number of jobs of a listing that are applied at once, which takes some 10 ms. */
const LISTING_SLICE = 2_000

export class ListingApplier {
  readonly #index: JobIndex
  readonly #slice: number
  /** Whether the board was listed since the view was opened. */
  #isListed = false

  /** @param options.slice the number of jobs of a listing that are applied at once; 2,000 by default */
  constructor(index: JobIndex, { slice = LISTING_SLICE }: { readonly slice?: number } = {}) {
    this.#index = index
    this.#slice = slice
  }

  /** Prepares for the first listing of a view that was just opened. */
  open(): void {
    this.#isListed = false
  }

  /** Returns the ids to ask the backend about when the board is listed. */
  knownIds(): string[] {
    // Entries without a posting are left out: their post may not be committed.
    const held = this.#index.outside.all().filter(({ stored }) => stored)
    return [...this.#index.entries(), ...held].map(({ id }) => id ?? '')
  }

  /**
   * Applies a listing of the board. The caller has set the bounds of the window to the bounds of the listing.
   *
   * Yields between slices of the listing: in one step, a long board would block the event loop for half a second. Until the end, the
   * caller keeps all changes and applies none. A caller that stops earlier has to list the board again.
   *
   * @param changes the changes since the gap; what the first listing shows without one of them has happened before the view was opened
   */
  *apply(listing: ViewListing, changes: readonly BoardChange[]): Generator<void, void, undefined> {
    const isFirst = !this.#isListed
    const changed = new Set(changes.map(({ id }) => id))
    const posted = new Set(changes.flatMap(({ kind, id }) => (kind === 'posted' ? [id] : [])))
    this.#applyUnlisted(listing, { isEarlier: (id) => isFirst && !changed.has(id) })
    for (const [at, id] of listing.jobs.entries()) {
      if (at > 0 && at % this.#slice === 0) yield
      this.#index.isEarlier = isFirst && !changed.has(id)
      this.#applyListed(id, listing, { wasThere: isFirst && !posted.has(id) })
      this.#index.isEarlier = false
    }
    this.#isListed = true
  }

  /** Handles known jobs that are not in the listing: they have left the board, are outside the window, or have to be read. */
  #applyUnlisted(listing: ViewListing, { isEarlier }: { readonly isEarlier: (id: string) => boolean }): void {
    const index = this.#index
    const { window } = listing
    const listed = new Set(listing.jobs)
    for (const entry of [...index.entries()]) {
      const { id = '', postedDuringResync: newer } = entry
      index.isEarlier = isEarlier(id)
      if (listed.has(id)) continue
      entry.postedDuringResync = false
      // The listing did not ask about jobs that entered the view after it began.
      if (newer || (window && !window.asked.has(id))) index.toRead.add(entry)
      else if (!window?.outside.has(id)) this.#endUnlisted(entry, id, listing)
      else if (index.window?.pinned.has(entry)) this.#keepPinned(entry)
      else index.moveOutside(entry)
    }
    for (const entry of index.outside.all()) {
      if (!entry.stored || entry.id === undefined || listed.has(entry.id)) continue
      index.isEarlier = isEarlier(entry.id)
      // The job was read since the listing began: it was on the board then, and later changes are reported.
      if (window && !window.asked.has(entry.id)) continue
      if (window?.outside.has(entry.id)) {
        entry.content = 'stale'
        // Claimed jobs are all listed.
        index.setReleased(entry)
      } else this.#endUnlisted(entry, entry.id, listing)
    }
    index.isEarlier = false
  }

  /** @param options.wasThere whether the job was posted before the view was opened: `posted` is not emitted for it */
  #applyListed(
    id: string,
    { window, claimed, cancelled }: ViewListing,
    { wasThere }: { readonly wasThere: boolean },
  ): void {
    const index = this.#index
    const summary = window?.summaries.get(id)
    const known = index.get(id)
    const status = this.#statusOfListed(summary)
    const entry = known ?? index.add(id, status)
    if (wasThere && !entry.postedDuringResync) entry.entered = index.isEarlier ? 'earlier' : 'late'
    entry.postedDuringResync = false
    if (summary) entry.queueKey = summary
    entry.trashing = false
    index.outdate(entry)
    if (known) index.setWindowStatus(entry, status)
    if (claimed.has(id)) index.setClaimed(entry)
    else index.setReleased(entry)
    if (cancelled.has(id)) index.setCancelled(entry)
  }

  #statusOfListed(summary: JobSummary | undefined): WindowStatus {
    const { window } = this.#index
    const status = window && summary ? window.judge(summary) : 'inside'
    return status === 'outside' ? 'pinned' : status
  }

  /** Keeps a pinned job in the view although it is outside the window. */
  #keepPinned(entry: JobEntry): void {
    this.#index.setWindowStatus(entry, 'pinned')
    this.#index.setReleased(entry)
    this.#index.outdate(entry)
  }

  #endUnlisted(entry: JobEntry, id: string, { trashed }: ViewListing): void {
    entry.trashing ||= trashed.has(id)
    this.#index.end(entry, id)
  }
}
