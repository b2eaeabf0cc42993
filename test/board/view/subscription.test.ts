/** When a view is open, and what it shows while its subscription or its listing fails. */
import { randomUUID } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { MemoryBackend, memorySpace } from '../../../src/board/backends/memory/index.ts'
import type { BackendChanges, BackendJobs, BoardListing } from '../../../src/board/contract/index.ts'
import { openBoard } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { LiveView } from '../../../src/board/view/live-view.ts'
import { Subscription } from '../../../src/board/view/subscription.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { NotConnected } from '../../../src/core/errors.ts'
import { nextEvent, recordEvents, rejectionOf } from '../events.ts'
import { fakeBackend, overrideRole } from '../override-role.ts'

const away = () => new NotConnected('there is no connection')

describe('a subscription', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** @param options.failures the errors of the first requests; `reads`: whether the board is read as soon as it is subscribed */
  function subscriptionWith({
    failures = [],
    whenUnsubscribed = Promise.resolve(),
    reads = true,
  }: {
    failures?: Error[]
    whenUnsubscribed?: Promise<void>
    reads?: boolean
  }) {
    const calls: string[] = []
    const subscription: Subscription = new Subscription({
      changes: {
        subscribe: async () => {
          const error = failures.shift()
          calls.push(error ? 'failed' : 'subscribed')
          if (error) throw error
        },
        unsubscribe: async () => {
          calls.push('unsubscribing')
          await whenUnsubscribed
        },
      },
      onOpen: () => calls.push('open'),
      onClose: () => calls.push('close'),
      onSubscribed: () => {
        if (reads) subscription.noteRead()
      },
      onError: ({ message }) => calls.push(`error ${message}`),
      signal: new AbortController().signal,
    })
    return { subscription, calls }
  }

  test('is kept for a while after its last use, so that several uses are one', async () => {
    const { subscription, calls } = subscriptionWith({})
    for (let use = 0; use < 5; use += 1) {
      subscription.hold()[Symbol.dispose]()
      await vi.advanceTimersByTimeAsync(9_000)
    }
    subscription.touch()
    await vi.advanceTimersByTimeAsync(9_000)
    expect(calls).toEqual(['open', 'subscribed'])
    await vi.advanceTimersByTimeAsync(20_000)
    expect(calls).toEqual(['open', 'subscribed', 'close', 'unsubscribing'])
  })

  test('is kept longer where the board took long to read', async () => {
    const { subscription, calls } = subscriptionWith({ reads: false })
    subscription.hold()[Symbol.dispose]()
    // It is not closed before it was read.
    await vi.advanceTimersByTimeAsync(30_000)
    subscription.noteRead()
    subscription.hold()[Symbol.dispose]()
    await vi.advanceTimersByTimeAsync(599_000)
    expect(calls).toEqual(['open', 'subscribed'])
    await vi.advanceTimersByTimeAsync(2_000)
    expect(calls.at(-1)).toBe('unsubscribing')
  })

  test('that fails is tried again while it is held, and each message is reported once', async () => {
    const failures = [new Error('full'), new Error('full'), away(), new Error('other')]
    const { subscription, calls } = subscriptionWith({ failures })
    const held = subscription.hold()
    await vi.advanceTimersByTimeAsync(120_000)
    expect(calls).toEqual(['open', 'failed', 'error full', 'failed', 'failed', 'failed', 'error other', 'subscribed'])
    expect(subscription.isSubscribed).toBe(true)
    held[Symbol.dispose]()
  })

  test('that fails is given up if nothing holds it', async () => {
    const { subscription, calls } = subscriptionWith({ failures: [new Error('full')] })
    subscription.touch()
    await vi.advanceTimersByTimeAsync(120_000)
    expect(calls).toEqual(['open', 'failed', 'error full', 'close'])
    expect(subscription.isOpen).toBe(false)
  })

  test('is not given up without a connection', async () => {
    const { subscription, calls } = subscriptionWith({ failures: [away(), away()] })
    subscription.touch()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(calls).toEqual(['open', 'failed', 'failed', 'subscribed'])
  })

  test('begins anew only when the one before has ended', async () => {
    const unsubscribed = createDeferred()
    const { subscription, calls } = subscriptionWith({ whenUnsubscribed: unsubscribed.promise })
    subscription.hold()[Symbol.dispose]()
    await subscription.whenSubscribed()
    subscription.closeIfUnused()
    using _held = subscription.hold()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(calls).toEqual(['open', 'subscribed', 'close', 'open', 'unsubscribing'])
    unsubscribed.resolve()
    await subscription.whenSubscribed()
    expect(calls.at(-1)).toBe('subscribed')
  })
})

