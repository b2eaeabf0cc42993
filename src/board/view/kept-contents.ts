/**
 * Which postings stay in memory: all, until together they are larger than `viewBytes`. Then some are given up, but for their
 * outlines, and read again before they are claimed. Which ones changes what claiming costs, never who comes first: that is
 * the queue's affair, which lets nothing past a posting that is missing.
 *
 * **Given up** is first what cannot be taken now (it rests, or waits for a resource), then what can; each from the end of
 * the claim order. A little more than has to be, so that it is not done again for every job that comes. What comes behind
 * one that is missing goes at once, while there is little room: what is nearer to its turn is to have it.
 *
 * **Read again** is only what somebody here would claim: who merely looks at a long queue does not read it twice. It is read
 * ahead, while there is room. Where nothing is left to be claimed it is read whether there is room or not, and then it is
 * not counted, and not given up again, before it is claimed or gone; else it would be given up and read for ever.
 */

import { InvalidArgument } from '../../core/errors.ts'
import { compareClaimOrder } from '../claim-order.ts'
import type { Entry, WholePlace } from '../entry.ts'
import { isWhole, outlined } from '../outline.ts'
import { type ClaimQueue, isWholePlace, type Wanted } from '../queue/queue.ts'
import type { ContentReader } from './content-reader.ts'

/** Parts of the limit. Down to this it is reduced when it is exceeded, and up to this it is filled when there is room. */
const FULL = 7 / 8
/** Below this there is room. */
const ROOMY = 3 / 4
/** Below this, what comes behind one that is missing is kept all the same. */
const EMPTY = 1 / 2
/** How much is read at once for one who has nothing to claim, in bytes. */
const URGENT = 1_024 * 1_024

const DEFAULT_LIMIT = 64 * 1_024 * 1_024

export interface KeptContentsOptions {
  /** In bytes of encoded postings; 64 MiB by default. */
  readonly limit?: number | undefined
  readonly queue: ClaimQueue
  readonly entries: () => Iterable<Entry>
  /** Reads what was given up. */
  readonly reader: Pick<ContentReader, 'busy' | 'want'>
  /** An outline could not be made of its posting: it is shown to nobody as claimable any more. */
  readonly unusable: (entry: Entry, error: Error) => void
}

export class KeptContents {
  readonly #limit: number
  readonly #queue: ClaimQueue
  readonly #entries: () => Iterable<Entry>
  readonly #reader: Pick<ContentReader, 'busy' | 'want'>
  readonly #unusable: (entry: Entry, error: Error) => void
  /** What was read for one who had nothing to claim, and how large it is. */
  readonly #needed = new Map<Entry, number>()
  #neededBytes = 0

  /** @throws InvalidArgument for a limit that is no number of bytes */
  constructor(options: KeptContentsOptions) {
    const { limit = DEFAULT_LIMIT } = options
    if (typeof limit !== 'number' || !(limit >= 0))
      throw new InvalidArgument(`viewBytes is ${limit}; it has to be a number of bytes`)
    this.#limit = limit
    this.#queue = options.queue
    this.#entries = options.entries
    this.#reader = options.reader
    this.#unusable = options.unusable
  }

  /** The posting was read because it is new or has changed, not because somebody needs it. */
  arrived(entry: Entry): void {
    const { firstMissing } = this.#queue
    const { place } = entry
    if (!firstMissing || !place || place.stance === 'holding' || this.#needed.has(entry)) return
    if (this.#bytes >= this.#limit * EMPTY && compareClaimOrder(firstMissing, place) < 0) this.#giveUp(entry)
  }

  /** It was claimed, or has gone: from then on it is none of those that are kept for a claim. */
  left(entry: Entry): void {
    const bytes = this.#needed.get(entry)
    if (bytes === undefined) return
    this.#needed.delete(entry)
    this.#neededBytes -= bytes
  }

  /** Gives up what is too much. To be called after changes; costs nothing below the limit. */
  trim(): void {
    if (this.#bytes <= this.#limit) return
    let excess = this.#bytes - this.#limit * FULL
    const dispensable: Entry[] = []
    for (const { entry, stored } of this.#leastNeededFirst()) {
      if (excess <= 0) break
      if (this.#needed.has(entry)) continue
      dispensable.push(entry)
      excess -= stored.bytes
    }
    for (const entry of dispensable) this.#giveUp(entry)
  }

  /**
   * Reads what comes next for one who claims. Costs nothing while nothing is missing.
   *
   * @param options.starved there is nothing else to claim
   */
  readAhead(wanted: Pick<Wanted, 'accept' | 'suspectHeld'>, { starved }: { readonly starved: boolean }): void {
    if (!this.#queue.firstMissing || this.#reader.busy) return
    const room = this.#bytes < this.#limit * ROOMY ? this.#limit * FULL - this.#bytes : 0
    if (room === 0 && !starved) return
    const urgent = Math.min(URGENT, this.#limit / 4)
    let bytes = 0
    for (const { entry, stored } of this.#queue.missing(wanted)) {
      const first = bytes === 0
      bytes += stored.bytes
      if (starved && (first || bytes <= urgent)) this.#need(entry, stored.bytes)
      else if (bytes > room) return
      this.#reader.want(entry)
    }
  }

  /** How much is kept that may be given up. */
  get #bytes(): number {
    return this.#queue.bytes - this.#neededBytes
  }

  #need(entry: Entry, bytes: number): void {
    this.left(entry)
    this.#needed.set(entry, bytes)
    this.#neededBytes += bytes
  }

  /** Never throws: it is called for whatever changes on the board, and one posting must not stop the view. */
  #giveUp(entry: Entry): void {
    if (!entry.stored || !isWhole(entry.stored)) return
    try {
      entry.stored = outlined(entry.stored)
      this.#queue.update(entry)
    } catch (error) {
      this.#unusable(entry, error instanceof Error ? error : new Error(String(error)))
    }
  }

  *#leastNeededFirst(): Generator<WholePlace, void, undefined> {
    const idle: WholePlace[] = []
    for (const { place, chosen } of this.#entries()) {
      if (place && !place.ready && !chosen && place.stance !== 'holding' && isWholePlace(place)) idle.push(place)
    }
    yield* idle.sort((a, b) => compareClaimOrder(b, a))
    yield* this.#queue.backwards()
  }
}
