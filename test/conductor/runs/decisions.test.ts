/** Each row of the decision table made to happen, on a board in memory and on a real server. */
import { describe, expect, test } from 'vitest'
import { makePosting } from '../../../src/board/model/posting/post-options.ts'
import { encodePosting } from '../../../src/board/model/posting/posting-codec.ts'
import { createDeferred } from '../../../src/core/async/abort.ts'
import {
  IncompatibleVersion,
  InvalidState,
  MissingDependencies,
  NonRetryable,
  StorageFailure,
} from '../../../src/core/errors.ts'
import { input, type Job, linear, openPersistence, type Persistence, task } from '../../../src/index.ts'
import { refresh } from '../../board/jobs.ts'
import { delegate, delegateLog, listTrash, singleTaskFlow, startTestConductor } from '../conducting.ts'
import { PLACES, placesOf } from '../places.ts'

describe.each(PLACES)('on $name', (backend) => {
  const { placed, openAt, boards } = placesOf(backend)

  describe('a job that is asked back', () => {
    test('is undone and trashed, whichever board asked', async () => {
      const [board, other] = await boards('a', 'b')
      const running = createDeferred()
      const flow = singleTaskFlow('long', async (_args, signal) => {
        running.resolve()
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      })
      await startTestConductor({ board, persistence: 'memory:', flows: [flow] })
      const job = await board.post(flow, { n: 1 })
      await running.promise
      await other.cancel(await other.find(job.uuid), { reason: 'not needed' })
      expect(await job.wait()).toBe('TRASHED')
      const [trashed] = await listTrash(board)
      expect(trashed?.reason).toContain('cancelled by b: not needed')
    })

    test('a run that passes its deadline is undone, and counts as failed', async () => {
      const [board] = await boards('a')
      const flow = singleTaskFlow('slow', async (_args, signal) => {
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      })
      await startTestConductor({ board, persistence: 'memory:', flows: [flow] })
      const job = await board.post(flow, { n: 1 }, { deadline: 20, maxAttempts: 1 })
      expect(await job.wait()).toBe('TRASHED')
      const [trashed] = await listTrash(board)
      expect(trashed?.reason).toContain('not done within 20 ms')
    })
  })

  describe('the decision table, on a board', () => {
    test('SUCCESS: consumed, and its logbook says so', async () => {
      const [board] = await boards('a')
      const persistence = await openPersistence('memory:')
      const double = singleTaskFlow('double', ({ n }) => n * 2)
      await startTestConductor({ board, persistence, flows: [double] })
      const job = await board.post(double, { n: 21 })
      expect(await job.wait()).toBe('COMPLETE')
      const book = await persistence.getBook(job.uuid)
      expect(book.flows[0]).toMatchObject({ state: 'SUCCESS', run: 1, atoms: [{ name: 'only', result: 42 }] })
    })

    test('SUCCESS that the last owner could not consume: consumed, and nothing runs again', async () => {
      const [board, dying] = await boards('next-owner', 'dying')
      const persistence = await openPersistence('memory:')
      let runs = 0
      const count = singleTaskFlow('count', () => {
        runs += 1
      })
      const job = await board.post(count, { n: 1 })
      const [claim] = await dying.claimNext()
      const request = {
        book: job.book,
        flow: { uuid: job.uuid, name: 'count', version: count.version },
        run: claim.run,
      }
      const log = await persistence.acquire({ ...request, claim: 'dying' })
      const { Engine } = await import('../../../src/engine/index.ts')
      await new Engine({ flow: count, store: { n: 1 }, log }).run()
      await dying.close()
      await startTestConductor({ board, persistence, flows: [count] })
      expect(await job.wait()).toBe('COMPLETE')
      expect(runs).toBe(1)
      expect(job.runs).toBe(2)
    })

    test('REVERTED: tried again from clean atoms, until it succeeds', async () => {
      const [board] = await boards('a')
      const persistence = await openPersistence('memory:')
      let tries = 0
      const flaky = singleTaskFlow('flaky', () => {
        tries += 1
        if (tries < 3) throw new Error(`try ${tries}`)
        return 'fine'
      })
      await startTestConductor({ board, persistence, flows: [flaky] })
      const job = await board.post(flaky, { n: 1 })
      expect(await job.wait()).toBe('COMPLETE')
      expect(job.attempts.map(({ ended, reason }) => [ended, reason])).toEqual([
        ['failed', 'Error: try 1'],
        ['failed', 'Error: try 2'],
        [undefined, undefined],
      ])
      const [flow] = (await persistence.getBook(job.uuid)).flows
      expect(flow).toMatchObject({ state: 'SUCCESS', run: 3, atoms: [{ state: 'SUCCESS', result: 'fine' }] })
      expect(flow?.atoms[0]?.failure).toBeUndefined()
    })

    test('REVERTED as often as is allowed: trashed, with every attempt and the failure', async () => {
      const [board] = await boards('a')
      const hopeless = singleTaskFlow('hopeless', () => {
        throw new TypeError('no way')
      })
      await startTestConductor({ board, persistence: 'memory:', flows: [hopeless] })
      const job = await board.post(hopeless, { n: 1 }, { maxAttempts: 2 })
      expect(await job.wait()).toBe('TRASHED')
      const [trashed] = await listTrash(board)
      expect(trashed).toMatchObject({
        uuid: job.uuid,
        who: 'a',
        reason: 'TypeError: no way',
        failure: { name: 'TypeError' },
      })
      expect(trashed?.attempts.map(({ ended }) => ended)).toEqual(['failed', 'failed'])
      expect(job.attempts).toEqual(trashed?.attempts)
    })

    test('NonRetryable: trashed at once', async () => {
      const [board] = await boards('a')
      const gone = singleTaskFlow('gone', () => {
        throw new NonRetryable('the file is gone')
      })
      await startTestConductor({ board, persistence: 'memory:', flows: [gone] })
      const job = await board.post(gone, { n: 1 })
      expect(await job.wait()).toBe('TRASHED')
      expect((await listTrash(board))[0]?.attempts).toHaveLength(1)
    })

    test("onFailure 'consume': a flow that was reverted leaves the board", async () => {
      const [board] = await boards('a')
      const bad = singleTaskFlow('bad', () => {
        throw new Error('bad')
      })
      await startTestConductor({ board, persistence: 'memory:', flows: [bad], onFailure: 'consume' })
      const job = await board.post(bad, { n: 1 })
      expect(await job.wait()).toBe('COMPLETE')
    })

    test('FAILURE: trashed at once, with what failed and what could not be undone', async () => {
      const [board] = await boards('a')
      const cursed = task('cursed', {
        execute: async () => {
          throw new Error('cannot do')
        },
        revert: async () => {
          throw new Error('cannot undo')
        },
      })
      const flow = linear('cursed', input(), cursed)
      await startTestConductor({ board, persistence: 'memory:', flows: [flow] })
      const job = await board.post(flow, {})
      expect(await job.wait()).toBe('TRASHED')
      const [trashed] = await listTrash(board)
      expect(trashed?.failure?.causes?.map(({ message }) => message)).toEqual(['cannot do', 'cannot undo'])
      expect(trashed?.attempts).toHaveLength(1)
    })

    test('inputs missing in a version known here: trashed, saying which', async () => {
      const [board] = await boards('a')
      const needy = singleTaskFlow('needy', () => 1)
      await expect(board.post(needy, {} as { n: number })).rejects.toBeInstanceOf(MissingDependencies)
      await startTestConductor({ board, persistence: 'memory:', flows: [needy] })
      const job = await board.post('needy', {})
      expect(await job.wait()).toBe('TRASHED')
      expect((await listTrash(board))[0]?.reason).toMatch(/requires n/)
    })

    test('a flow or version unknown here is left to others', async () => {
      const [board] = await boards('a')
      const known = singleTaskFlow('known', () => 1)
      await startTestConductor({ board, persistence: 'memory:', flows: [known] })
      const strange = await board.post('strange', {})
      const newer = await board.post({ ...known, version: '2.0' }, { n: 1 })
      const mine = await board.post(known, { n: 1 })
      await mine.wait()
      expect([strange.state, newer.state]).toEqual(['UNCLAIMED', 'UNCLAIMED'])
      expect((await board.waitingFor(newer))?.text).toBe('no conductor here knows flow known in version 2.0')
      const next = linear({ name: 'known', version: '2.0' }, input<{ n: number }>(), ...known.atoms)
      await startTestConductor({ board, persistence: 'memory:', flows: [next], name: 'newer' })
      expect(await newer.wait()).toBe('COMPLETE')
    })

    test('an error made of nonsense is a failed run like any other', async () => {
      const [board] = await boards('a')
      const odd = singleTaskFlow('odd', () => {
        throw Object.assign(new Error('x'), { message: { status: 500 } })
      })
      await startTestConductor({ board, persistence: 'memory:', flows: [odd] })
      const job = await board.post(odd, { n: 1 }, { maxAttempts: 2 })
      expect(await job.wait()).toBe('TRASHED')
      expect(job.runs).toBe(2)
    })

    test.each([
      ['a disk that refuses', () => new StorageFailure('EACCES', { retryable: true })],
      ['a logbook of a newer release', () => new IncompatibleVersion('format 9')],
      ['a persistence that was closed', () => new InvalidState('closed')],
    ])('%s is no fault of the job: given back uncharged', async (_, fault) => {
      const [board] = await boards('a')
      const inner = await openPersistence('memory:')
      let faults = 1
      const acquire: Persistence['acquire'] = async (request) => {
        faults -= 1
        if (faults >= 0) throw fault()
        return inner.acquire(request)
      }
      const fine = singleTaskFlow('fine', () => 1)
      await startTestConductor({ board, persistence: delegate(inner, { acquire }), flows: [fine] })
      const job = await board.post(fine, { n: 1 }, { maxAttempts: 1 })
      expect(await job.wait()).toBe('COMPLETE')
      expect(job.attempts[0]?.ended).toBe('returned')
    })

    test('a result that cannot be stored is a failed run, undone like one', async () => {
      const [board] = await boards('a')
      const odd = singleTaskFlow('odd', () => () => 'a function')
      await startTestConductor({ board, persistence: 'memory:', flows: [odd] })
      const job = await board.post(odd, { n: 1 }, { maxAttempts: 1 })
      expect(await job.wait()).toBe('TRASHED')
      expect((await listTrash(board))[0]?.reason).toMatch(/only/)
    })

    test('logbooks away: given back uncharged, and done when they are back', async () => {
      const [board] = await boards('a')
      const inner = await openPersistence('memory:')
      let away = 2
      const persistence = delegate(inner, {
        acquire: async (request) => {
          away -= 1
          if (away >= 0) throw new StorageFailure('disk gone', { retryable: true })
          return inner.acquire(request)
        },
      })
      const fine = singleTaskFlow('fine', () => 1)
      await startTestConductor({ board, persistence, flows: [fine] })
      const job = await board.post(fine, { n: 1 }, { maxAttempts: 1 })
      expect(await job.wait()).toBe('COMPLETE')
      expect(job.attempts.map(({ ended }) => ended)).toEqual(['returned', 'returned', undefined])
    })

    test('fenced although it holds the claim: the run number is healed through the posting', async () => {
      const [board] = await boards('a')
      const persistence = await openPersistence('memory:')
      const fine = singleTaskFlow('fine', () => 1)
      const job = await board.post(fine, { n: 1 })
      const flow = { uuid: job.uuid, name: 'fine', version: fine.version }
      await persistence.acquire({ book: job.book, flow, run: 41, claim: 'of a board restored from a backup' })
      await startTestConductor({ board, persistence, flows: [fine] })
      expect(await job.wait()).toBe('COMPLETE')
      expect(job.runs).toBe(42)
      expect(job.attempts[0]).toMatchObject({ ended: 'returned', reason: expect.stringMatching(/fenced/) })
    })

    test('a posting that names no flow: trashed, saying so', async () => {
      const place = await placed()
      const board = await openAt(place, 'a')
      await startTestConductor({ board, persistence: 'memory:', flows: [singleTaskFlow('fine', () => 1)] })
      const trashed = new Promise((resolve) => board.on('trashed', resolve))
      const posting = makePosting({ name: 'nameless', details: {} })
      await place.putRaw(encodePosting(posting, { encoding: 'msgpack', limit: 10_000 }))
      await refresh(board)
      await trashed
      expect((await listTrash(board))[0]?.reason).toContain('the posting names no flow')
    })

    test('a cancel that comes after SUCCESS loses', async () => {
      const [board, other] = await boards('a', 'b')
      const inner = await openPersistence('memory:')
      let job: Job | undefined
      const acquire: Persistence['acquire'] = async (request) => {
        const log = await inner.acquire(request)
        const write: typeof log.write = async (change) => {
          await log.write(change)
          if (change.state !== 'SUCCESS' || !job) return
          await other.cancel(await other.find(job.uuid), { reason: 'too late' })
          await refresh(board)
        }
        return delegateLog(log, { write })
      }
      const fine = singleTaskFlow('fine', () => 1)
      job = await board.post(fine, { n: 1 })
      await startTestConductor({ board, persistence: delegate(inner, { acquire }), flows: [fine] })
      expect(await job.wait()).toBe('COMPLETE')
      expect(await listTrash(board)).toEqual([])
    })

    test('lost: nothing is settled, and another run of it is', async () => {
      const place = await placed()
      const [mortal, nextOwner] = [await openAt(place, 'mortal'), await openAt(place, 'next-owner')]
      const persistence = await openPersistence('memory:')
      const reached = createDeferred()
      const runs: number[] = []
      const flow = linear(
        'flow',
        input(),
        task('only', {
          execute: async (_: object, { run, signal }) => {
            runs.push(run)
            reached.resolve()
            if (run === 1)
              await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
          },
        }),
      )
      const conductor = await startTestConductor({ board: mortal, persistence, flows: [flow], concurrency: 1 })
      const settled: string[] = []
      conductor.on('settled', (event) => settled.push(event.settled))
      const job = await nextOwner.post(flow, {})
      await reached.promise
      await place.expire(mortal)
      expect(await job.wait()).toBe('COMPLETE')
      expect(runs).toEqual([1, 2])
      expect(settled[0]).toBe('lost')
    })

    test('shutdown: half done, and back on the board uncharged', async () => {
      const [board, other] = await boards('a', 'b')
      const persistence = await openPersistence('memory:')
      const reached = createDeferred()
      const ran: string[] = []
      const first = task('first', { execute: () => void ran.push('first') })
      const second = task('second', {
        execute: async (_: object, { run, signal }) => {
          ran.push('second')
          reached.resolve()
          if (run === 1) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        },
      })
      const flow = linear('steps', input(), first, second)
      const conductor = await startTestConductor({ board, persistence, flows: [flow], drainTimeout: 0 })
      const job = await board.post(flow, {}, { maxAttempts: 1 })
      await reached.promise
      await conductor.stop()
      await refresh(board)
      expect([job.state, job.attempts.map(({ ended }) => ended)]).toEqual(['UNCLAIMED', ['returned']])
      await startTestConductor({ board: other, persistence, flows: [flow] })
      expect(await job.wait()).toBe('COMPLETE')
      expect(ran).toEqual(['first', 'second', 'second'])
    })
  })
})
