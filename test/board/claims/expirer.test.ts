/** Expiry on a clock that the test turns: holds of processes that die, faults of the server. */
import { describe, expect, test, vi } from 'vitest'
import { JobBoard } from '../../../src/board/api/job-board.ts'
import { MemoryBackend } from '../../../src/board/backends/memory/index.ts'
import { MemorySpace } from '../../../src/board/backends/memory/space.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { AccessDenied, NotConnected, Timeout } from '../../../src/core/errors.ts'
import { ManualClock } from '../../../src/testing/index.ts'
import { nextEvent, rejectionOf } from '../events.ts'
import { all, namesOn } from '../jobs.ts'

const DISK = { exclusive: ['disk'] }

/** Two boards of one space: `claimer` waits for jobs of others. */
async function openSetup() {
  const clock = new ManualClock()
  const space = new MemorySpace({ clock })
  const open = async (who: string) => {
    const backend = new MemoryBackend({ uri: 'memory:', space })
    const board = new JobBoard(backend, { who })
    await boardInternals(board).open()
    return { backend, board }
  }
  const [claimer, other] = await Promise.all([open('claimer'), open('other')])
  const stop = new AbortController()
  const waiting = claimer.board.claimNext({ accept: () => false, signal: stop.signal }).catch(() => undefined)
  return {
    ...{ clock, claimer, other },
    [Symbol.asyncDispose]: async () => {
      stop.abort()
      await waiting
      await Promise.all([claimer.board.close(), other.board.close()])
    },
  }
}

describe('a hold', () => {
  test('that waits for long stays as long as its process lives', async () => {
    await using setup = await openSetup()
    const { clock, claimer, other } = setup
    const first = await claimer.board.hold({ ...DISK, name: 'first' })
    const posted = nextEvent(claimer.board, 'posted')
    const waiting = other.board.hold({ ...DISK, name: 'second' })
    await posted
    for (let minutes = 0; minutes < 30; minutes += 1) {
      clock.advance('1m')
      expect(await namesOn(claimer.board)).toEqual(['first', 'second'])
    }
    expect(await all(claimer.board.trashed())).toEqual([])
    await first.release()
    const second = await waiting
    second.assertHeld()
    await second.release()
  })

  test('whose process dies while it waits leaves a job for about a minute', async () => {
    await using setup = await openSetup()
    const { clock, claimer, other } = setup
    const first = await claimer.board.hold({ ...DISK, name: 'first' })
    const posted = nextEvent(claimer.board, 'posted')
    const failed = rejectionOf(other.board.hold({ ...DISK, name: 'second' }))
    await posted
    // As its death: the session ends, and nothing is sent any more.
    await other.backend.session.close()
    clock.advance('59s')
    expect(await namesOn(claimer.board)).toEqual(['first', 'second'])
    const trashed = nextEvent(claimer.board, 'trashed')
    clock.advance('1s')
    expect((await trashed).job.name).toBe('second')
    expect(await all(claimer.board.trashed())).toMatchObject([
      { name: 'second', expired: true, reason: 'nobody started it within 1 min', who: 'claimer' },
    ])
    await first.release()
    await other.board.close()
    await failed
  })
})

test('a job that its poster claims expires while it waits for its turn', async () => {
  await using setup = await openSetup()
  const { clock, claimer, other } = setup
  const first = await claimer.board.hold(DISK)
  const posted = nextEvent(claimer.board, 'posted')
  const claiming = rejectionOf(other.board.postAndClaim('flow', {}, { resources: DISK, expiresAfter: '10m' }))
  await posted
  clock.advance('10m')
  expect(String(await claiming)).toContain('TRASHED')
  expect(await all(claimer.board.trashed())).toMatchObject([{ expired: true }])
  await first.release()
})

test('a job that could not be trashed is tried again, and the error is reported once', async () => {
  await using setup = await openSetup()
  const { clock, claimer } = setup
  const errors: Error[] = []
  claimer.board.on('error', ({ error }) => errors.push(error))
  const discard = vi.spyOn(claimer.backend.trash, 'discard').mockRejectedValue(new AccessDenied('it may not delete'))
  const job = await claimer.board.post('flow', {}, { expiresAfter: '1m' })
  clock.advance('1m')
  await vi.waitFor(() => expect(discard).toHaveBeenCalledTimes(1), 60_000)
  clock.advance('30s')
  expect(await namesOn(claimer.board)).toEqual(['flow'])
  clock.advance('30s')
  await vi.waitFor(() => expect(discard).toHaveBeenCalledTimes(2), 60_000)
  expect(errors).toHaveLength(1)
  // Without a connection it is tried again sooner, and the board reports that itself.
  discard.mockRejectedValue(new NotConnected('away'))
  clock.advance('1m')
  await vi.waitFor(() => expect(discard).toHaveBeenCalledTimes(3), 60_000)
  expect(errors).toHaveLength(1)
  discard.mockRestore()
  clock.advance('5s')
  expect(await job.wait()).toBe('TRASHED')
})

test('hundreds that expire at once are trashed, and none that does not', async () => {
  await using setup = await openSetup()
  const { clock, claimer, other } = setup
  const jobs = await Promise.all(
    Array.from({ length: 250 }, () => other.board.post('flow', {}, { expiresAfter: '1h' })),
  )
  await other.board.post('flow', {}, { name: 'kept', expiresAfter: '2h' })
  clock.advance('1h')
  await Promise.all(jobs.map((job) => job.wait()))
  expect(await namesOn(claimer.board)).toEqual(['kept'])
})

test('a caller that waits for a job is not woken for one that expires, and its timeout holds', async () => {
  await using setup = await openSetup()
  const { clock, other } = setup
  const job = await other.board.post('flow', {}, { expiresAfter: '1m' })
  clock.advance('1m')
  expect(await rejectionOf(other.board.claimNext({ timeout: 0 }))).toBeInstanceOf(Timeout)
  expect(await job.wait()).toBe('TRASHED')
})
