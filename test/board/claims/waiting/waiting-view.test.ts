/** Callers that wait for jobs on a busy board: they stop receiving its changes, and find what stays. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, vi } from 'vitest'
import { JobBoard } from '../../../../src/board/api/job-board.ts'
import { MemoryBackend, memorySpace } from '../../../../src/board/backends/memory/index.ts'
import { ChangeBudget } from '../../../../src/board/claims/waiting/change-budget.ts'
import { boardInternals } from '../../../../src/board/internal.ts'
import type { Posting } from '../../../../src/board/model/posting/posting.ts'
import { createDeferred, type Deferred } from '../../../../src/core/async/abort.ts'
import { usual as test, variant } from '../../../variant.ts'
import { rejectionOf } from '../../events.ts'
import { overrideRole } from '../../override-role.ts'

/** More jobs than the budget of a waiting process allows. */
const MANY = 2_400

/** The memory backend as one whose changes cost the servers something; it notes when it is asked to send them, and to stop. */
class ObservedBackend extends MemoryBackend {
  readonly calls: string[] = []
  #unsubscribed = createDeferred()
  readonly #read = new Map<string, Deferred<void>>()
  /** How far the board's clock is ahead of this machine's, in milliseconds. */
  ahead = 0

  constructor(...args: ConstructorParameters<typeof MemoryBackend>) {
    super(...args)
    overrideRole(this, 'clock', (clock) => ({ now: () => clock.now() + this.ahead }))
    overrideRole(this, 'changes', (changes) => ({
      subscribe: () => {
        this.calls.push('subscribe')
        return changes.subscribe()
      },
      unsubscribe: async () => {
        this.calls.push('unsubscribe')
        await changes.unsubscribe()
        this.#unsubscribed.resolve()
        this.#unsubscribed = createDeferred()
      },
    }))
    overrideRole(this, 'jobs', (jobs) => ({
      listUnclaimed: async () => {
        const { jobs: ids, claimed, cancelled } = await jobs.list()
        return { jobs: ids.filter((id) => !claimed.has(id)), cancelled }
      },
      read: async (ids) => {
        const read = await jobs.read(ids)
        for (const id of ids) this.#deferredOf(id).resolve()
        return read
      },
    }))
  }

  /** Resolves when the posting of this job was read. */
  whenRead(id: string): Promise<void> {
    return this.#deferredOf(id).promise
  }

  #deferredOf(id: string): Deferred<void> {
    const deferred = this.#read.get(id) ?? createDeferred()
    this.#read.set(id, deferred)
    return deferred
  }

  whenUnsubscribed(): Promise<void> {
    return this.#unsubscribed.promise
  }
}

async function openBoards() {
  const name = randomUUID()
  const space = memorySpace(name)
  const backend = new ObservedBackend({ uri: `memory:${name}`, space })
  const waiting = new JobBoard(backend, { who: 'waiting' })
  const busy = new JobBoard(new MemoryBackend({ uri: `memory:${name}`, space }), { who: 'busy' })
  await Promise.all([boardInternals(waiting).open(), boardInternals(busy).open()])
  return {
    ...{ backend, waiting, busy },
    postMany: () => Promise.all(Array.from({ length: MANY }, () => busy.post('flow', {}, { name: 'other' }))),
    [Symbol.asyncDispose]: async () => {
      await Promise.all([waiting.close(), busy.close()])
    },
  }
}

const mine = ({ name }: Posting) => name === 'mine'

test('a caller that finds nothing on a busy board leaves the view, and finds a job that stays', async () => {
  await using boards = await openBoards()
  const { backend, waiting, busy, postMany } = boards
  const claiming = waiting.claimNext({ accept: mine })
  const left = backend.whenUnsubscribed()
  await postMany()
  await left
  expect(waiting.jobCount).toBeUndefined()
  await busy.post('flow', {}, { name: 'mine' })
  const [claim] = await claiming
  expect(claim.job.name).toBe('mine')
  expect(backend.calls).toEqual(['subscribe', 'unsubscribe', 'subscribe'])
})

test('several callers poll together', async () => {
  await using boards = await openBoards()
  const { backend, waiting, busy, postMany } = boards
  const claiming = [waiting.claimNext({ accept: mine }), waiting.claimNext({ accept: mine })]
  const left = backend.whenUnsubscribed()
  await postMany()
  await left
  await Promise.all([busy.post('flow', {}, { name: 'mine' }), busy.post('flow', {}, { name: 'mine' })])
  expect(await Promise.all(claiming)).toHaveLength(2)
})

test('a caller whose signal fires while it polls ends its wait, and the next call looks at the board at once', async () => {
  await using boards = await openBoards()
  const { backend, waiting, busy, postMany } = boards
  const stop = new AbortController()
  const claiming = rejectionOf(waiting.claimNext({ accept: mine, signal: stop.signal }))
  const left = backend.whenUnsubscribed()
  await postMany()
  await left
  stop.abort(new Error('enough'))
  expect(String(await claiming)).toContain('enough')
  await busy.post('flow', {}, { name: 'mine' })
  expect(await waiting.claimNext({ accept: mine, timeout: 0 })).toHaveLength(1)
})

test('a board that is closed while a caller polls ends the wait', async () => {
  await using boards = await openBoards()
  const { backend, waiting, postMany } = boards
  const claiming = rejectionOf(waiting.claimNext({ accept: mine }))
  const left = backend.whenUnsubscribed()
  await postMany()
  await left
  await waiting.close()
  expect(String(await claiming)).toContain('is stopping')
})

