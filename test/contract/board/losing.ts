/** An owner whose session ends has lost everything, is told at once, and harms nobody afterwards. */
import { describe, expect, test } from 'vitest'
import type { JobBoard } from '../../../src/board/index.ts'
import { ClaimLost } from '../../../src/core/errors.ts'
import { nextEvent, nextSession, recordEvents, rejectionOf, whenLost } from '../../board/events.ts'
import { all, claimAll, claimed, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

export function losingContract({ open, expire }: Place): void {
  test('a claim is lost with its session, and another takes over with a higher run and a larger fence', async () => {
    const [former, nextOwner] = await Promise.all([open({ who: 'former' }), open({ who: 'next-owner' })])
    const job = await former.post('flow', {})
    const claim = await former.claim(job)
    const lost = whenLost(claim)
    // A board in the memory of one process has no lease.
    const isHeldNow = () => claim.leaseUntil === undefined || claim.leaseUntil.getTime() > Date.now()
    expect(isHeldNow()).toBe(true)
    const inherited = nextOwner.claimNext()
    await expire(former)
    expect(await lost).toBeInstanceOf(ClaimLost)
    expect(isHeldNow()).toBe(false)
    const [taken] = await inherited
    expect(taken).toMatchObject({ who: 'next-owner', run: claim.run + 1 })
    expect(taken.fence).toBeGreaterThan(claim.fence)
    expect(taken.job.attempts).toMatchObject([{ who: 'former' }, { who: 'next-owner' }])
    for (const settle of ['consume', 'abandon', 'trash'] as const) {
      expect(await rejectionOf(claim[settle]())).toBeInstanceOf(ClaimLost)
    }
    expect(taken.lost.aborted).toBe(false)
    await taken.consume()
  })

  test('the former owner may take over from itself, and its old claim stays powerless', async () => {
    const board = await open({ who: 'one name' })
    await board.post('flow', {})
    const [old] = await board.claimNext()
    const lost = whenLost(old)
    await expire(board)
    await lost
    const [claim] = await board.claimNext()
    expect(claim.run).toBe(2)
    expect(await rejectionOf(old.consume())).toBeInstanceOf(ClaimLost)
    expect(claim.lost.aborted).toBe(false)
    await claim.consume()
    expect(await board.countJobs()).toBe(0)
  })

  test('work that loses its claim is stopped by its signal, and nothing is settled', async () => {
    const [former, nextOwner] = await Promise.all([open(), open()])
    await former.post('flow', {})
    const [claim] = await former.claimNext()
    const working = claim.perform(async (_, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      throw signal.reason
    })
    await expire(former)
    expect(await working).toBe('lost')
    // So that nobody can tell that it lived.
    await former.close()
    const [taken] = await nextOwner.claimNext()
    expect(taken.job.attempts[0]).not.toHaveProperty('ended')
  })

  test('work that does not look at its signal ends as lost, too', async () => {
    const [former, nextOwner] = await Promise.all([open(), open()])
    await former.post('flow', {})
    const [claim] = await former.claimNext()
    const taken = nextOwner.claimNext()
    const ended = await claim.perform(async () => {
      const told = whenLost(claim)
      await expire(former)
      await told
      await taken
    })
    expect(ended).toBe('lost')
    await (await taken)[0].consume()
  })

  describe('an owner that lost its session and lives', () => {
    /** Claims all jobs of the board, and loses them. */
    async function outage(board: JobBoard, jobs: number): Promise<void> {
      const claims = await claimAll(board, jobs)
      const losses = claims.map(whenLost)
      const back = nextSession(board)
      await expire(board)
      await Promise.all([...losses, back])
    }

    test('has not died: its next claim records that it gave the job back', async () => {
      const board = await open({ who: 'one name' })
      await board.post('flow', {})
      await outage(board, 1)
      const [claim] = await board.claimNext()
      expect(claim.job.attempts).toEqual([
        { who: 'one name', at: expect.any(Date), ended: 'returned', reason: 'its owner lost the claim and lives' },
        { who: 'one name', at: expect.any(Date) },
      ])
    })

    test('has not died for another owner either, once it is back', async () => {
      const [former, nextOwner] = await Promise.all([open({ who: 'former' }), open({ who: 'next-owner' })])
      await former.post('flow', {})
      await outage(former, 1)
      while ((await nextOwner.entities('jobboard-owner')).length === 0) await refresh(nextOwner)
      await refresh(nextOwner)
      const [claim] = await nextOwner.claimNext()
      expect(claim.job.attempts).toMatchObject([{ who: 'former', ended: 'returned' }, { who: 'next-owner' }])
    })

    test('charges its job nothing, however often it happens, and its death counts afterwards', async () => {
      // In turn: a client whose connections break one after the other waits longer and longer before the next.
      const owners = await Promise.all(Array.from({ length: 3 }, () => open({ who: 'mortal' })))
      const nextOwner = await open()
      const job = await nextOwner.post('flow', {})
      for (let times = 0; times < 11; times++) {
        const owner = owners[times % owners.length] ?? nextOwner
        await refresh(owner)
        await outage(owner, 1)
        const alive = Math.min(times + 1, owners.length)
        while ((await nextOwner.entities('jobboard-owner')).length < alive) await refresh(nextOwner)
      }
      const doomed = await open({ who: 'mortal' })
      await claimAll(doomed, 1)
      await doomed.close()
      const claim = await nextOwner.claim(await nextOwner.find(job.uuid))
      const ends = claim.job.attempts.map(({ ended }) => ended)
      expect(ends).toEqual([...Array(8).fill('returned'), undefined, undefined])
      expect(claim.job.omittedAttempts).toEqual({ failed: 0, returned: 3, lost: 0 })
      await claim.consume()
    })

    test('has its jobs side by side again: none of them is a suspect', async () => {
      const [board, other] = await Promise.all([open(), open()])
      for (let number = 0; number < 8; number++) await other.post('flow', {}, { name: `job ${number}` })
      await refresh(board)
      for (let times = 0; times < 2; times++) await outage(board, 8)
      expect(await claimAll(board, 8)).toHaveLength(8)
    })

    test('is lost all the same for a job that must not survive its owner', async () => {
      const board = await open({ who: 'former' })
      const job = await board.post('flow', {}, { onOwnerLost: 'fail' })
      await outage(board, 1)
      await refresh(board)
      if (job.state === 'UNCLAIMED') await rejectionOf(board.claim(job))
      expect(await all(board.trashed())).toMatchObject([{ uuid: job.uuid, reason: 'its owner former was lost' }])
    })
  })

  test('every claim of the session is lost, none of another board', async () => {
    const [mortal, other] = await Promise.all([open(), open()])
    for (const name of ['a', 'b', 'c']) await mortal.post('flow', {}, { name })
    const claims = [await claimed(mortal, 'a'), await claimed(mortal, 'b')]
    const safe = await claimed(other, 'c')
    const losses = Promise.all(claims.map(whenLost))
    await expire(mortal)
    await losses
    expect(safe.lost.aborted).toBe(false)
    await refresh(other)
    await safe.consume()
    const back = await claimAll(other, 2)
    expect(back.map(({ job }) => job.name)).toEqual(['a', 'b'])
  })

  test('a board that lost its session goes on by itself', async () => {
    const [board, other] = await Promise.all([open(), open()])
    const states: string[] = []
    board.on('state', ({ state }) => states.push(state))
    const connected = nextSession(board)
    await expire(board)
    await connected
    expect(states.slice(states.indexOf('lost'))).toEqual(['lost', 'connected'])
    expect(board.connected).toBe(true)
    const history = recordEvents(board)
    using _view = await board.view()
    const consumed = nextEvent(board, 'consumed')
    await other.post('flow', {}, { name: 'later' })
    await refresh(board)
    await (await claimed(other, 'later')).consume()
    await consumed
    const life = ['posted later', 'claimed later', 'consumed later']
    expect(history).toEqual(life)
    await board.post('flow', {}, { name: 'own' })
    await (await claimed(board, 'own')).consume()
  })

  test('a claim that is settled before its session ends is not lost', async () => {
    const board = await open()
    await board.post('flow', {})
    const [claim] = await board.claimNext()
    await claim.consume()
    const back = nextSession(board)
    await expire(board)
    await back
    expect(claim.lost.aborted).toBe(false)
    expect(claim.settled).toBe(true)
  })

  test('claims that are held when a board is closed are lost, and go to others', async () => {
    const [closing, nextOwner] = await Promise.all([open(), open()])
    using _view = await nextOwner.view()
    await closing.post('flow', {})
    const [claim] = await closing.claimNext()
    await refresh(nextOwner)
    const heard: string[] = []
    claim.lost.addEventListener('abort', () => heard.push('lost'))
    nextOwner.on('abandoned', () => heard.push('abandoned'))
    const inherited = nextOwner.claimNext()
    await closing.close()
    expect(claim.lost.reason).toBeInstanceOf(ClaimLost)
    expect((await inherited)[0].run).toBe(2)
    expect(heard).toEqual(['lost', 'abandoned'])
    expect(await rejectionOf(claim.consume())).toBeInstanceOf(ClaimLost)
  })

  test('a claim that is granted while the board closes is lost, not left behind', async () => {
    const [closing, nextOwner] = await Promise.all([open(), open()])
    for (let round = 0; round < 5; round++) await closing.post('flow', {})
    const granted = Promise.allSettled([closing.claimNext({ max: 5 }), closing.claimNext({ max: 5 })])
    const closed = closing.close()
    for (const result of await granted) {
      if (result.status === 'rejected') continue
      await closed
      for (const { lost } of result.value) expect(lost.aborted).toBe(true)
    }
    const inherited = await nextOwner.claimNext({ max: 5 })
    expect(inherited.length).toBeGreaterThan(0)
  })
}
