/** A job that is asked back is given up wherever it stands: at once where nothing was done, else by whoever runs it. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import type { PerformContext } from '../../../src/board/index.ts'
import { Cancelled, NotFound } from '../../../src/core/errors.ts'
import { nextEvent, nextSession, recordEvents, rejectionOf, whenAborted, whenLost } from '../../board/events.ts'
import { all, claimed, namesOn, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'
import type { BoardCapabilities } from './capabilities.ts'

/** Work that goes on until it is stopped. */
async function untilStopped(_: unknown, { signal }: PerformContext): Promise<never> {
  throw await whenAborted(signal)
}

export function cancellingContract({ open, expire }: Place, capabilities: BoardCapabilities): void {
  const { keys, delays, resources } = capabilities
  describe('a job that was never run', () => {
    test('is trashed at once, with who and why, and every board reports it', async () => {
      const [here, there] = await Promise.all([open({ who: 'here' }), open({ who: 'there' })])
      const job = await here.post('flow', { n: 1 }, { name: 'job' })
      using _view = await there.view()
      await refresh(there)
      const history = recordEvents(there)
      await there.cancel(await there.find(job.uuid), { reason: 'a mistake' })
      expect(await job.wait({ timeout: '20s' })).toBe('TRASHED')
      const [entry, ...others] = await all(here.trashed())
      expect(others).toEqual([])
      expect(entry).toMatchObject({ uuid: job.uuid, who: 'there', details: job.details, attempts: [] })
      expect(entry?.reason).toContain('a mistake')
      expect(entry?.reason).toContain('there')
      expect(history).toEqual(['trashed job'])
      expect(await namesOn(here)).toEqual([])
    })

    if (keys && delays && resources)
      test('is trashed also when no owner could claim it now, and frees its key', async () => {
        const [here, there] = await Promise.all([open(), open()])
        const disk = { exclusive: ['disk'] }
        await here.claim(await here.post('flow', {}, { name: 'owner', resources: disk }))
        const jobs = [
          await here.post('flow', {}, { name: 'blocked', resources: disk }),
          await here.post('flow', {}, { name: 'resting', delay: '1h', key: 'one' }),
          await here.post('flow', {}, { name: 'paused' }),
        ]
        await here.pause()
        for (const job of jobs) await there.cancel(job)
        expect((await all(here.trashed())).map(({ name }) => name)).toEqual(['blocked', 'resting', 'paused'])
        expect(await namesOn(here)).toEqual(['owner'])
        expect(await here.post('flow', {}, { key: 'one' })).toMatchObject({ created: true })
      })
  })

  describe('a job that runs', () => {
    test('is asked back from its owner, whichever board asks, and goes to the trash when it has undone what it did', async () => {
      const [owner, other] = await Promise.all([open({ who: 'owner' }), open({ who: 'other' })])
      const job = await owner.post('flow', {}, keys ? { key: 'one' } : {})
      const [claim] = await owner.claimNext()
      const ended = claim.perform(untilStopped)
      await other.cancel(job, { reason: 'too expensive' })
      expect(await ended).toBe('trashed')
      expect(claim.cancelled.reason).toBeInstanceOf(Cancelled)
      expect(String(claim.cancelled.reason)).toMatch(/too expensive/)
      expect(String(claim.cancelled.reason)).toMatch(/other/)
      expect(claim.lost.aborted).toBe(false)
      const [entry] = await all(other.trashed())
      expect(entry).toMatchObject({ uuid: job.uuid, who: 'owner', attempts: [{ who: 'owner', ended: 'failed' }] })
      expect(entry?.reason).toContain('too expensive')
      expect(await other.post('flow', {}, keys ? { key: 'one' } : {})).toMatchObject({ created: true })
    })

    test('says to everybody that it was asked back, by whom, and why, until it has left', async () => {
      const [owner, other] = await Promise.all([open({ who: 'owner' }), open({ who: 'other' })])
      const { uuid } = await owner.post('flow', {})
      const [claim] = await owner.claimNext()
      const before = await other.find(uuid)
      expect([before.cancelRequested, await other.cancellation(before)]).toEqual([false, undefined])
      await other.cancel(before, { reason: 'too expensive' })
      await whenAborted(claim.cancelled)
      const late = await open({ who: 'late' })
      for (const board of [owner, other, late]) {
        const [job] = await all(board.jobs({ ensureFresh: true }))
        expect(job?.cancelRequested).toBe(true)
        expect(job && (await board.cancellation(job))).toMatchObject({ who: 'other', reason: 'too expensive' })
      }
      await claim.consume()
      expect(await owner.cancellation(claim.job)).toBeUndefined()
    })

    test('and is done all the same is done', async () => {
      const board = await open()
      const job = await board.post('flow', {})
      const [claim] = await board.claimNext()
      const ended = await claim.perform(async () => {
        await board.cancel(job)
        await whenAborted(claim.cancelled)
      })
      expect([ended, job.state]).toEqual(['consumed', 'COMPLETE'])
      expect(await all(board.trashed())).toEqual([])
    })

    test('and is given back instead is claimed by another at once, with the request still there', async () => {
      const [owner, nextOwner] = await Promise.all([open(), open()])
      const job = await owner.post('flow', {})
      const [claim] = await owner.claimNext()
      await nextOwner.cancel(job, { reason: 'enough' })
      await whenAborted(claim.cancelled)
      const inherited = nextOwner.claimNext()
      await claim.abandon(delays ? { delay: '1h' } : {})
      const [taken] = await inherited
      expect(taken.run).toBe(2)
      expect(taken.cancelled.aborted).toBe(true)
      expect(String(taken.cancelled.reason)).toContain('enough')
      expect(await taken.perform(untilStopped)).toBe('trashed')
    })

    test('whose owner dies is claimed by another with the request still there, also by one that comes later', async () => {
      for (const nextOwners of ['there before', 'opened after'] as const) {
        const [owner, asker] = await Promise.all([open(), open()])
        const job = await owner.post('flow', {})
        const [claim] = await owner.claimNext()
        const lost = whenLost(claim)
        const back = nextSession(owner)
        if (nextOwners === 'there before') {
          await asker.cancel(job)
          await whenAborted(claim.cancelled)
          await expire(owner)
        } else {
          // The request meets a job whose owner is dying.
          await Promise.all([asker.cancel(job), expire(owner)])
        }
        await lost
        const nextOwner = nextOwners === 'there before' ? asker : await open()
        const [taken] = await nextOwner.claimNext()
        expect([taken.run, taken.cancelled.aborted]).toEqual([2, true])
        expect(await taken.perform(untilStopped)).toBe('trashed')
        await back
      }
    })
  })

  test('a job that waits after a run is claimed once more, so that what it did is undone', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('flow', {})
    await (await here.claim(job)).abandon({ failed: true, ...(delays ? { delay: '1h' } : {}) })
    await there.cancel(job, { reason: 'no more' })
    await refresh(here)
    expect(job.state).toBe('UNCLAIMED')
    const [claim] = await here.claimNext()
    expect(claim.cancelled.aborted).toBe(true)
    // Work that waits for the signal to fire would wait for ever: it is not begun.
    const work = vi.fn()
    expect(await claim.perform(work)).toBe('trashed')
    expect(work).not.toHaveBeenCalled()
    expect((await all(there.trashed()))[0]?.reason).toContain('no more')
  })

  test('asking twice changes nothing, not even the reason', async () => {
    const [owner, other] = await Promise.all([open(), open()])
    const job = await owner.post('flow', {})
    const [claim] = await owner.claimNext()
    await other.cancel(job, { reason: 'the first' })
    await Promise.all([owner.cancel(job, { reason: 'the second' }), other.cancel(job, { reason: 'the third' })])
    const said = String(await whenAborted(claim.cancelled))
    expect(said).toContain('the first')
    await claim.abandon()
    const [again] = await other.claimNext()
    expect(String(again.cancelled.reason)).toBe(said)
    await again.trash()
    expect(await all(owner.trashed())).toHaveLength(1)
  })

  test.each(['consume', 'trash'] as const)('a job that has left the board by %s is NotFound', async (settle) => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('flow', {}, { name: 'job' })
    const seen = await there.find(job.uuid)
    await (await claimed(here, 'job'))[settle]()
    expect(await rejectionOf(here.cancel(job))).toBeInstanceOf(NotFound)
    expect(await rejectionOf(there.cancel(seen))).toBeInstanceOf(NotFound)
  })

  test('a request and a claim at the same time: trashed before it is claimed, or asked back from who claimed it', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const endings = new Set<string>()
    let round = 0
    // Which of the two is faster depends on the backend and the machine: until both were seen.
    for (; round < 30 || (endings.size < 2 && round < 300); round++) {
      const job = await here.post('flow', {}, { name: `${round}` })
      const seen = await there.find(job.uuid)
      const [claiming, asking] = round % 2 ? [here, there] : [there, here]
      const its = (board: typeof here) => (board === here ? job : seen)
      const first = round % 3 ? undefined : asking.cancel(its(asking))
      // Claims are begun sooner or later, relative to requests, depending on the backend: each gets its chances.
      for (let turn = 0; first !== undefined && turn < round; turn++) await nextTurn()
      const claimed = claiming.claim(its(claiming)).catch(() => undefined)
      for (let turn = 0; first === undefined && turn < round; turn++) await nextTurn()
      await (first ?? asking.cancel(its(asking)))
      const claim = await claimed
      if (claim) expect(await claim.perform(untilStopped)).toBe('trashed')
      expect(await job.wait({ timeout: '20s' })).toBe('TRASHED')
      endings.add(claim ? 'asked back' : 'trashed')
    }
    expect([...endings].sort()).toEqual(['asked back', 'trashed'])
    expect(await all(here.trashed())).toHaveLength(round)
  })

  test('a job that is restored from the trash was never asked back', async () => {
    const [here, there] = await Promise.all([open(), open()])
    using _view = await here.view()
    const job = await here.post('flow', {})
    const [claim] = await here.claimNext()
    await there.cancel(job)
    await claim.perform(untilStopped)
    const [entry] = await all(there.trashed())
    const restored = nextEvent(here, 'posted')
    if (entry) await there.restore(entry)
    await restored
    expect((await here.claimNext())[0].cancelled.aborted).toBe(false)
  })
}
