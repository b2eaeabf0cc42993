/** A job rests as long as it was told to, once; a run lasts as long as it may. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { InvalidArgument, Timeout, Unclaimable } from '../../../src/core/errors.ts'
import { monotonic } from '../../../src/core/time.ts'
import { nextEvent, rejectionOf, whenLost } from '../../board/events.ts'
import { all, claimed, namesOn, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'
import type { BoardCapabilities } from './capabilities.ts'

/** Milliseconds: long enough to be seen resting, short enough to be waited for. */
const SHORT = 300

export function delaysContract({ open, expire }: Place, { resources }: BoardCapabilities): void {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  test('a job is not claimed before its delay is over, and then by a caller that waits', async () => {
    const [here, there] = await Promise.all([open(), open()])
    // Longer than what follows takes on a busy machine.
    const delay = 3_000
    const job = await here.post('flow', {}, { name: 'late', delay })
    await here.post('flow', {}, { name: 'early', priority: 'LOW' })
    const seen = await there.find(job.uuid)
    const [first, ...others] = await here.claimNext({ max: 2 })
    expect([first.job.name, others]).toEqual(['early', []])
    expect(await namesOn(there, { onlyUnclaimed: true })).toEqual(['late'])
    const [claim] = await Promise.race([here.claimNext(), there.claimNext()])
    expect(claim.job.name).toBe('late')
    expect(Date.now()).toBeGreaterThanOrEqual((seen.postedAt?.getTime() ?? Number.NaN) + delay)
  })

  test('the end of a delay wakes who waits for a job', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await here.post('flow', {}, { delay: '1h' })
    const waiting = [here, there].map((board) => board.wait({ timeout: '20s' }))
    await here.post('flow', {}, { delay: SHORT })
    await Promise.all(waiting)
    expect((await there.claimNext())[0].run).toBe(1)
  })

  test('a job that rests is refused to who wants this very one, until when is said', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('flow', {}, { delay: '1h' })
    for (const board of [here, there]) {
      const failure = await rejectionOf(board.claim(job))
      expect(failure).toBeInstanceOf(Unclaimable)
      expect(String(failure)).toContain(new Date().toISOString().slice(0, 4))
    }
  })

  test('a claim takes the delay away: neither the death of its owner nor a return starts it again', async () => {
    const [mortal, other] = await Promise.all([open(), open()])
    using _view = await other.view()
    const job = await mortal.post('flow', {}, { delay: SHORT })
    const seen = await other.find(job.uuid)
    const [claim] = await mortal.claimNext()
    const [lost, back] = [whenLost(claim), nextEvent(other, 'abandoned')]
    await expire(mortal)
    await Promise.all([lost, back])
    await refresh(other)
    expect(await other.waitingFor(seen)).not.toMatchObject({ kind: 'delay' })
    const again = await other.claim(seen)
    await again.abandon()
    expect(await other.waitingFor(seen)).not.toMatchObject({ kind: 'delay' })
    expect((await other.claim(seen)).run).toBe(3)
  })

  test('a job that is given back may rest, counted from then', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('flow', {}, { name: 'job' })
    const seen = await there.find(job.uuid)
    const before = Date.now()
    await (await here.claim(job)).abandon({ delay: '1h' })
    await refresh(there)
    for (const [board, its] of [
      [here, job],
      [there, seen],
    ] as const) {
      const waiting = await board.waitingFor(its)
      expect(waiting?.kind).toBe('delay')
      const until = waiting?.kind === 'delay' ? waiting.until.getTime() : Number.NaN
      expect(until - before - 3_600_000).toBeGreaterThanOrEqual(0)
      expect(until - Date.now() - 3_600_000).toBeLessThanOrEqual(0)
      expect(await rejectionOf(board.claim(its))).toBeInstanceOf(Unclaimable)
    }
  })

  test('a job whose run failed rests, the longer the more often', async () => {
    const FIRST = 4_000
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    const [here, there] = await Promise.all([open(), open()])
    // Longer than what follows takes on a busy machine.
    const job = await here.post('flow', {}, { backOff: { first: FIRST } })
    const seen = await there.find(job.uuid)
    const claim = await here.claim(job)
    const before = Date.now()
    expect(await claim.perform(() => Promise.reject(new Error('boom')))).toBe('abandoned')
    await refresh(there)
    const waiting = await there.waitingFor(seen)
    const until = waiting?.kind === 'delay' ? waiting.until.getTime() : Number.NaN
    expect(until - before).toBeGreaterThanOrEqual(FIRST / 2)
    expect(until - Date.now()).toBeLessThanOrEqual(FIRST / 2)
    const [second] = await there.claimNext()
    expect(second.job.attempts).toMatchObject([{ ended: 'failed' }, {}])
    const again = Date.now()
    await second.perform(() => Promise.reject(new Error('boom')))
    await refresh(there)
    const longer = await there.waitingFor(seen)
    expect((longer?.kind === 'delay' ? longer.until.getTime() : Number.NaN) - again).toBeGreaterThanOrEqual(FIRST)
  })

  if (resources)
    test('a job that rests does not keep others from the resource that it will want', async () => {
      const board = await open()
      await board.post('flow', {}, { name: 'resting', delay: '1h', resources: { exclusive: ['disk'] } })
      await board.post('flow', {}, { name: 'awake', resources: { exclusive: ['disk'] } })
      expect((await board.claimNext({ max: 2 })).map(({ job }) => job.name)).toEqual(['awake'])
    })

  test.each(['delay', 'deadline'] as const)('a %s that is no duration is refused as InvalidArgument', async (field) => {
    const board = await open()
    for (const value of [-1, Number.NaN, Number.POSITIVE_INFINITY, 'soon' as '1s']) {
      expect(await rejectionOf(board.post('flow', {}, { [field]: value })), String(value)).toBeInstanceOf(
        InvalidArgument,
      )
    }
    expect(await board.countJobs()).toBe(0)
  })

  describe('a deadline', () => {
    test('ends a run that takes too long, which counts as failed', async () => {
      const board = await open()
      await board.post('flow', {}, { deadline: 30, maxAttempts: 1 })
      const [claim] = await board.claimNext()
      const ended = await claim.perform(async (_, { signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
        expect(signal.reason).toBeInstanceOf(Timeout)
        throw signal.reason
      })
      expect(ended).toBe('trashed')
      const [entry] = await all(board.trashed())
      expect(entry?.attempts).toMatchObject([{ ended: 'failed' }])
      expect(entry?.reason).toContain('30 ms')
    })

    test('counts from the claim: a run that is late before it is performed has failed, and the work is not called', async () => {
      const board = await open()
      await board.post('flow', {}, { deadline: 1, maxAttempts: 1 })
      const [claim] = await board.claimNext()
      const since = monotonic()
      while (monotonic() - since <= 1) await refresh(board)
      const work = vi.fn()
      expect(await claim.perform(work)).toBe('trashed')
      expect(work).not.toHaveBeenCalled()
      expect((await all(board.trashed()))[0]?.reason).toContain('1 ms')
    })

    test('of no time at all is refused', async () => {
      const board = await open()
      expect(String(await rejectionOf(board.post('flow', {}, { deadline: 0 })))).toMatch(
        /deadline must be longer than 0/,
      )
    })

    test('is of each run, and leaves alone what is done in time', async () => {
      const [here, there] = await Promise.all([open(), open()])
      await here.post('flow', {}, { name: 'job', deadline: '1h' })
      const [claim] = await there.claimNext()
      await claim.abandon()
      const again = await claimed(here, 'job')
      let signal: AbortSignal | undefined
      expect(await again.perform((_, context) => (signal = context.signal))).toBe('consumed')
      expect(signal?.aborted).toBe(false)
    })
  })
}
