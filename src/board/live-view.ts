/**
 * The live view: the board as this process knows it, kept by increments.
 *
 * It is told of changes synchronously, in commit order, and turns them into entries, the queue, and happenings for
 * listeners. The view only chooses; the backend's transaction decides, so being a little behind costs a refused claim and
 * never a wrong one.
 *
 * **After a gap** (first of all when the board opens) nothing is chosen until the board has been listed and diffed.
 * Changes that arrive meanwhile are kept and applied after the listing. The listing may contain some of them already; that
 * is harmless, because a change says what is now so, and for whatever it touches the last one wins.
 *
 * **Content** is read in batches, after all changes at hand were applied. What changes while a job is claimed is read
 * when the claim is released; content that was overtaken by a change is read again, never believed. Where all of it would
 * take too much memory, some is given up and read again when its turn comes: `kept-contents.ts`.
 */
import { deferred } from '../core/abort.ts'
import { Condition } from '../core/condition.ts'
import { NotConnected } from '../core/errors.ts'
import { backoff, sleep } from '../core/time.ts'
import type { Backend, Change, Listing, Stored, Unreadable } from './backend.ts'
import { ContentReader } from './content-reader.ts'
import { type Entry, newEntry } from './entry.ts'
import { KeptContents } from './kept-contents.ts'
import { ClaimQueue } from './queue.ts'

export type Happening = 'posted' | 'claimed' | 'abandoned' | 'consumed' | 'trashed'

export interface ViewListener {
  happened(happening: Happening, entry: Entry): void
  /** Somebody wants the job given up. */
  cancelled(entry: Entry): void
  failed(error: Error): void
}

/** What a timer of Node can wait. */
const LONGEST_TIMER = 2 ** 31 - 1
/** Of how many jobs that ended is remembered how, for an own post whose answer is on its way. */
const ENDS_KEPT = 1_000

export class LiveView {
  readonly queue = new ClaimQueue()
  readonly kept: KeptContents
  /** Notified whenever something may have become claimable, or current. */
  readonly changed = new Condition()
  readonly #backend: Backend
  readonly #listener: ViewListener
  readonly #signal: AbortSignal
  readonly #entries = new Map<string, Entry>()
  readonly #byUuid = new Map<string, Entry>()
  readonly #postedTwice = new Set<string>()
  /** Nobody here has ever been able to read these: a newer release's, say. */
  readonly #illegible = new Set<Entry>()
  readonly #contents: ContentReader
  /** Reads what was given up. Nobody who wants the view to be current waits for that. */
  readonly #givenUp: ContentReader
  readonly #ends = new Map<string, 'COMPLETE' | 'TRASHED'>()
  /** Posted in transactions that are not committed yet, and may never be: as long as somebody asks for them. */
  readonly #expected = new Map<string, WeakRef<Entry>>()
  #dueTimer: NodeJS.Timeout | undefined
  /** Changes that came since the last gap, while it is not closed yet. */
  #sinceGap: Change[] | undefined = []
  #gaps = 0