test('a caller does not poll while a job for it waits for another', async () => {
  await using boards = await openBoards()
  const { backend, waiting, busy, postMany } = boards
  const resources = { exclusive: ['printer'] }
  await busy.post('flow', {}, { name: 'other', resources })
  const [holder] = await busy.claimNext()
  await busy.post('flow', {}, { name: 'mine', resources })
  const claiming = waiting.claimNext({ accept: mine })
  await postMany()
  await holder.consume()
  await claiming
  expect(backend.calls).toEqual(['subscribe'])
})

test('a delayed job is found when it is due', async () => {
  await using boards = await openBoards()
  const { backend, waiting, busy, postMany } = boards
  const claiming = waiting.claimNext({ accept: mine })
  const left = backend.whenUnsubscribed()
  await postMany()
  await left
  const begin = performance.now()
  await busy.post('flow', {}, { name: 'mine', delay: '1500ms' })
  await claiming
  expect(performance.now() - begin).toBeGreaterThanOrEqual(1_500)
})

test('a delayed job whose cancel was requested is found at once', async () => {
  await using boards = await openBoards()
  const { backend, waiting, busy, postMany } = boards
  const claiming = waiting.claimNext({ accept: mine })
  const left = backend.whenUnsubscribed()
  await postMany()
  await left
  const { uuid } = await busy.post('flow', {}, { name: 'mine', delay: '1h' })
  const [id = ''] = (await backend.jobs.list()).jobs.slice(-1)
  await backend.whenRead(id)
  // As a board does that loses its connection before it has trashed the job itself.
  await backend.signals.cancel({ id, job: 'mine', who: 'busy', reason: 'not needed' })
  const [claim] = await claiming
  expect(claim).toMatchObject({ job: { uuid }, cancelled: { aborted: true } })
})

variant('a new caller finds a job that the polling has rejected', async () => {
  await using boards = await openBoards()
  const { backend, waiting, busy, postMany } = boards
  const stop = new AbortController()
  const first = rejectionOf(waiting.claimNext({ accept: mine, signal: stop.signal }))
  const left = backend.whenUnsubscribed()
  await postMany()
  await left
  await busy.post('flow', {}, { name: 'yours', delay: '1h' })
  await backend.whenRead((await backend.jobs.list()).jobs.at(-1) ?? '')
  const second = waiting.claimNext({ accept: ({ name }) => name === 'yours' })
  const leftAgain = backend.whenUnsubscribed()
  await postMany()
  await leftAgain
  backend.ahead = 3_600_000
  expect((await second)[0].job.name).toBe('yours')
  stop.abort(new Error('enough'))
  await first
})

test('an error of a look is reported, and the view is opened again and stays open', async () => {
  await using boards = await openBoards()
  const { backend, waiting, busy, postMany } = boards
  const errors: string[] = []
  waiting.on('error', ({ error }) => errors.push(error.message))
  overrideRole(backend, 'jobs', () => ({
    listUnclaimed: async () => {
      throw new Error('no listing today')
    },
  }))
  const claiming = waiting.claimNext({ accept: mine })
  const left = backend.whenUnsubscribed()
  await postMany()
  await left
  await vi.waitFor(() => expect(waiting.jobCount).toBeDefined(), { timeout: 5_000 })
  await postMany()
  await busy.post('flow', {}, { name: 'mine' })
  await claiming
  expect(errors).toEqual(['no listing today'])
  expect(backend.calls).toEqual(['subscribe', 'unsubscribe', 'subscribe'])
})

test.each([
  ['with a time limit', { timeout: '1h' as const }],
  ['beside a listener of the same board', {}],
  ['beside a caller with a time limit', {}],
])('a caller %s does not poll', async (what, options) => {
  await using boards = await openBoards()
  const { backend, waiting, busy, postMany } = boards
  if (what.includes('listener')) waiting.on('posted', () => undefined)
  if (what.includes('beside a caller')) void rejectionOf(waiting.claimNext({ accept: () => false, timeout: '1h' }))
  const claiming = waiting.claimNext({ accept: mine, ...options })
  await postMany()
  await busy.post('flow', {}, { name: 'mine' })
  await claiming
  expect(backend.calls).toEqual(['subscribe'])
})

describe('the budget of changes', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())
  const limits = { burst: 100, perSecond: 10, maxRefillMs: 5_000 }

  test('allows a burst, and is spent by the change after it', () => {
    const budget = new ChangeBudget(limits)
    budget.charge(100)
    expect(budget.isSpent).toBe(false)
    budget.charge(101)
    expect(budget.isSpent).toBe(true)
  })

  test('is not spent by traffic below its rate', () => {
    const budget = new ChangeBudget(limits)
    for (let received = 0; received < 1_000; received += 10) {
      budget.charge(received)
      expect(budget.isSpent).toBe(false)
      vi.advanceTimersByTime(1_000)
    }
  })

  test('says when it is full again, within a limit', () => {
    const budget = new ChangeBudget(limits)
    budget.charge(110)
    expect(budget.refillMs).toBe(5_000)
    vi.advanceTimersByTime(10_000)
    budget.charge(110)
    expect(budget.refillMs).toBe(1_000)
    vi.advanceTimersByTime(1_000)
    budget.charge(210)
    expect(budget.isSpent).toBe(false)
    budget.charge(211)
    expect(budget.isSpent).toBe(true)
  })

  test('is filled by a claim', () => {
    const budget = new ChangeBudget(limits)
    budget.charge(100_000)
    budget.fill(100_000)
    budget.charge(100_100)
    expect(budget.isSpent).toBe(false)
  })
})
