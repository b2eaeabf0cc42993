/** Which postings a live view keeps, and that what it says of their size is true, whatever happens to their jobs. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../../src/board/entry.ts'
import type { JobBoard } from '../../../src/board/index.ts'
import { MemoryBackend, memorySpace } from '../../../src/board/memory/index.ts'
import { isWhole } from '../../../src/board/outline.ts'
import { encodePosting, makePosting } from '../../../src/board/posting.ts'
import type { Priority } from '../../../src/board/priority.ts'
import { LiveView } from '../../../src/board/view/live-view.ts'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { failureOf } from '../../board/events.ts'
import { all, claimed } from '../../board/jobs.ts'
import { openSmall } from './small-view.ts'

const STORE = { text: 'x'.repeat(1_000) }
/** As large as all that are posted here. */
const ONE = encodePosting(makePosting({ name: '0000', details: { flow: 'flow', store: STORE }, delay: 1_000 }), {
  encoding: 'msgpack',
  limit: 2_000,
}).length
const everything = { accept: () => true, suspectHeld: false }

describe('a view with room for ten postings', () => {
  let name: string
  let board: JobBoard
  let view: LiveView
  let end: () => Promise<void>

  beforeEach(async () => {
    name = randomUUID()
    board = await openSmall(name, { viewBytes: Number.POSITIVE_INFINITY })
    const backend = new MemoryBackend({ uri: `memory:${name}`, space: memorySpace(name) })
    const stop = new AbortController()
    const ignored = () => undefined
    const listener = { happened: ignored, cancelled: ignored, unaccepted: ignored, failed: ignored }
    view = new LiveView({ backend, listener, bytes: 10 * ONE, unacceptedAfter: 0, signal: stop.signal })
    await backend.open({
      changes: (batch) => view.apply(batch),
      gap: () => view.gap(),
      counted: () => undefined,
      holds: () => true,
      paused: () => undefined,
      session: () => undefined,
      error: () => undefined,
    })
    end = async () => {
      stop.abort()
      await backend.close()
      await board.close()
    }
  })

  afterEach(() => end())

  async function post(count: number, options: { priority?: Priority; delay?: number } = {}): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      await board.post('flow', STORE, { name: String(board.jobCount).padStart(4, '0'), ...options })
    }
    await view.settled()
  }

  function kept(): string[] {
    return names(({ stored, claimed }) => stored !== undefined && isWhole(stored) && !claimed)
  }

  function names(which: (entry: Entry) => boolean): string[] {
    return [...view.entries()].filter(which).map(({ stored }) => stored?.posting.name ?? '')
  }

  /** The sum anew, of what lies on the board. */
  function trueBytes(): number {
    const whole = [...view.entries()].filter(({ stored, claimed }) => stored && isWhole(stored) && !claimed)
    return whole.reduce((sum, { id }) => sum + (memorySpace(name).read(id ?? '')?.bytes.length ?? 0), 0)
  }

  test('keeps all while they fit, and knows how large they are', async () => {
    await post(9)
    expect(kept()).toHaveLength(9)
    expect(view.queue.bytes).toBe(trueBytes())
    expect(view.queue.firstMissing).toBeUndefined()
  })

  test('says how large they are whatever happens to the jobs', async () => {
    await post(6)
    const check = async () => {
      await view.settled()
      expect(view.queue.bytes).toBe(trueBytes())
    }
    const [first, second, third] = await board.claimNext({ max: 3 })
    await check()
    expect(kept()).toHaveLength(3)
    await first.consume()
    await second?.abandon({ reason: 'a longer posting' })
    await third?.trash()
    await check()
    expect(kept()).toHaveLength(4)
    for await (const job of board.trashed()) await board.restore(job)
    const [cancelled] = await all(board.jobs())
    if (cancelled) await board.cancel(cancelled)
    view.gap()
    await check()
    await claimed(board, '0004')
    await board.close()
    await check()
    board = await openSmall(name, { viewBytes: Number.POSITIVE_INFINITY })
  })

  test('gives up the last in claim order, and whatever comes behind them', async () => {
    await post(25)
    expect(view.queue.bytes).toBeLessThanOrEqual(10 * ONE)
    expect(view.queue.bytes).toBe(trueBytes())
    const before = kept()
    expect(before.length).toBeGreaterThan(5)
    expect(before).toEqual(names(() => true).slice(0, before.length))
    await post(3, { priority: 'HIGH' })
    expect(view.queue.bytes).toBeLessThanOrEqual(10 * ONE)
    expect(kept()).toEqual([...before.filter((kept) => kept < (before.at(-3) ?? '')), '0025', '0026', '0027'])
    expect(view.size).toBe(28)
  })

  test('gives up first what cannot be taken yet', async () => {
    await post(8, { delay: 3_600_000 })
    await post(7)
    const [delayed, waiting] = [kept().filter((name) => name < '0008'), kept().filter((name) => name >= '0008')]
    expect(waiting).toHaveLength(7)
    expect(delayed[0]).toBe('0000')
    expect(delayed.length).toBeLessThan(4)
  })

  test('reads ahead when there is room, up to that and in order, and not before somebody asks', async () => {
    await post(25)
    const before = kept()
    for (const claim of await board.claimNext({ max: before.length - 2 })) await claim.consume()
    await view.settled()
    expect(kept()).toHaveLength(2)
    view.kept.readAhead(everything, { starved: false })
    await reached(() => kept().length >= before.length)
    expect(view.queue.bytes).toBeLessThanOrEqual(10 * ONE)
    expect(kept()).toEqual(names(() => true).slice(0, before.length))
  })

  test('keeps what comes behind one that is missing while there is plenty of room', async () => {
    await post(25)
    for (const claim of await board.claimNext({ max: kept().length - 2 })) await claim.consume()
    await post(1)
    expect(kept()).toHaveLength(3)
  })

  describe('for one who has nothing to claim', () => {
    const need = async (name: string) => {
      const accept = (posting: { name: string }) => posting.name === name
      view.kept.readAhead({ ...everything, accept }, { starved: false })
      view.kept.readAhead({ ...everything, accept }, { starved: true })
      await reached(() => kept().includes(name))
    }

    test('reads what that one needs, though there is no room, and keeps it until it is claimed', async () => {
      await post(25)
      const before = kept()
      await need('0024')
      await post(5, { priority: 'HIGH' })
      expect(kept()).toContain('0024')
      view.gap()
      await view.settled()
      expect(kept()).toContain('0024')
      expect(kept().length).toBeLessThanOrEqual(before.length + 2)
      await (await claimed(board, '0024')).abandon()
      await view.settled()
      expect(kept()).not.toContain('0024')
      expect(view.queue.bytes).toBe(trueBytes())
    })

    test('keeps no more than before once that was claimed', async () => {
      await post(40)
      for (const name of ['0035', '0036', '0037', '0038', '0039']) {
        await need(name)
        await (await claimed(board, name)).consume()
      }
      await post(12, { priority: 'HIGH' })
      expect(view.queue.bytes).toBeLessThanOrEqual(10 * ONE)
    })
  })

  test('keeps what is being tried', async () => {
    await post(9)
    const tried = view.queue.take({ ...everything, max: 9, spread: 1 })
    await post(5, { priority: 'HIGH' })
    expect(kept().slice(0, 9)).toEqual(tried.map(({ stored }) => stored.posting.name))
    expect(view.queue.bytes).toBe(trueBytes())
  })

  test('after a gap it knows everything anew, and keeps no more than before', async () => {
    await post(25)
    view.gap()
    await view.settled()
    expect(view.queue.bytes).toBeLessThanOrEqual(10 * ONE)
    expect(view.queue.bytes).toBe(trueBytes())
    expect(view.queue.size).toBe(25)
  })

  async function reached(state: () => boolean): Promise<void> {
    while (!state()) await view.changed.wait()
  }
})

test.each([-1, Number.NaN, '64mb'])('a limit of %j is refused', async (viewBytes) => {
  expect(await failureOf(openSmall('refused', { viewBytes: viewBytes as number }))).toBeInstanceOf(InvalidArgument)
})
