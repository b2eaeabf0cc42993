/**
 * The index of a view against a naive board: after any sequence of posts, claims, releases, cancellations and ends, with
 * postings read late or never and the board listed anew at any moment, also while an earlier listing is taken in, the view has the
 * jobs of the board, and every event of a job is emitted once, in order. While the view is closed nothing is applied; once it is opened again it has the jobs of the board,
 * and emits what happens from then on.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { BoardChange, StoredJob } from '../../../src/board/contract/index.ts'
import type { JobEntry } from '../../../src/board/model/entry.ts'
import { makePosting } from '../../../src/board/model/posting/post-options.ts'
import { JobIndex } from '../../../src/board/view/job-index.ts'
import { JobReports } from '../../../src/board/view/job-reports.ts'
import { ListingApplier } from '../../../src/board/view/listing-applier.ts'
import { toJobId } from '../../board/queue/entries.ts'
import { count } from '../../support/counts.ts'

const which = fc.nat(1_000)
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('post' as const), jobs: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('own-post' as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const), which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('release' as const), which }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('update' as const), which }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cancel' as const), which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), which, trashed: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('read' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('list' as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('take' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('close' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('open' as const) }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

interface NaiveJob {
  readonly id: string
  revision: number
  claimed: boolean
  cancelled: boolean
}

/** The board as it is, and what was emitted of each job. */
class NaiveBoard {
  readonly jobs = new Map<string, NaiveJob>()
  readonly ended = new Map<string, 'COMPLETE' | 'TRASHED'>()
  readonly emitted = new Map<string, string[]>()
  readonly #index = new JobIndex({ window: undefined })
  readonly #reports = new JobReports(this.#index)
  readonly #listings = new ListingApplier(this.#index, { slice: 2 })
  /** The listing that is being taken in, with the changes that are kept meanwhile. */
  #listing: { readonly slices: Iterator<void>; readonly missed: BoardChange[] } | undefined
  #isListed = false
  #posted = 0
  #isOpen = false
  /** The jobs that were on the board when the view was opened, and those that were claimed. */
  #postedBefore = new Set<string>()
  #claimedBefore = new Set<string>()

  constructor() {
    this.#open()
  }

  apply(step: Step): void {
    if (step.kind === 'post') {
      for (let n = 0; n < step.jobs; n += 1) this.#post()
    } else if (step.kind === 'own-post') this.#applyOwnPost(this.#post())
    else if (step.kind === 'read') this.#read()
    else if (step.kind === 'list') this.#list()
    else if (step.kind === 'take') this.#take()
    else if (step.kind === 'close') this.#close()
    else if (step.kind === 'open') this.#open()
    else {
      const job = [...this.jobs.values()][step.which % Math.max(1, this.jobs.size)]
      if (job) this.#change(job, step)
    }
    this.#takeEffects()
  }

