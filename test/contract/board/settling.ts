/** A claim is settled once, by its owner, for everybody to see. */
import { describe, expect, test, vi } from 'vitest'
import type { Settlement } from '../../../src/board/contract/index.ts'
import { openSide } from '../../../src/board/internal.ts'
import { ClaimLost, InvalidArgument, NonRetryable, NotFound, NotOwner, OutOfMemory } from '../../../src/core/errors.ts'
import { failureOf } from '../../../src/core/failure.ts'
import { rejectionOf } from '../../board/events.ts'
import { all, namesOn, refresh } from '../../board/jobs.ts'
import { overrideRole } from '../../board/override-role.ts'
import type { Place } from '../board.ts'

const SETTLES = ['consume', 'abandon', 'trash'] as const

export function settlingContract(place: Place): void {
  const { open } = place
  test('a consumed job is gone', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('flow', {})
    const seen = await there.find(job.uuid)
    const claim = await here.claim(job)
    await claim.consume()
    expect(claim.settled).toBe(true)
    expect(job.state).toBe('COMPLETE')
    expect(await here.countJobs()).toBe(0)
    expect(await namesOn(there)).toEqual([])
    expect(seen.state).toBe('COMPLETE')
    expect(await all(there.trashed())).toEqual([])
  })

  test('the settlement of an earlier claim of the same session is refused, and the present claim stays', async () => {
    const { board, backend } = await openSide(place.uri)
    const settlements: Settlement[] = []
    overrideRole(backend, 'claims', (claims) => ({
      settle: (settlement) => {
        settlements.push(settlement)
        return claims.settle(settlement)
      },
    }))
    const job = await board.post('flow', {})
    await (await board.claim(job)).abandon()
    const claim = await board.claim(job)
    const [earlier] = settlements
    if (!earlier) throw new Error('the claim was not settled')
    for (const kind of ['abandon', 'consume'] as const)
      expect(await rejectionOf(backend.claims.settle({ ...earlier, kind }))).toBeInstanceOf(ClaimLost)
    expect(claim.lost.aborted).toBe(false)
    await claim.consume()
    expect(await board.countJobs()).toBe(0)
    await board.close()
  })

  test('any owner can claim an abandoned job, with what was tried', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open({ who: 'there' })])
    const job = await here.post('flow', {})
    await (await here.claim(job)).abandon({ reason: 'going home' })
    expect(await namesOn(there, { onlyUnclaimed: true })).toEqual(['flow'])
    const [claim] = await there.claimNext()
    expect(claim).toMatchObject({ who: 'there', run: 2 })
    expect(claim.job.attempts).toEqual([
      { who: 'here', at: expect.any(Date), ended: 'returned', reason: 'going home' },
      { who: 'there', at: expect.any(Date) },
    ])
  })

  test('an abandoned job can be moved to another queue, in which it stays', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open({ who: 'there' })])
    const job = await here.post('flow', {}, { queue: 'small' })
    const seen = await there.find(job.uuid)
    await (await here.claim(job)).abandon({ failed: true, queue: 'medium' })
    const [claim] = await there.claimNext({ accept: ({ queue }) => queue === 'medium' })
    expect([claim.job.queue, seen.queue, claim.job.uuid]).toEqual(['medium', 'medium', job.uuid])
    await claim.abandon()
    const again = await (await open()).find(job.uuid)
    expect(again.queue).toBe('medium')
  })

  test('a failure for want of memory moves the job to its next queue once, and then trashes it', async () => {
    const board = await open()
    const job = await board.post('flow', {}, { maxAttempts: 9 })
    const failure = { ...failureOf(new OutOfMemory('too large', { nextQueue: 'large' })), retryAfter: 0 }
    expect(await (await board.claim(job)).fail(failure)).toBe('abandoned')
    const claim = await board.claim(job)
    expect(claim.job.queue).toBe('large')
    expect(await claim.fail(failure)).toBe('trashed')
    const [entry] = await all(board.trashed())
    expect(entry?.attempts).toHaveLength(2)
  })

  test('sizes, which are deprecated, are the queues with their names', async () => {
    const board = await open()
    const job = await board.post('flow', {}, { size: 'small' })
    expect(job.queue).toBe('small')
    await (await board.claim(job)).abandon({ size: 'large' })
    expect((await (await open()).find(job.uuid)).queue).toBe('large')
    const failure = await rejectionOf(board.post('flow', {}, { size: 'huge' as 'large' }))
    expect(String(failure)).toContain('post: size must be one of small, medium, large; for another name use queue')
    expect(await rejectionOf(board.post('flow', {}, { size: 'large', queue: 'a' }))).toBeInstanceOf(InvalidArgument)
  })

  test('the run after an abandon is above what the logbook knew of', async () => {
    const board = await open()
    const job = await board.post('flow', {})
    await (await board.claim(job)).abandon({ newestRun: 41 })
    expect((await board.claim(job)).run).toBe(42)
  })

  test('a trashed job is in the trash, with who, when, why and the failure', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open()])
    const job = await here.post('flow', { secret: 1 }, { name: 'name' })
    const failure = { name: 'TypeError', message: 'x is not a function', stack: 'at y', causes: [] }
    await (await here.claim(job)).trash({ failure })
    expect(job.state).toBe('TRASHED')
    expect(await namesOn(there)).toEqual([])
    const [entry, ...others] = await all(there.trashed())
    expect(others).toEqual([])
    expect(entry).toMatchObject({ uuid: job.uuid, name: 'name', who: 'here', failure, details: job.details })
    expect(entry?.reason).toContain('x is not a function')
    expect(entry?.at).toBeInstanceOf(Date)
    expect(entry?.attempts).toMatchObject([{ who: 'here', ended: 'failed' }])
    expect(await rejectionOf(there.find(job.uuid))).toBeInstanceOf(NotFound)
  })

  test('the trash is listed in the order in which it was filled', async () => {
    const board = await open()
    for (const name of ['a', 'b', 'c']) await board.post('flow', {}, { name })
    for (const name of ['b', 'c', 'a']) {
      const [claim] = await board.claimNext({ accept: (posting) => posting.name === name })
      await claim.trash({ reason: `why ${name}` })
    }
    const entries = await all((await open()).trashed())
    expect(entries.map(({ name, reason }) => [name, reason])).toEqual(
      ['b', 'c', 'a'].map((name) => [name, `why ${name}`]),
    )
  })

  describe.each(SETTLES)('%s', (settle) => {
    test('a second time is NotFound, by claim and by job', async () => {
      const board = await open()
      const job = await board.post('flow', {})
      const claim = await board.claim(job)
      await board[settle](job)
      expect(claim.settled).toBe(true)
      for (const again of SETTLES) {
        expect(await rejectionOf(claim[again]())).toBeInstanceOf(NotFound)
        expect(await rejectionOf(board[again](job))).toBeInstanceOf(NotFound)
      }
    })

    test('of an unclaimed job is NotFound', async () => {
      const board = await open()
      const job = await board.post('flow', {})
      expect(await rejectionOf(board[settle](job))).toBeInstanceOf(NotFound)
      expect(await namesOn(board)).toEqual(['flow'])
    })

    test('by who does not own it is NotOwner naming who does, even under the same name', async () => {
      const [here, there] = await Promise.all([open({ who: 'one name' }), open({ who: 'one name' })])
      const job = await here.post('flow', {})
      const claim = await here.claim(job)
      const seen = await there.find(job.uuid)
      await refresh(there)
      const failure = await rejectionOf(there[settle](seen))
      expect(failure).toBeInstanceOf(NotOwner)
      expect(String(failure)).toContain('one name')
      await claim.consume()
    })

    test('twice at once happens once', async () => {
      const board = await open()
      const job = await board.post('flow', {})
      const claim = await board.claim(job)
      const results = await Promise.allSettled([claim[settle](), claim[settle](), board[settle](job)])
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    })
  })

  describe('perform', () => {
    test('consumes when the work is done, having passed it what it runs for', async () => {
      const board = await open()
      await board.post('flow', { n: 1 })
      const [claim] = await board.claimNext()
      const ended = await claim.perform((job, { signal, run, fence }) => {
        expect(job.details.store).toEqual({ n: 1 })
        expect(signal.aborted).toBe(false)
        expect([run, fence]).toEqual([1, claim.fence])
      })
      expect(ended).toBe('consumed')
      expect(await namesOn(board)).toEqual([])
    })

    test('gives back what failed while attempts are left, then trashes it with its history', async () => {
      const board = await open()
      const job = await board.post('flow', {}, { maxAttempts: 2 })
      const fail = async () => {
        const [claim] = await board.claimNext()
        return claim.perform(() => {
          throw new Error(`boom ${claim.run}`)
        })
      }
      expect(await fail()).toBe('abandoned')
      await refresh(board)
      expect(job).toMatchObject({ state: 'UNCLAIMED', attempts: [{ ended: 'failed', reason: 'Error: boom 1' }] })
      expect(await fail()).toBe('trashed')
      const [entry] = await all(board.trashed())
      expect(entry?.attempts.map(({ reason }) => reason)).toEqual(['Error: boom 1', 'Error: boom 2'])
      expect(entry?.failure?.message).toBe('boom 2')
    })

    test('trashes a NonRetryable at once, also one that is only the cause', async () => {
      const board = await open()
      for (const error of [new NonRetryable('never'), new Error('outer', { cause: new NonRetryable('never') })]) {
        await board.post('flow', {})
        const [claim] = await board.claimNext()
        expect(await claim.perform(() => Promise.reject(error))).toBe('trashed')
      }
      expect(await all(board.trashed())).toHaveLength(2)
    })

    test('without work is refused, and nothing is charged', async () => {
      const board = await open()
      await board.post('flow', {}, { maxAttempts: 1 })
      const [claim] = await board.claimNext()
      const perform = claim.perform.bind(claim) as (work?: unknown) => Promise<unknown>
      const failure = await rejectionOf(perform())
      expect(failure).toBeInstanceOf(InvalidArgument)
      expect(String(failure)).toContain('perform: work must be a function')
      expect(await claim.perform(() => undefined)).toBe('consumed')
    })

    test('of what was settled or lost before does not call the work', async () => {
      const board = await open()
      const work = vi.fn()
      const settled = await board.claim(await board.post('flow', {}))
      await settled.consume()
      expect(await rejectionOf(settled.perform(work))).toBeInstanceOf(NotFound)
      const lost = await board.claim(await board.post('flow', {}))
      await board.close()
      expect(await lost.perform(work)).toBe('lost')
      expect(work).not.toHaveBeenCalled()
    })

    test('what the work does to the details is not written', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const { uuid } = await here.post('flow', { list: [1, 2] })
      const [claim] = await here.claimNext()
      await claim.perform((job) => {
        Object.assign(job.details.store ?? {}, { list: [] })
        throw new Error('half done')
      })
      expect((await there.find(uuid)).details.store).toEqual({ list: [1, 2] })
      expect((await here.find(uuid)).details.store).toEqual({ list: [1, 2] })
      const [again] = await here.claimNext()
      expect(again.job.details.store).toEqual({ list: [1, 2] })
    })
  })

  test('disposing of a claim gives the job back, uncharged, unless it was settled', async () => {
    const board = await open()
    const job = await board.post('flow', {}, { maxAttempts: 1 })
    for (let run = 1; run <= 3; run++) {
      await using claim = await board.claim(job)
      expect(claim.run).toBe(run)
    }
    {
      await using claim = await board.claim(job)
      await claim.consume()
    }
    expect(job.state).toBe('COMPLETE')
  })
}
