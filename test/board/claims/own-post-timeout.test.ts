/** The time limit of `postAndClaim`: it begins when the job is on the board, and nothing that the caller waits for begins it anew. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import type { PostAndClaimOptions } from '../../../src/board/api/options.ts'
import { MemoryBackend, memorySpace } from '../../../src/board/backends/memory/index.ts'
import type { Claim } from '../../../src/board/index.ts'
import { Timeout, Unclaimable } from '../../../src/core/errors.ts'
import { all } from '../jobs.ts'
import { SlowBackend } from '../slow-backend.ts'

const DISK = { resources: { exclusive: ['disk'] } }
const TIMEOUT_MS = 1_000

describe('the time limit of a job that its poster claims', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** A board that is not viewed yet, on a slow backend, and one beside it whose job holds the disk. */
  async function openScene() {
    const name = randomUUID()
    const backend = new SlowBackend(name)
    const board = new JobBoard(backend, { who: 'slow' })
    const other = new JobBoard(new MemoryBackend({ uri: `memory:${name}`, space: memorySpace(name) }), { who: 'other' })
    await Promise.all([board.open(), other.open()])
    const holder = await other.postAndClaim('flow', {}, DISK)
    /** What the call has come to; undefined while it is under way. */
    let outcome: Claim | unknown
    return {
      ...{ board, backend, holder },
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
      trash: async () => (await all(board.trashed())).map((job) => job.name),
      [Symbol.asyncDispose]: async () => {
        await Promise.all([board.close(), other.close()])
      },
    }
  }

  test('includes the time until the view is open: the wait for its turn has only what is left', async () => {
    await using scene = await openScene()
    const listing = scene.backend.stop('list', 'after')
    scene.begin()
    await listing.there
    expect(await scene.outcomeAfter(600)).toBeUndefined()
    listing.release()
    expect(await scene.outcomeAfter(399)).toBeUndefined()
    expect(await scene.outcomeAfter(1)).toBeInstanceOf(Timeout)
    expect(await scene.trash()).toEqual(['mine'])
  })

  test('ends also the wait for a view that does not open', async () => {
    await using scene = await openScene()
    const listing = scene.backend.stop('list', 'before')
    scene.begin()
    await listing.there
    expect(await scene.outcomeAfter(TIMEOUT_MS - 1)).toBeUndefined()
    expect(await scene.outcomeAfter(1)).toBeInstanceOf(Timeout)
    expect(await scene.trash()).toEqual(['mine'])
    listing.release()
  })

  test('does not begin anew when a claim is refused', async () => {
    await using scene = await openScene()
    const { backend } = scene
    const claim = backend.stop('claim', 'before')
    scene.begin({})
    await claim.there
    let refused = 0
    backend.claim = async (choices) => {
      refused += 1
      return choices.map(() => ({ error: new Unclaimable('somebody who cannot be seen holds its resource') }))
    }
    expect(await scene.outcomeAfter(600)).toBeUndefined()
    claim.release(new Unclaimable('another was faster'))
    expect(await scene.outcomeAfter(399)).toBeUndefined()
    expect(refused).toBeGreaterThan(0)
    expect(await scene.outcomeAfter(1)).toBeInstanceOf(Timeout)
    expect(await scene.trash()).toEqual(['mine'])
  })

  test('does not take away a claim that was requested within it, when its answer comes later', async () => {
    await using scene = await openScene()
    const { holder, backend } = scene
    scene.begin()
    expect(await scene.outcomeAfter(600)).toBeUndefined()
    const claim = backend.stop('claim', 'after')
    await holder.consume()
    await claim.there
    expect(await scene.outcomeAfter(5_000)).toBeUndefined()
    claim.release()
    expect(await scene.outcomeAfter(0)).toMatchObject({ run: 1, job: { name: 'mine' } })
    expect(await scene.trash()).toEqual([])
  })

  test('begins when the job is on the board: a slow post uses nothing of it', async () => {
    await using scene = await openScene()
    const post = scene.backend.stop('post', 'after')
    scene.begin()
    await post.there
    expect(await scene.outcomeAfter(5_000)).toBeUndefined()
    post.release()
    expect(await scene.outcomeAfter(TIMEOUT_MS - 1)).toBeUndefined()
    expect(await scene.outcomeAfter(1)).toBeInstanceOf(Timeout)
    expect(await scene.trash()).toEqual(['mine'])
  })
})