  #open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    this.#isListed = false
    this.#listings.open()
    this.#list()
  }

  #close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#listing = undefined
    this.#index.close()
    this.#reports.close()
    this.emitted.clear()
    this.ended.clear()
  }

  /** Reports a change, as backends do while the board is viewed. */
  #report(change: BoardChange): void {
    if (this.#listing) this.#listing.missed.push(change)
    else if (this.#isOpen) this.#reports.apply(change)
  }

  /** Posts a job, and reports it. */
  #post(): string {
    this.#posted += 1
    const id = toJobId(this.#posted)
    this.jobs.set(id, { id, revision: 0, claimed: false, cancelled: false })
    this.#report({ kind: 'posted', id })
    return id
  }

  /** Takes in the answer to a post of this process, which arrives after the report. */
  #applyOwnPost(id: string): void {
    const stored = this.#stored({ id })
    if (!stored || !this.#isOpen) return
    this.#reports.applyOwnPost(stored, { isCurrent: !this.#listing, isCovered: true })
  }

  #change(
    job: NaiveJob,
    step: Exclude<Step, { kind: 'post' | 'own-post' | 'read' | 'list' | 'take' | 'close' | 'open' }>,
  ): void {
    const { id } = job
    if (step.kind === 'update') {
      job.revision += 1
      this.#report({ kind: 'updated', id })
    } else if (step.kind === 'cancel') {
      job.cancelled = true
      this.#report({ kind: 'cancelled', id })
    } else if (step.kind === 'end') {
      this.jobs.delete(id)
      if (this.#isOpen) this.ended.set(id, step.trashed ? 'TRASHED' : 'COMPLETE')
      if (step.trashed) this.#report({ kind: 'trashed', id })
      this.#report({ kind: 'gone', id })
    } else {
      job.claimed = step.kind === 'claim'
      job.revision += 1
      this.#report({ kind: 'updated', id })
      this.#report({ kind: job.claimed ? 'claimed' : 'released', id })
    }
  }

  #read(): void {
    for (const entry of [...this.#index.toRead]) {
      this.#index.toRead.delete(entry)
      const stored = this.#stored(entry)
      // As the view does: the kept changes say how the job ended.
      if (stored || !this.#listing) this.#reports.applyPosting(entry, stored)
    }
  }

  #list(): void {
    if (!this.#isOpen) return
    const jobs = [...this.jobs.values()]
    const ids = (of: (job: NaiveJob) => boolean) => new Set(jobs.filter(of).map(({ id }) => id))
    const listing = {
      jobs: jobs.map(({ id }) => id),
      claimed: ids(({ claimed }) => claimed),
      cancelled: ids(({ cancelled }) => cancelled),
      trashed: new Set([...this.ended].flatMap(([id, end]) => (end === 'TRASHED' ? [id] : []))),
    }
    if (!this.#isListed) {
      // An own post is emitted with its answer.
      this.#postedBefore = new Set(listing.jobs.filter((id) => !this.emitted.has(id)))
      this.#claimedBefore = listing.claimed
    }
    this.#listing = { slices: this.#listings.apply(listing, []), missed: [] }
    this.#take()
  }

  /** Takes in a part of the listing; after the last part, the changes that were kept. */
  #take(): void {
    if (!this.#listing?.slices.next().done) return
    const { missed } = this.#listing
    this.#listing = undefined
    this.#isListed = true
    for (const change of missed) this.#reports.apply(change)
  }

  /** Takes in what is left of the listing, and reads the postings. */
  finish(): void {
    while (this.#listing) this.#take()
    this.#read()
    this.#takeEffects()
  }

  #stored({ id = '' }: Pick<JobEntry, 'id'>): StoredJob | undefined {
    const job = this.jobs.get(id)
    if (!job) return undefined
    const posting = makePosting({ name: id, details: {} })
    const uuid = `0199c0de-0000-7000-8000-${id.slice(-10).padStart(12, '0')}`
    const at = { order: BigInt(id.slice('job'.length)), postedAt: 0, writtenAt: 0, bytes: 1 }
    return { id, posting: { ...posting, uuid }, revision: job.revision, ...at }
  }

  #takeEffects(): void {
    for (const effect of this.#index.takeEffects()) {
      if (effect.kind !== 'emit' || effect.isEarlier) continue
      const { id = '' } = effect.entry
      this.emitted.set(id, [...(this.emitted.get(id) ?? []), effect.event])
    }
  }

  check(): void {
    // The view is not current, and chooses no jobs.
    if (this.#listing) return
    const known = new Map([...this.#index.entries()].map((entry) => [entry.id ?? '', entry]))
    expect([...known.keys()].sort()).toEqual(this.#isOpen ? [...this.jobs.keys()].sort() : [])
    if (!this.#isOpen) return
    expect(this.#reports.jobCount).toBe(this.jobs.size)
    for (const job of this.jobs.values()) {
      const entry = known.get(job.id)
      expect(entry).toMatchObject({ claimed: job.claimed, cancelRequested: job.cancelled, ended: undefined })
      if (entry?.content === 'fresh') expect(this.#index.byUuid(entry.stored?.posting.uuid ?? '')).toBe(entry)
      // What may be chosen is unclaimed and known as it is now.
      if (entry?.content === 'fresh' && !job.claimed) expect(entry.stored?.revision).toBe(job.revision)
    }
    for (const [id, events] of this.emitted) this.#checkEvents(id, events)
  }

  #checkEvents(id: string, events: readonly string[]): void {
    expect(events.filter((event) => event === 'posted').length).toBeLessThanOrEqual(this.#postedBefore.has(id) ? 0 : 1)
    const ends = events.filter((event) => event === 'consumed' || event === 'trashed')
    const end = this.ended.get(id)
    expect(ends).toEqual(end === undefined ? [] : [end === 'TRASHED' ? 'trashed' : 'consumed'])
    if (ends.length > 0) expect(events.at(-1)).toBe(ends[0])
    // Claims and releases take turns.
    const turns = events.filter((event) => event === 'claimed' || event === 'abandoned')
    const begins = this.#claimedBefore.has(id) ? 1 : 0
    expect(turns.every((event, at) => event === ((at + begins) % 2 === 0 ? 'claimed' : 'abandoned'))).toBe(true)
  }
}

test('the index has what is on the board, and emits each event of a job once', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const board = new NaiveBoard()
      for (const step of steps) {
        board.apply(step)
        board.check()
      }
      board.finish()
      board.check()
    }),
    { numRuns: count({ test: 300, long: 20_000 }) },
  )
})
