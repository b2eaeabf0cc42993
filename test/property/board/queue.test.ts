/**
 * The queue against one that is worked out anew from the entries each time: after any sequence of things that can happen
 * to jobs, in any order, the same jobs can be taken, and what is said of the others is true.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compareClaimOrder, compareIds, PRIORITIES, type Priority } from '../../../src/board/model/claim-order.ts'
import { type ContentState, type JobEntry, newEntry } from '../../../src/board/model/entry.ts'
import type { Resources } from '../../../src/board/model/resources.ts'
import type { ClaimQueue } from '../../../src/board/queue/queue.ts'
import { BYTES, createEntry, createQueue, everything, normalised, readNow, toJobId } from '../../board/queue/entries.ts'
import { count } from '../../support/counts.ts'

interface Job {
  readonly entry: JobEntry
  readonly priority: Priority
  readonly resources: Resources
  dueAt: number
  /** As it was when the queue was told last. */
  awake: boolean
}

const names = fc.array(fc.constantFrom('disk', 'tape', 'net'), { maxLength: 2 })
const resources = fc.oneof(
  fc.constant({}),
  names.map((exclusive) => ({ exclusive })),
  names.map((shared) => ({ shared })),
  fc.record({ exclusive: names, shared: names }),
)
const which = fc.nat(1_000)
const dueAt = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 50 }))
const priority = fc.oneof({ weight: 3, arbitrary: fc.constant('NORMAL' as const) }, fc.constantFrom(...PRIORITIES))

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('post' as const),
      priority,
      resources,
      dueAt,
      read: fc.boolean(),
      /** Ids become known in any order, and get longer. */
      id: fc.integer({ min: 1, max: 40 }).map((number) => (number % 5 === 0 ? 10_000_000_000 : 0) + number),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('read' as const), which, dueAt }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('content' as const),
      which,
      content: fc.constantFrom<ContentState[]>('stale', 'unreadable'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('claim' as const), which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('release' as const), which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), which }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const), which }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('advance' as const), now: fc.integer({ min: 0, max: 60 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('try' as const), max: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pick' as const), which }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('give up' as const), which }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** The board as it is, and what must be so of the queue. */
class Model {
  readonly jobs: Job[] = []
  readonly #queue: ClaimQueue
  readonly #ids = new Set<string>()
  #now = 0

  constructor(queue: ClaimQueue) {
    this.#queue = queue
  }

  apply(step: Step): void {
    switch (step.kind) {
      case 'post':
        this.#post(step)
        break
      case 'advance':
        this.#advance(step.now)
        break
      case 'try':
        this.#queue.reserveNext({ ...everything, max: step.max })
        break
      default: {
        const job = this.jobs[step.which % this.jobs.length]
        if (job) this.#change(job, step)
      }
    }
  }

  #post(posted: Extract<Step, { kind: 'post' }>): void {
    const id = toJobId(posted.id)
    if (this.#ids.has(id)) return
    this.#ids.add(id)
    const job: Job = { ...posted, entry: newEntry(id), awake: false }
    this.jobs.push(job)
    if (posted.read) readNow(job.entry, job)
    this.#tell(job)
  }

  #advance(now: number): void {
    this.#now = now
    const woken = this.jobs.filter((job) => isUnclaimed(job) && !job.awake && job.dueAt <= now)
    for (const job of woken) job.awake = true
    expect(this.#queue.advance(now)).toBe(woken.length > 0)
  }

  #change(job: Job, step: Exclude<Step, { kind: 'post' | 'advance' | 'try' }>): void {
    const { entry } = job
    switch (step.kind) {
      case 'read':
        if (!entry.stored || !entry.claimed) job.dueAt = step.dueAt
        readNow(entry, job)
        break
      case 'content':
        if (entry.content === 'unread' && step.content === 'stale') return
        entry.content = step.content
        break
      case 'claim':
        entry.claimed = true
        break
      case 'release':
        entry.claimed = false
        break
      case 'end':
        entry.ended = 'COMPLETE'
        this.jobs.splice(this.jobs.indexOf(job), 1)
        break
      case 'cancel':
        entry.cancelRequested = true
        break
      case 'pick': {
        const possible = isUnclaimed(job) && entry.content === 'fresh' && !entry.isReserved
        expect(this.#queue.reserveEntry(entry)?.entry).toBe(possible ? entry : undefined)
        return
      }
      case 'give up':
        if (entry.isReserved && entry.queuePlace) this.#queue.unreserve([entry.queuePlace])
        return
    }
    this.#tell(job)
  }

  #tell(job: Job): void {
    this.#queue.update(job.entry)
    job.awake = job.entry.cancelRequested || job.dueAt <= this.#now
  }

  check(): void {
    const waiting = this.jobs.filter((job) => isUnclaimed(job) && job.awake)
    const asleep = this.jobs.filter((job) => isUnclaimed(job) && !job.awake)
    const free = waiting.filter((job) => this.blockersOf(job).length === 0)
    const possible = inOrder(free.filter(({ entry }) => entry.content === 'fresh' && !entry.isReserved))
    this.#checkTaking(possible)
    expect(this.#queue.hasClaimable(everything)).toBe(possible.length > 0)
    expect(this.#queue.bytes).toBe(BYTES * (waiting.length + asleep.length))
    expect(this.#queue.size).toBe(waiting.length + asleep.length)
    expect(this.#queue.nextDue).toBe(asleep.length === 0 ? undefined : Math.min(...asleep.map((job) => job.dueAt)))
    for (const job of this.jobs) this.#checkBlocker(job)
  }

  #checkTaking(claimable: readonly Job[]): void {
    const taken = this.#queue.reserveNext(everything)
    expect(taken.map(({ entry }) => entry.id)).toEqual(claimable.map(({ entry }) => entry.id))
    const inConflict = claimable.some((a, at) => claimable.slice(at + 1).some((b) => conflict(a, b)))
    expect(inConflict).toBe(false)
    expect(taken.every(({ entry, stored }) => entry.isReserved && entry.stored === stored)).toBe(true)
    this.#queue.unreserve(taken)
  }

  #checkBlocker(job: Job): void {
    const blocker = this.#queue.blockedBy(job.entry)
    const blockers = isUnclaimed(job) && job.awake ? this.blockersOf(job) : []
    expect(blocker !== undefined).toBe(blockers.length > 0)
    if (!blocker) return
    const wants = normalised(job.resources)
    expect([...wants.exclusive, ...wants.shared]).toContain(blocker.resource)
    // Who is named is in its way; of a line, it is the first, who need not be in conflict with the job itself.
    if (blockers.some(({ entry }) => entry === blocker.entry)) return
    expect(blockers.some((other) => compareClaimOrder(keyOf(blocker.entry), keyOf(other.entry)) < 0)).toBe(true)
  }

  blockersOf(job: Job): Job[] {
    return this.jobs.filter((other) => other !== job && this.#blocks(other, job))
  }

  #blocks(other: Job, job: Job): boolean {
    const { entry } = other
    const wants = normalised(job.resources)
    if (entry.content === 'unread') {
      return wants.exclusive.length + wants.shared.length > 0 && compareIds(entry, job.entry) < 0
    }
    if (!conflict(other, job)) return false
    if (entry.claimed) return entry.stored !== undefined
    return isUnclaimed(other) && other.awake && compareClaimOrder(keyOf(entry), keyOf(job.entry)) < 0
  }
}

/** What could not be read and has changed since is not known to want anything: it waits for being read, not in line. */
function isUnclaimed({ entry }: Job): boolean {
  return !entry.claimed && entry.stored !== undefined && (entry.content === 'fresh' || entry.content === 'stale')
}

function conflict(a: Job, b: Job): boolean {
  const [one, other] = [normalised(a.resources), normalised(b.resources)]
  const clash = (mine: readonly string[], ...theirs: readonly string[][]) =>
    mine.some((name) => theirs.flat().includes(name))
  return clash(one.exclusive, [...other.exclusive], [...other.shared]) || clash(other.exclusive, [...one.shared])
}

function keyOf({ stored }: JobEntry) {
  if (!stored) throw new Error('it was read')
  return { id: stored.id, priority: stored.posting.priority, order: stored.order }
}

function inOrder(jobs: readonly Job[]): Job[] {
  return jobs.toSorted((a, b) => compareClaimOrder(keyOf(a.entry), keyOf(b.entry)))
}

test('what can be taken is what the rules say, whatever has happened', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 120, size: 'max' }), (steps) => {
      const model = new Model(createQueue())
      for (const one of steps) {
        model.apply(one)
        model.check()
      }
    }),
    { numRuns: count({ test: 200, long: 20_000 }) },
  )
})