  /**
   * @param options.bytes how much of the postings stays in memory; 64 MiB by default
   * @param options.signal ends everything that goes on in the background
   */
  constructor(options: {
    backend: Backend
    listener: ViewListener
    bytes?: number | undefined
    signal: AbortSignal
  }) {
    this.#backend = options.backend
    this.#listener = options.listener
    this.#signal = options.signal
    const reading = {
      backend: options.backend,
      signal: options.signal,
      progressed: () => this.#changed(),
      failed: (error: unknown) => options.listener.failed(asError(error)),
    }
    this.#contents = new ContentReader({
      ...reading,
      found: (entry, content) => {
        this.#found(entry, content)
        this.kept.arrived(entry)
      },
    })
    this.#givenUp = new ContentReader({ ...reading, found: (entry, content) => this.#found(entry, content) })
    this.kept = new KeptContents({
      limit: options.bytes,
      queue: this.queue,
      entries: () => this.#entries.values(),
      reader: this.#givenUp,
    })
  }

  /** Whether what the view shows is complete, and may be chosen from. */
  get current(): boolean {
    return this.#sinceGap === undefined
  }

  /** How many jobs are on the board, readable or not. */
  get size(): number {
    return this.#entries.size
  }

  entries(): Iterable<Entry> {
    return this.#entries.values()
  }

  byUuid(uuid: string): Entry | undefined {
    return this.#byUuid.get(uuid)
  }

  /** Whether the entry is this view's, or that of another board object. */
  owns(entry: Entry): boolean {
    return entry.id !== undefined && this.#entries.get(entry.id) === entry
  }

  /** No end will be heard of any more: whoever waits for one is told, and so are those who come later. */
  giveUp(reason: Error): void {
    clearTimeout(this.#dueTimer)
    for (const entry of this.#entries.values()) {
      entry.end ??= deferred()
      entry.end.promise.catch(() => undefined)
      entry.end.reject(reason)
    }
    this.#changed()
  }

  /** Resolves when the view is current and all content was read of what it had heard of by then. */
  async settled(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    while (!this.current) await this.changed.wait(options)
    const { requests } = this.#contents
    while (!(this.current && this.#contents.hasRead(requests))) await this.changed.wait(options)
  }

  /** Whether a job with this uuid may be on the board: no only where everything told so far speaks against it. */
  mayHold(uuid: string): boolean {
    return !this.current || this.#contents.busy || this.hidesSome || this.#byUuid.has(uuid)
  }

  /** Whether there are postings of which nobody here can tell what job they are. */
  get hidesSome(): boolean {
    return this.#illegible.size > 0
  }

  gap(): void {
    this.#gaps += 1
    this.#sinceGap = []
    void this.#resync(this.#gaps)
  }

  apply(batch: readonly Change[]): void {
    if (this.#sinceGap) {
      this.#sinceGap.push(...batch)
      return
    }
    for (const change of batch) this.#apply(change)
    this.#changed()
  }

  /**
   * A job that this process posted. The change comes before the answer, so the view knows the job by now, unless it has
   * ended already or a gap is open; then the listing may be older than the post, and the entry is marked as newer.
   */
  learn(stored: Stored): Entry {
    const known = this.#entries.get(stored.id)
    const entry = known ?? (this.current ? this.#endedBeforeAnswer(stored.id) : this.#add(stored.id))
    if (!known && !entry.ended) entry.newerThanGap = true
    if (entry.ended) entry.stored = stored
    else if (entry.changes === 0 && entry.content === 'unread') this.#adoptContent(entry, stored)
    else this.#adoptOld(entry, stored)
    this.kept.arrived(entry)
    this.#changed()
    return entry
  }

  /** A job that may come: it is this entry then. */
  expect(id: string): Entry {
    const known = this.#entries.get(id)
    if (known) return known
    for (const [other, entry] of this.#expected) if (!entry.deref()) this.#expected.delete(other)
    const entry = newEntry(id)
    this.#expected.set(id, new WeakRef(entry))
    return entry
  }

  /** The answer to a post took so long that the posting has changed since: it says what the job is, not how it stands. */
  #adoptOld(entry: Entry, stored: Stored): void {
    if (entry.stored) return
    entry.stored = stored
    entry.content = 'stale'
    this.queue.update(entry)
    this.#index(stored.posting.uuid, entry)
    this.#listener.happened('posted', entry)
  }

  #endedBeforeAnswer(id: string): Entry {
    const entry = newEntry(id)
    entry.ended = this.#ends.get(id) ?? 'COMPLETE'
    return entry
  }

  /** Content as a claim or settle of this process wrote it; the claim itself is told by the backend's change. */
  rewrote(entry: Entry, written: { posting: Stored['posting']; revision: number }): void {
    if (!entry.stored) return
    entry.stored = { ...entry.stored, ...written }
    this.queue.update(entry)
  }

  async #resync(gap: number): Promise<void> {
    for (let attempt = 1; gap === this.#gaps && !this.#signal.aborted; attempt += 1) {
      try {
        const listing = await this.#backend.list()
        if (gap === this.#gaps) this.#closeGap(listing)
        return
      } catch (error) {
        // Without a connection there is nothing to try: its return is another gap.
        if (error instanceof NotConnected) return
        this.#listener.failed(asError(error))
        await sleep(backoff(attempt, { first: 100, max: 10_000 }), { signal: this.#signal }).catch(() => undefined)
      }
    }
  }

  #closeGap(listing: Listing): void {
    const missed = this.#sinceGap ?? []
    this.#sinceGap = undefined
    const listed = new Set(listing.jobs)
    for (const [id, entry] of this.#entries) {
      const newer = entry.newerThanGap
      entry.newerThanGap = false
      if (listed.has(id)) continue
      if (newer) {
        this.#contents.want(entry)
        continue
      }
      entry.trashing = listing.trashed.has(id)
      this.#end(entry, id)
    }
    for (const id of listing.jobs) {
      const entry = this.#entries.get(id) ?? this.#add(id)
      this.#claimed(entry, listing.claimed.has(id))
      if (listing.cancelled.has(id)) this.#cancelRequested(entry)
      this.#outdate(entry)
    }
    for (const change of missed) this.#apply(change)
    this.#changed()
  }

  #apply(change: Change): void {
    const { id } = change
    const entry = this.#entries.get(id)
    switch (change.kind) {
      case 'posted':
        if (!entry) this.#contents.want(this.#add(id))
        return
      case 'updated':
        if (entry) this.#outdate(entry)
        return
      case 'claimed':
        if (entry) this.#claimed(entry, true)
        return
      case 'released':
        if (entry) this.#claimed(entry, false)
        return
      case 'trashed':
        if (entry) entry.trashing = true
        return
      case 'cancelled':
        if (entry) this.#cancelRequested(entry)
        return
      case 'gone':
        if (entry) this.#end(entry, id)
    }
  }

  #add(id: string): Entry {
    const entry = this.#expected.get(id)?.deref() ?? newEntry(id)
    this.#expected.delete(id)
    this.#entries.set(id, entry)
    this.queue.update(entry)
    return entry
  }

  #claimed(entry: Entry, claimed: boolean): void {
    if (entry.claimed === claimed) return
    entry.claimed = claimed
    this.kept.left(entry)
    if (entry.content === 'stale' && !claimed) this.#contents.want(entry)
    this.queue.update(entry)
    this.#listener.happened(claimed ? 'claimed' : 'abandoned', entry)
  }

  #cancelRequested(entry: Entry): void {
    if (entry.cancelRequested) return
    entry.cancelRequested = true
    this.queue.update(entry)
    this.#listener.cancelled(entry)
  }

  #end(entry: Entry, id: string): void {
    this.#entries.delete(id)
    const uuid = entry.stored?.posting.uuid
    if (uuid !== undefined && this.#byUuid.get(uuid) === entry) this.#unindex(uuid)
    this.#contents.forget(entry)
    this.#givenUp.forget(entry)
    this.kept.left(entry)
    this.#illegible.delete(entry)
    entry.ended = entry.trashing ? 'TRASHED' : 'COMPLETE'
    this.#rememberEnd(id, entry.ended)
    this.queue.update(entry)
    entry.end?.resolve(entry.ended)
    this.#listener.happened(entry.trashing ? 'trashed' : 'consumed', entry)
  }

  #index(uuid: string, entry: Entry): void {
    const other = this.#byUuid.get(uuid)
    if (other && other !== entry) this.#postedTwice.add(uuid)
    else this.#byUuid.set(uuid, entry)
  }

  /** Of a uuid that was posted twice the other job is found from now on. */
  #unindex(uuid: string): void {
    this.#byUuid.delete(uuid)
    if (!this.#postedTwice.delete(uuid)) return
    for (const entry of this.#entries.values()) {
      if (entry.stored?.posting.uuid === uuid) this.#index(uuid, entry)
    }
  }

  #rememberEnd(id: string, end: 'COMPLETE' | 'TRASHED'): void {
    this.#ends.set(id, end)
    const [oldest] = this.#ends.keys()
    if (this.#ends.size > ENDS_KEPT && oldest !== undefined) this.#ends.delete(oldest)
  }

  /** What was read is not so any more. While the job is claimed nobody needs it; the release asks for it. */
  #outdate(entry: Entry): void {
    entry.changes += 1
    if (entry.content !== 'unread') entry.content = 'stale'
    if (!entry.claimed || entry.content === 'unread') this.#contents.want(entry)
    this.queue.update(entry)
  }

  #found(entry: Entry, content: Stored | Unreadable | undefined): void {
    if (content) this.#adoptContent(entry, content)
    // While a gap is open, how it ended is what the listing says.
    else if (this.current && !entry.ended && entry.id !== undefined) this.#end(entry, entry.id)
  }

  #adoptContent(entry: Entry, content: Stored | Unreadable): void {
    this.#contents.forget(entry)
    this.#givenUp.forget(entry)
    if ('error' in content) {
      if (entry.fault !== content.error.message) this.#listener.failed(content.error)
      entry.fault = content.error.message
      entry.content = 'unreadable'
      if (!entry.stored) this.#illegible.add(entry)
    } else {
      const first = entry.stored === undefined
      entry.stored = content
      entry.content = 'fresh'
      entry.fault = undefined
      this.#illegible.delete(entry)
      this.#index(content.posting.uuid, entry)
      if (first) this.#listener.happened('posted', entry)
    }
    this.queue.update(entry)
  }

  /** Wakes whoever waits for something to claim, now and when the next delay is over. */
  #changed(): void {
    this.kept.trim()
    this.queue.advance(this.#backend.now())
    this.changed.notify()
    clearTimeout(this.#dueTimer)
    const { nextDue } = this.queue
    if (nextDue === undefined || this.#signal.aborted) return
    const left = Math.max(1, nextDue - this.#backend.now())
    this.#dueTimer = setTimeout(() => this.#changed(), Math.min(left, LONGEST_TIMER))
    this.#dueTimer.unref()
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