describe('a view', () => {
  const NO_IDS: ReadonlySet<string> = new Set()
  const LISTING: BoardListing = { jobs: [], claimed: NO_IDS, trashed: NO_IDS, cancelled: NO_IDS }

  function viewOf({ changes, jobs }: { changes?: Partial<BackendChanges>; jobs?: Partial<BackendJobs> }) {
    const events: string[] = []
    const backend = fakeBackend({
      changes: { subscribe: async () => undefined, unsubscribe: async () => undefined, ...changes },
      clock: { now: () => Date.now() },
      jobs: { read: async (ids) => ids.map(() => undefined), list: async () => LISTING, ...jobs },
    })
    const listener = {
      jobChanged: (event: string, { id }: { id?: string | undefined }, { isEarlier }: { isEarlier: boolean }) => {
        if (!isEarlier) events.push(`${event} ${id}`)
      },
      cancelRequested: () => undefined,
      jobsExpired: () => undefined,
      flowUnaccepted: () => undefined,
      limited: () => undefined,
      statusRead: () => undefined,
      onError: () => undefined,
    }
    const { signal } = new AbortController()
    const view = new LiveView({ backend, listener, unacceptedAfter: 0, signal })
    return { view, events, backend }
  }

  test('is not current before its subscription succeeds, although a listing of a gap was read', async () => {
    const subscribed = createDeferred()
    const { view } = viewOf({ changes: { subscribe: () => subscribed.promise } })
    using _held = view.hold()
    view.resync()
    for (let turns = 0; turns < 20; turns += 1) await turn()
    expect(view.isCurrent).toBe(false)
    subscribed.resolve()
    await view.whenEntered()
    expect(view.isCurrent).toBe(true)
  })

  test('that cannot be listed without a connection says so at once, and is entered later', async () => {
    let isAway = true
    const { view } = viewOf({
      jobs: {
        list: async () => {
          if (isAway) throw away()
          return LISTING
        },
      },
    })
    using _held = view.hold()
    view.resync()
    expect(await rejectionOf(view.whenEntered())).toBeInstanceOf(NotConnected)
    isAway = false
    view.resync()
    await view.whenEntered()
  })

  test('that a listener alone has opened is entered, and shows changes of jobs that it has listed', async () => {
    const { view } = viewOf({})
    view.hold()
    view.resync()
    while (view.jobCount === undefined) await view.changed.wait()
    expect(view.jobCount).toBe(0)
  })

  test('emits what happens while it is opened, and nothing that was before', async () => {
    const listed = createDeferred()
    const { view, events } = viewOf({
      jobs: {
        list: async () => {
          await listed.promise
          return { ...LISTING, jobs: ['job1', 'job2', 'job3'], claimed: new Set(['job2', 'job3']) }
        },
        read: async (ids) => ids.map((id) => ({ id, error: new Error('not needed here') })),
      },
    })
    using _held = view.hold()
    view.resync()
    view.apply([{ kind: 'claimed', id: 'job2' }])
    listed.resolve()
    while (view.jobCount === undefined) await view.changed.wait()
    view.apply([{ kind: 'released', id: 'job3' }])
    expect(events.filter((event) => event.startsWith('posted'))).toEqual([])
    expect(events).toContain('abandoned job3')
  })
})

test('a job that ends between the subscription and the first listing of a view ends for its listeners', async () => {
  const name = randomUUID()
  const backend = new MemoryBackend({ uri: `memory:${name}`, space: memorySpace(name) })
  const listed = createDeferred()
  overrideRole(backend, 'jobs', (jobs) => ({
    list: async () => {
      await listed.promise
      return jobs.list()
    },
  }))
  await using board = new JobBoard(backend, { who: 'who' })
  await boardInternals(board).open()
  await using other = await openBoard(`memory:${name}`)
  const job = await board.post('flow', {}, { name: 'job' })
  const events = recordEvents(board)
  const view = board.view()
  await turn()
  await (await other.claim(job)).consume()
  listed.resolve()
  using _view = await view
  expect(events).toEqual(['consumed job'])
  expect(job.state).toBe('COMPLETE')
})

describe('a board whose subscription fails at first', () => {
  async function boardAfter(failures: number): Promise<JobBoard> {
    const name = `subscription-${failures}-${Math.random()}`
    const backend = new MemoryBackend({ uri: `memory:${name}`, space: memorySpace(name) })
    let left = failures
    overrideRole(backend, 'changes', (changes) => ({
      subscribe: async () => {
        left -= 1
        if (left >= 0) throw away()
        return changes.subscribe()
      },
    }))
    const board = new JobBoard(backend, { who: 'who' })
    await boardInternals(board).open()
    return board
  }

  test('claims what it posts, once it is subscribed', async () => {
    await using board = await boardAfter(2)
    await using claim = await board.postAndClaim('flow', {}, { resources: { exclusive: ['disk'] } })
    expect(claim.run).toBe(1)
  })

  test('ends a wait for a claim by its timeout and its signal', async () => {
    await using board = await boardAfter(Number.POSITIVE_INFINITY)
    expect(await rejectionOf(board.claimNext({ timeout: '50ms' }))).toMatchObject({ code: 'JOBBOARD_TIMEOUT' })
    const reason = new Error('enough')
    const stop = new AbortController()
    const claiming = rejectionOf(board.postAndClaim('flow', {}, { signal: stop.signal }))
    stop.abort(reason)
    expect(await claiming).toBe(reason)
  })

  test('emits to a listener that was there before', async () => {
    await using board = await boardAfter(1)
    const posted = nextEvent(board, 'posted')
    while (board.jobCount === undefined) await turn()
    await board.post('flow', {}, { name: 'job' })
    expect((await posted).job.name).toBe('job')
  })
})