describe('jobs that run and end in any order', () => {
  const posting = fc.record({ priority, resources })
  const turn = fc.oneof(
    fc.record({ kind: fc.constant('post' as const), posting }),
    fc.record({ kind: fc.constant('start' as const), max: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constant('end' as const), which }),
  )

  interface Run extends Job {
    /** In which turn. */
    readonly posted: number
    started?: number
    ended?: number
  }

  /** Ends when all are done: what cannot go on would never end. */
  function played(turns: readonly (typeof turn extends fc.Arbitrary<infer T> ? T : never)[]): Run[] {
    const queue = createQueue()
    const runs = new Map<JobEntry, Run>()
    let time = 0
    const running = () => [...runs.values()].filter((run) => run.started !== undefined && run.ended === undefined)
    const start = (max: number) => {
      const places = queue.reserveNext({ ...everything, max })
      for (const { entry } of places) {
        const run = runs.get(entry)
        if (run) run.started = time
        entry.claimed = true
        queue.update(entry)
      }
      queue.unreserve(places)
    }
    const end = (run: Run | undefined) => {
      if (!run) return
      run.ended = time
      run.entry.ended = 'COMPLETE'
      queue.update(run.entry)
    }
    for (const one of turns) {
      time += 1
      if (one.kind === 'post') {
        const entry = createEntry(one.posting)
        runs.set(entry, { ...one.posting, entry, dueAt: 0, awake: true, posted: time })
        queue.update(entry)
      } else if (one.kind === 'start') start(one.max)
      else end(running()[one.which % running().length])
    }
    for (let left = runs.size; left >= 0; left -= 1) {
      time += 1
      for (const run of running()) end(run)
      start(Number.POSITIVE_INFINITY)
    }
    return [...runs.values()]
  }

  test('all have their turn, no two in conflict run at once, and of two in conflict the first comes first', () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 80, size: 'max' }), (turns) => {
        const runs = played(turns)
        for (const run of runs) expect(run.started, 'starved').toBeDefined()
        for (const [at, one] of runs.entries()) {
          for (const other of runs.slice(at + 1)) {
            if (!conflict(one, other)) continue
            const [first, second] = [one, other].toSorted((a, b) => (a.started ?? 0) - (b.started ?? 0)) as [Run, Run]
            expect(first.ended ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(second.started ?? 0)
            if (one.priority === other.priority) expect(first).toBe(one)
          }
        }
      }),
      { numRuns: count({ test: 150, long: 20_000 }) },
    )
  })
})
