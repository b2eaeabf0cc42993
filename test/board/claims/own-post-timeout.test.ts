/** The time limit of `postAndClaim`: it begins with the call, and is kept also while nothing is answered. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import type { PostAndClaimOptions } from '../../../src/board/api/options.ts'
import { MemoryBackend, memorySpace } from '../../../src/board/backends/memory/index.ts'
import type { Claim } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { Timeout, Unclaimable } from '../../../src/core/errors.ts'
import { all } from '../jobs.ts'
import { SlowBackend } from '../slow-backend.ts'

const DISK = { resources: { exclusive: ['disk'] } }
const TIMEOUT_MS = 1_000

describe('the time limit of a job that its poster claims', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** A board that is not viewed yet, on a slow backend, and one beside it whose job holds the disk. */
  async function openSetup() {
    const name = randomUUID()
    const backend = new SlowBackend(name)
    const board = new JobBoard(backend, { who: 'slow' })
    const other = new JobBoard(new MemoryBackend({ uri: `memory:${name}`, space: memorySpace(name) }), { who: 'other' })
    await Promise.all([boardInternals(board).open(), boardInternals(other).open()])
    const holder = await other.postAndClaim('flow', {}, DISK)
    /** What the call has come to; undefined while it is under way. */
    let outcome: Claim | unknown
    return {
      ...{ board, other, backend, holder },
      begin: (options: PostAndClaimOptions = DISK) => {
        const note = (result: unknown) => {
          outcome = result
        }
        board.postAndClaim('flow', {}, { name: 'mine', timeout: TIMEOUT_MS, ...options }).then(note, note)
      },
      /** Lets the time pass, and returns what the call has come to. */
      outcomeAfter: async (ms: number) => {
        await vi.advanceTimersByTimeAsync(ms)
        return outcome
      },
      trash: async () => (await all(other.trashed())).map((job) => job.name),
      [Symbol.asyncDispose]: async () => {
        await Promise.all([board.close(), other.close()])
      },
    }
  }

  test('includes the time until the view is open: the wait for its turn has only what is left', async () => {
    await using setup = await openSetup()
    const listing = setup.backend.stop('list', 'after')
    setup.begin()
    await listing.there
    expect(await setup.outcomeAfter(600)).toBeUndefined()
    listing.release()
    expect(await setup.outcomeAfter(399)).toBeUndefined()
    expect(await setup.outcomeAfter(1)).toBeInstanceOf(Timeout)
    expect(await setup.trash()).toEqual(['mine'])
  })

  test('ends also the wait for a view that does not open', async () => {
    await using setup = await openSetup()
    const listing = setup.backend.stop('list', 'before')
    setup.begin()
    await listing.there
    expect(await setup.outcomeAfter(TIMEOUT_MS - 1)).toBeUndefined()
    expect(await setup.outcomeAfter(1)).toBeInstanceOf(Timeout)
    expect(await setup.trash()).toEqual(['mine'])
    listing.release()
  })

  test('does not begin anew when a claim is refused', async () => {
    await using setup = await openSetup()
    const { backend } = setup
    const claim = backend.stop('claim', 'before')
    setup.begin({})
    await claim.there
    let refused = 0
    backend.claims.claim = async (choices) => {
      refused += 1
      return choices.map(() => ({ error: new Unclaimable('somebody who cannot be seen holds its resource') }))
    }
    expect(await setup.outcomeAfter(600)).toBeUndefined()
    claim.release(new Unclaimable('another was faster'))
    expect(await setup.outcomeAfter(399)).toBeUndefined()
    expect(refused).toBeGreaterThan(0)
    expect(await setup.outcomeAfter(1)).toBeInstanceOf(Timeout)
    expect(await setup.trash()).toEqual(['mine'])
  })

  test('does not take away a claim that was requested within it, when its answer comes a moment later', async () => {
    await using setup = await openSetup()
    const { holder, backend } = setup
    setup.begin()
    expect(await setup.outcomeAfter(600)).toBeUndefined()
    const claim = backend.stop('claim', 'after')
    await holder.consume()
    await claim.there
    expect(await setup.outcomeAfter(800)).toBeUndefined()
    claim.release()
    expect(await setup.outcomeAfter(0)).toMatchObject({ run: 1, job: { name: 'mine' } })
    expect(await setup.trash()).toEqual([])
  })

  test('is kept when no answer comes: a claim that is granted later is given up, and its job is in the trash', async () => {
    await using setup = await openSetup()
    const { holder, backend } = setup
    setup.begin()
    expect(await setup.outcomeAfter(600)).toBeUndefined()
    const claim = backend.stop('claim', 'after')
    await holder.consume()
    await claim.there
    expect(await setup.outcomeAfter(900)).toBeInstanceOf(Timeout)
    expect(await setup.trash()).toEqual([])
    claim.release()
    await setup.outcomeAfter(0)
    expect(await setup.trash()).toEqual(['mine'])
  })

  test('begins with the call: a post that is not answered in time is taken back when it is', async () => {
    await using setup = await openSetup()
    const post = setup.backend.stop('post', 'after')
    setup.begin()
    await post.there
    expect(await setup.outcomeAfter(TIMEOUT_MS)).toBeUndefined()
    expect(await setup.outcomeAfter(500)).toBeInstanceOf(Timeout)
    expect(await setup.trash()).toEqual([])
    post.release()
    await setup.outcomeAfter(0)
    expect(await setup.trash()).toEqual(['mine'])
  })

  test('of an owner that dies before its turn: nobody else runs the job, and it goes to the trash a minute later', async () => {
    await using setup = await openSetup()
    const { board, other, holder } = setup
    setup.begin({ ...DISK, timeout: '2h' })
    expect(await setup.outcomeAfter(600)).toBeUndefined()
    await board.close()
    await holder.consume()
    const claims: string[] = []
    const claiming = other.claimNext({ timeout: '61m' }).then(
      ([claim]) => claims.push(claim.job.name),
      () => undefined,
    )
    await setup.outcomeAfter(30_000)
    expect(await setup.trash()).toEqual([])
    await setup.outcomeAfter(60_000)
    expect(await setup.trash()).toEqual(['mine'])
    await setup.outcomeAfter(3_600_000)
    await claiming
    expect(claims).toEqual([])
    const [trashed] = await all(other.trashed())
    if (!trashed) throw new Error('it is in the trash')
    await other.restore(trashed)
    await setup.outcomeAfter(120_000)
    expect((await other.claimNext())[0].job.name).toBe('mine')
  })
})
