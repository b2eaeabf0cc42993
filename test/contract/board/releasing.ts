/** A claim that is taken away from an owner that lives: the job goes on elsewhere, and the owner learns of it. */
import { describe, expect, test } from 'vitest'
import type { JobBoard } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { ClaimLost, Conflict, InvalidArgument, NotFound, Unclaimable } from '../../../src/core/errors.ts'
import { rejectionOf, whenAborted, whenLost } from '../../board/events.ts'
import { all, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'
import type { BoardCapabilities } from './capabilities.ts'

export function releasingContract({ open, openUnviewed }: Place, capabilities: BoardCapabilities): void {
  test('a job is taken away from its owner, which learns of it, and another one goes on', async () => {
    const [owner, nextOwner, operator] = await Promise.all([
      open({ who: 'owner' }),
      open({ who: 'next-owner' }),
      open({ who: 'operator' }),
    ])
    const job = await owner.post('flow', {})
    const [claim] = await owner.claimNext()
    const told: unknown[] = []
    const performed = claim.perform(async (_, { signal }) => {
      told.push(await whenAborted(signal))
    })
    await refresh(nextOwner)
    const inherited = nextOwner.claimNext()
    const released = await operator.release(await operator.find(job.uuid), { reason: 'hangs since noon' })
    expect(released).toEqual({ owner: 'owner', run: 1, trashed: false })
    const [taken] = await inherited
    expect([taken.run, taken.job.uuid]).toEqual([2, job.uuid])
    expect(taken.fence).toBeGreaterThan(claim.fence)
    expect(taken.job.attempts).toEqual([
      { who: 'owner', at: expect.any(Date), ended: 'returned', reason: 'released by operator: hangs since noon' },
      { who: 'next-owner', at: expect.any(Date) },
    ])
    expect(await performed).toBe('lost')
    expect(told).toEqual([expect.any(ClaimLost)])
    expect(String(told[0])).toMatch(/taken away/)
    expect(await rejectionOf(claim.consume())).toBeInstanceOf(ClaimLost)
    await taken.consume()
    expect(await operator.countJobs()).toBe(0)
  })

  test('an owner that views nothing learns of it, too, and can claim the job again', async () => {
    const [owner, operator] = await Promise.all([openUnviewed({ who: 'owner' }), openUnviewed({ who: 'operator' })])
    const job = await owner.post('flow', {})
    const claim = await owner.claim(job)
    boardInternals(owner).closeUnusedView()
    const lost = whenLost(claim)
    await operator.release(await operator.find(job.ref))
    expect(await lost).toBeInstanceOf(ClaimLost)
    const [again] = await owner.claimNext()
    expect(again.job.attempts[0]).toMatchObject({ ended: 'returned', reason: 'released by operator' })
    await again.consume()
  })

  test('a board object can take its own claim away', async () => {
    const board = await open({ who: 'alone' })
    const job = await board.post('flow', {})
    const [claim] = await board.claimNext()
    const lost = whenLost(claim)
    expect(await board.release(job)).toMatchObject({ owner: 'alone', run: 1 })
    expect(await lost).toBeInstanceOf(ClaimLost)
    const [again] = await board.claimNext()
    expect(again.run).toBe(2)
    await again.consume()
  })

  test('it counts neither as a failure nor as a death, however often it happens', async () => {
    const [owner, operator] = await Promise.all([open(), open()])
    const job = await owner.post('flow', {}, { maxAttempts: 1 })
    for (let run = 1; run <= 12; run += 1) {
      const [claim] = await owner.claimNext()
      expect(claim.run).toBe(run)
      const lost = whenLost(claim)
      await operator.release(await operator.find(job.uuid), { run })
      await lost
    }
    const [claim] = await owner.claimNext()
    expect(new Set(claim.job.attempts.slice(0, -1).map(({ ended }) => ended))).toEqual(new Set(['returned']))
    await claim.consume()
  })

  describe('without a claim there is nothing to release', () => {
    test('of a job that waits, that was given back, or whose owner has gone', async () => {
      const [owner, mortal, operator] = await Promise.all([open(), open(), open()])
      const job = await owner.post('flow', {})
      const told = /is unclaimed, so there is no claim to release/
      const waiting = await rejectionOf(operator.release(await operator.find(job.uuid)))
      expect(waiting).toBeInstanceOf(NotFound)
      expect(String(waiting)).toMatch(told)
      await (await owner.claim(job)).abandon()
      expect(String(await rejectionOf(operator.release(await operator.find(job.uuid))))).toMatch(told)
      await refresh(mortal)
      await mortal.claim(await mortal.find(job.uuid))
      await mortal.close()
      expect(String(await rejectionOf(operator.release(await operator.find(job.uuid))))).toMatch(told)
      const [claim] = await operator.claimNext()
      expect(claim.run).toBe(3)
      expect(claim.job.attempts[0]).not.toHaveProperty('reason')
      await claim.consume()
    })

    test('of a job that is done', async () => {
      const [owner, operator] = await Promise.all([open(), open()])
      const job = await owner.post('flow', {})
      const found = await operator.find(job.uuid)
      await (await owner.claim(job)).consume()
      expect(await rejectionOf(operator.release(found))).toBeInstanceOf(NotFound)
    })

    test('of a run that is not the one that has the job: nothing is changed', async () => {
      const [owner, operator] = await Promise.all([open({ who: 'owner' }), open()])
      const job = await owner.post('flow', {})
      await (await owner.claim(job)).abandon()
      const [claim] = await owner.claimNext()
      const refused = await rejectionOf(operator.release(await operator.find(job.uuid), { run: 1 }))
      expect(refused).toBeInstanceOf(Conflict)
      expect(String(refused)).toMatch(/run 2 of owner has it, not run 1; nothing was changed/)
      await claim.consume()
    })
  })

  test('a release and the end of the job at the same time: one of the two is done, and the other says so', async () => {
    const [owner, operator] = await Promise.all([open(), open()])
    const jobs = await Promise.all(Array.from({ length: 20 }, () => owner.post('flow', {})))
    await refresh(operator)
    for (const { uuid } of jobs) {
      const [claim, job] = await Promise.all([owner.find(uuid).then((own) => owner.claim(own)), operator.find(uuid)])
      const [ended, released] = await Promise.allSettled([claim.consume(), operator.release(job)])
      expect([ended.status, released.status].sort()).toEqual(['fulfilled', 'rejected'])
      if (ended.status === 'rejected') expect(ended.reason).toBeInstanceOf(ClaimLost)
      if (released.status === 'rejected') expect(released.reason).toBeInstanceOf(NotFound)
    }
  })

  test('of two releases at the same time one is done', async () => {
    const [owner, one, other] = await Promise.all([open(), open(), open()])
    for (let round = 0; round < 5; round += 1) {
      const job = await owner.post('flow', {})
      const claim = await owner.claim(job)
      const lost = whenLost(claim)
      const boards: JobBoard[] = [one, other]
      const found = await Promise.all(boards.map((board) => board.find(job.uuid)))
      const results = await Promise.allSettled(found.map((each, index) => (boards[index] ?? one).release(each)))
      expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      for (const result of results) if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(NotFound)
      await lost
      await refresh(owner)
      await (await owner.claim(job)).consume()
    }
  })

  if (capabilities.resources)
    test('its resources are free with it, and the former owner does not free those of the next one', async () => {
      const [owner, nextOwner, third] = await Promise.all([open(), open(), open()])
      const resources = { exclusive: ['disk'], shared: ['net'] }
      const first = await owner.post('flow', {}, { resources })
      const [claim] = await owner.claimNext()
      const second = await owner.post('flow', {}, { resources })
      await refresh(nextOwner)
      const lost = whenLost(claim)
      const next = nextOwner.claimNext()
      await third.release(await third.find(first.uuid))
      const [taken] = await next
      expect(taken.job.uuid).toBe(first.uuid)
      await lost
      expect(await rejectionOf(claim.consume())).toBeInstanceOf(ClaimLost)
      await refresh(third)
      expect(await rejectionOf(third.claim(await third.find(second.uuid)))).toBeInstanceOf(Unclaimable)
      await taken.consume()
      await (await third.claimNext())[0].consume()
    })

  if (capabilities.resources)
    test('a hold is lost with its resources, and its job goes to the trash', async () => {
      const [owner, operator] = await Promise.all([open(), open()])
      const hold = await owner.hold({ exclusive: ['disk'] })
      const lost = whenAborted(hold.lost)
      const [job] = await all(operator.jobs({ ensureFresh: true }))
      if (!job) throw new Error('a hold is a job on the board')
      expect(await operator.release(job)).toMatchObject({ trashed: true })
      expect(await lost).toBeInstanceOf(ClaimLost)
      expect(await operator.countJobs()).toBe(0)
      await using next = await operator.hold({ exclusive: ['disk'] })
      expect(next.fence).toBeGreaterThan(hold.fence)
    })

  if (capabilities.limits)
    test('its slot is free with it, and the former owner does not free that of the next one', async () => {
      const [owner, nextOwner, third] = await Promise.all([open(), open(), open()])
      await owner.limits.set('api', { concurrency: 1 })
      const first = await owner.post('flow', {}, { limits: ['api'] })
      const [claim] = await owner.claimNext()
      const second = await owner.post('flow', {}, { limits: ['api'] })
      await refresh(nextOwner)
      const lost = whenLost(claim)
      const next = nextOwner.claimNext()
      await third.release(await third.find(first.uuid))
      const [taken] = await next
      // The released job is read again first, and the other one need not wait for that.
      const waiting = taken.job.uuid === first.uuid ? second : first
      await lost
      expect(await rejectionOf(claim.abandon())).toBeInstanceOf(ClaimLost)
      await refresh(third)
      expect(await rejectionOf(third.claim(await third.find(waiting.uuid)))).toBeInstanceOf(Unclaimable)
      await taken.consume()
      await (await third.claimNext())[0].consume()
    })

  test('a job that must not survive its owner goes to the trash, with who took it away', async () => {
    const [owner, operator] = await Promise.all([open({ who: 'owner' }), open({ who: 'operator' })])
    const job = await owner.post('flow', {}, { onOwnerLost: 'fail' })
    const claim = await owner.claim(job)
    const lost = whenLost(claim)
    expect(await operator.release(await operator.find(job.uuid), { reason: 'deaf' })).toMatchObject({ trashed: true })
    await lost
    const [entry] = await all(operator.trashed())
    expect(entry).toMatchObject({ uuid: job.uuid, reason: expect.stringMatching(/owner/) })
  })

  test('a job that was cancelled in vain is claimed with the request still there', async () => {
    const [owner, operator] = await Promise.all([open(), open()])
    const job = await owner.post('flow', {})
    const claim = await owner.claim(job)
    await operator.cancel(await operator.find(job.uuid), { reason: 'enough' })
    await whenAborted(claim.cancelled)
    const lost = whenLost(claim)
    await operator.release(await operator.find(job.uuid))
    await lost
    const [taken] = await operator.claimNext()
    expect([taken.run, taken.cancelled.aborted]).toEqual([2, true])
    await taken.trash()
  })

  test('a job is released on a paused board, and nobody claims it before that is resumed', async () => {
    const [owner, operator] = await Promise.all([open(), open()])
    const job = await owner.post('flow', {})
    const claim = await owner.claim(job)
    await operator.pause()
    const lost = whenLost(claim)
    await operator.release(await operator.find(job.uuid))
    await lost
    expect(await operator.findOwner(await operator.find(job.uuid))).toBeUndefined()
    await operator.resume()
    await (await operator.claimNext())[0].consume()
  })

  test('what makes no sense is refused', async () => {
    const board = await open()
    const job = await board.post('flow', {})
    for (const options of [{ run: 0 }, { run: 1.5 }, { reason: 7 }, { because: 'x' }])
      expect(await rejectionOf(board.release(job, options as object))).toBeInstanceOf(InvalidArgument)
  })
}
