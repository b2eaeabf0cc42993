/** Each race that the board's parts can get into with each other, made to happen. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { JobBoard } from '../../src/board/index.ts'
import { ClaimLost, Duplicate, NotConnected, StorageFailure } from '../../src/core/errors.ts'
import { nextEvent, recordEvents, rejectionOf } from './events.ts'
import { all, claimed, namesOn, refresh } from './jobs.ts'
import { type SlowBackend, slowBoard } from './slow-backend.ts'

describe('races', () => {
  let board: JobBoard
  let other: JobBoard
  let backend: SlowBackend

  beforeEach(async () => {
    const setup = await slowBoard(randomUUID())
    board = setup.board
    other = setup.other
    backend = setup.backend
  })

  afterEach(async () => {
    await board.close()
    await other.close()
  })

  describe('of an answer with what happens meanwhile', () => {
    test('a claim whose session ends before its answer is received is lost when it is handed out', async () => {
      await board.post('flow', {})
      const answer = backend.stop('claim', 'after')
      const claiming = board.claimNext()
      await answer.there
      backend.expireSession()
      answer.release()
      const [claim] = await claiming
      expect(claim.lost.aborted).toBe(true)
      expect(await rejectionOf(claim.consume())).toBeInstanceOf(ClaimLost)
      expect((await other.claimNext())[0].run).toBe(2)
    })

    test('a claim that was answered while the board closed is lost when it is handed out', async () => {
      await board.post('flow', {})
      const answer = backend.stop('claim', 'after')
      const claiming = board.claimNext()
      await answer.there
      await board.close()
      answer.release()
      const [claim] = await claiming
      expect(claim.lost.reason).toBeInstanceOf(ClaimLost)
      expect((await other.claimNext())[0].run).toBe(2)
    })

    test('a post that is answered after others had claimed and returned the job does not turn time back', async () => {
      const answer = backend.stop('post', 'after')
      const posting = board.post('flow', {}, { name: 'job' })
      await answer.there
      await (await claimed(other, 'job')).abandon({ reason: 'once' })
      const history = recordEvents(board)
      answer.release()
      const job = await posting
      const [claim] = await board.claimNext()
      expect(claim.run).toBe(2)
      expect(job.attempts).toHaveLength(2)
      expect(history.filter((told) => told === 'posted job').length).toBeLessThanOrEqual(1)
    })

    test('a post that is answered while another holds the job shows it as claimed, and gets it when that one dies', async () => {
      const answer = backend.stop('post', 'after')
      const posting = board.post('flow', {}, { name: 'job' })
      await answer.there
      await claimed(other, 'job')
      answer.release()
      const job = await posting
      expect(job.state).toBe('CLAIMED')
      const claiming = board.claimNext()
      await other.close()
      expect((await claiming)[0].run).toBe(2)
    })

    test.each(['consume', 'trash'] as const)(
      'a post that is answered after a %s is known to have ended so',
      async (settle) => {
        const answer = backend.stop('post', 'after')
        const posting = board.post('flow', {}, { name: 'job' })
        await answer.there
        await (await claimed(other, 'job'))[settle]()
        answer.release()
        expect((await posting).state).toBe(settle === 'consume' ? 'COMPLETE' : 'TRASHED')
        expect(await board.countJobs()).toBe(0)
      },
    )

    test('content that was overtaken by a change is not believed', async () => {
      const answer = backend.stop('read', 'after')
      await other.post('flow', {}, { name: 'job' })
      await answer.there
      await (await claimed(other, 'job')).abandon()
      answer.release()
      expect((await board.claimNext())[0].run).toBe(2)
    })

    test('what fails for one job takes the claim of its neighbour not along', async () => {
      for (const name of ['a', 'b']) await board.post('flow', {}, { name })
      backend.refuseFirst(new StorageFailure('the server has its own troubles', { retryable: true }))
      const claims = await board.claimNext({ max: 2 })
      expect(claims.map(({ job }) => job.name)).toEqual(['b'])
      await claims[0].consume()
      expect((await board.claimNext())[0].job.name).toBe('a')
    })

    test('a settle that could not be sent leaves the claim to be settled again', async () => {
      await board.post('flow', {})
      const [claim] = await board.claimNext()
      backend.stop('settle', 'before').release(new NotConnected('away'))
      expect(await rejectionOf(claim.consume())).toBeInstanceOf(NotConnected)
      expect(claim.settled).toBe(false)
      await claim.consume()
      expect(await namesOn(other)).toEqual([])
    })

    test('a session that ends while a settle is under way fires the signal, and the settle says what became of it', async () => {
      await board.post('flow', {})
      const [claim] = await board.claimNext()
      const answer = backend.stop('settle', 'after')
      const settling = claim.consume()
      await answer.there
      backend.expireSession()
      expect(claim.lost.aborted).toBe(true)
      answer.release()
      await settling
      expect(claim.settled).toBe(true)
      expect(await namesOn(other)).toEqual([])
    })

    test('one that waits gets the job that another let go without a change on the board', async () => {
      await board.post('flow', {})
      const request = backend.stop('claim', 'before')
      const job = await board.find((await all(board.jobs()))[0]?.uuid ?? '')
      const failing = rejectionOf(board.claim(job))
      await request.there
      const waiting = board.claimNext()
      request.release(new NotConnected('away'))
      await failing
      expect((await waiting)[0].run).toBe(1)
    })
  })

  describe('of a listing after a gap', () => {
    test('changes that come while the board is listed are applied to the listing, old or new', async () => {
      for (const when of ['before', 'after'] as const) {
        for (const name of ['consumed', 'trashed', 'claimed', 'returned']) await other.post('flow', {}, { name })
        await refresh(board)
        const returned = await claimed(other, 'returned')
        const jobs = new Map((await all(board.jobs())).map((job) => [job.name, job]))
        const listing = backend.stop('list', when)
        backend.dropChanges()
        backend.hearAgain()
        await listing.there
        await (await claimed(other, 'consumed')).consume()
        await (await claimed(other, 'trashed')).trash()
        await claimed(other, 'claimed')
        await returned.abandon()
        await other.post('flow', {}, { name: 'new' })
        const history = recordEvents(board)
        listing.release()
        await refresh(board)
        expect(jobs.get('consumed')?.state).toBe('COMPLETE')
        expect(jobs.get('trashed')?.state).toBe('TRASHED')
        expect(await namesOn(board)).toEqual(await namesOn(other))
        expect(await namesOn(board, { onlyUnclaimed: true })).toEqual(['returned', 'new'])
        expect(history.filter((told) => /^(consumed|trashed|posted) /.test(told)).sort()).toEqual([
          'consumed consumed',
          'posted new',
          'trashed trashed',
        ])
        for (const { job } of await other.claimNext({ max: 2 })) await other.consume(job)
        await other.consume(await other.find(jobs.get('claimed')?.uuid ?? ''))
        await refresh(board)
      }
    })

    test('nothing is claimed before the listing is there', async () => {
      await board.post('flow', {})
      const listing = backend.stop('list', 'before')
      backend.hearAgain()
      await listing.there
      const claiming = board.claimNext()
      const [claim] = await other.claimNext()
      await claim.abandon()
      listing.release()
      expect((await claiming)[0].run).toBe(2)
    })

    test("a job of one's own that a listing is too old for stays", async () => {
      const listing = backend.stop('list', 'after')
      backend.hearAgain()
      await listing.there
      const job = await board.post('flow', {}, { name: 'own' })
      listing.release()
      expect(await namesOn(board)).toEqual(['own'])
      expect((await board.claim(job)).run).toBe(1)
    })

    test.each(['before', 'after'] as const)(
      'a job posted during one gap (listing %s it) and trashed in the next is known as trashed',
      async (when) => {
        const listing = backend.stop('list', when)
        backend.hearAgain()
        await listing.there
        const job = await board.post('flow', {}, { name: 'own' })
        listing.release()
        await refresh(board)
        backend.dropChanges()
        await (await claimed(other, 'own')).trash()
        const trashed = nextEvent(board, 'trashed')
        backend.hearAgain()
        await trashed
        expect(job.state).toBe('TRASHED')
        expect(await job.wait()).toBe('TRASHED')
      },
    )

    test('a posting that was gone when it was read during a gap ends as the listing says', async () => {
      await other.post('flow', {}, { name: 'job' })
      await refresh(board)
      const [job] = await all(board.jobs())
      const read = backend.stop('read', 'before')
      await (await claimed(other, 'job')).abandon()
      await read.there
      backend.dropChanges()
      await (await claimed(other, 'job')).trash()
      const listing = backend.stop('list', 'before')
      backend.hearAgain()
      await listing.there
      read.release()
      // The read is heard of before the listing is even asked for.
      await new Promise((resolve) => setImmediate(resolve))
      listing.release()
      await refresh(board)
      expect(job?.state).toBe('TRASHED')
    })

    test('what was claimed before and after it, but not by the same run, is read again when it is free', async () => {
      await other.post('flow', {}, { name: 'job' })
      const [first] = await other.claimNext()
      // A board that was opened now has read the posting while it is claimed.
      const setup = await slowBoard(other.uri.slice('memory:'.length))
      setup.backend.dropChanges()
      await first.abandon()
      await claimed(other, 'job')
      setup.backend.hearAgain()
      await refresh(setup.board)
      const claiming = setup.board.claimNext()
      await other.close()
      expect((await claiming)[0].run).toBe(3)
      await setup.board.close()
      await setup.other.close()
    })

    test('a listing that fails is reported and tried again', async () => {
      const reported = nextEvent(board, 'error')
      backend.stop('list', 'before').release(new Error('the disk is on fire'))
      backend.dropChanges()
      await other.post('flow', {}, { name: 'job' })
      backend.hearAgain()
      expect((await reported).error.message).toContain('fire')
      expect((await board.claimNext())[0].job.name).toBe('job')
    })

    test('a read that fails is reported and tried again', async () => {
      const reported = nextEvent(board, 'error')
      backend.stop('read', 'before').release(new Error('the disk is on fire'))
      await other.post('flow', {}, { name: 'job' })
      expect((await reported).error.message).toContain('fire')
      expect((await board.claimNext())[0].job.name).toBe('job')
    })

    test('of two gaps the later one counts', async () => {
      const [early, late] = [backend.stop('list', 'after'), backend.stop('list', 'after')]
      backend.hearAgain()
      await early.there
      await other.post('flow', {}, { name: 'job' })
      backend.dropChanges()
      const [claim] = await other.claimNext()
      await claim.consume()
      backend.hearAgain()
      await late.there
      late.release()
      early.release()
      expect(await namesOn(board)).toEqual([])
      expect(await board.countJobs()).toBe(0)
    })
  })

  describe('of an entity with its session', () => {
    const entity = { kind: 'conductor', name: 'one', metadata: {} }

    test('one whose name was taken while its session was over says so, and leaves the other alone', async () => {
      const registered = await board.registerEntity(entity)
      const again = backend.stop('register', 'before')
      backend.expireSession()
      await again.there
      await other.registerEntity({ ...entity, metadata: { of: 'other' } })
      const refused = nextEvent(board, 'error')
      again.release()
      expect((await refused).error).toBeInstanceOf(Duplicate)
      await registered[Symbol.asyncDispose]()
      expect(await other.entities('conductor')).toMatchObject([{ metadata: { of: 'other' } }])
    })

    test('one that is registered while the session ends is in the next', async () => {
      const answer = backend.stop('register', 'after')
      const registering = board.registerEntity(entity)
      await answer.there
      backend.expireSession()
      answer.release()
      await registering
      expect(await other.entities('conductor')).toHaveLength(1)
    })

    test.each(['before', 'after'] as const)(
      'one that is disposed of %s it is registered anew does not come back',
      async (when) => {
        const registered = await board.registerEntity(entity)
        const again = backend.stop('register', when)
        backend.expireSession()
        await again.there
        await registered[Symbol.asyncDispose]()
        const undone = backend.stop('unregister', 'after')
        again.release()
        await undone.there
        undone.release()
        expect(await other.entities('conductor')).toEqual([])
      },
    )
  })
})
