/** Attempts are counted, and neither failing nor dying goes on for ever. */
import { describe, expect, test } from 'vitest'
import type { Job, JobBoard, WaitingFor } from '../../../src/board/index.ts'
import { InvalidPosting, JobboardError, Unclaimable } from '../../../src/core/errors.ts'
import { nextEvent, rejectionOf } from '../../board/events.ts'
import { all, claimed, namesOn, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

export function limitsContract({ open }: Place): void {
  /** So many owners claim the job and die, one after the other; the board has heard of it. */
  async function die(board: JobBoard, job: Job, { times }: { times: number }): Promise<void> {
    for (let death = 0; death < times; death++) {
      const mortal = await open({ who: 'mortal' })
      await claimed(mortal, job.name)
      await mortal.close()
    }
    await refresh(board)
  }

  test('a job given back has no limit', async () => {
    const board = await open()
    const job = await board.post('flow', {}, { maxAttempts: 1 })
    for (let run = 1; run <= 30; run++) await (await board.claim(job)).abandon({ reason: `run ${run}` })
    await refresh(board)
    expect(job).toMatchObject({ state: 'UNCLAIMED', runs: 30 })
    expect(job.attempts).toHaveLength(10)
    expect(job.omittedAttempts).toEqual({ failed: 0, returned: 20, lost: 0 })
    expect(job.attempts.at(-1)?.reason).toBe('run 30')
  })

  test('a job that was given back as failed too often is trashed by the next claim', async () => {
    const [here, there] = await Promise.all([open(), open({ who: 'there' })])
    const job = await here.post('flow', {}, { maxAttempts: 2 })
    for (let run = 1; run <= 2; run++) await (await here.claim(job)).abandon({ failed: true })
    await here.post('flow', {}, { name: 'after it' })
    await refresh(there)
    const [claim] = await there.claimNext()
    expect(claim.job.name).toBe('after it')
    const [entry] = await all(here.trashed())
    expect(entry).toMatchObject({ uuid: job.uuid, who: 'there', reason: expect.stringContaining('failed 2 times') })
    await refresh(here)
    expect(job.state).toBe('TRASHED')
  })

  test('claiming a job that is over its limit says so and trashes it', async () => {
    const board = await open()
    const job = await board.post('flow', {}, { maxAttempts: 1 })
    await (await board.claim(job)).abandon({ failed: true })
    const failure = await rejectionOf(board.claim(job))
    expect(failure).toBeInstanceOf(Unclaimable)
    expect(String(failure)).toContain('failed 1 times')
    expect(job.state).toBe('TRASHED')
  })

  describe('the rest after a failed run', () => {
    test.each([
      ['usually a part of a second or so', {}, 1_000],
      ['none, where the posting says so', { backOff: { first: 0 } }, 0],
      ['as long as the posting says', { backOff: { first: '3h', jitter: 'none' } }, 3 * 3_600_000],
      ['no longer than its max', { backOff: { first: '3h', max: '2h', jitter: 'none' } }, 2 * 3_600_000],
    ] as const)('is %s', async (_, options, longest) => {
      const board = await open()
      const job = await board.post('flow', {}, { name: 'job', ...options })
      await (await board.claim(job)).perform(() => {
        throw new Error('not today')
      })
      await refresh(board)
      const rest = restOf(await board.waitingFor(job))
      expect(rest).toBeLessThanOrEqual(longest)
      if (longest > 1_000) expect(rest).toBeGreaterThan(longest - 60_000)
    })

    test('is what the error asks for', async () => {
      const board = await open()
      const job = await board.post('flow', {}, { backOff: { first: 0 } })
      await (await board.claim(job)).perform(() => {
        throw Object.assign(new Error('too many requests'), { retryAfter: '5h' })
      })
      await refresh(board)
      expect(restOf(await board.waitingFor(job))).toBeGreaterThan(4.9 * 3_600_000)
    })

    test('grows with every failure', async () => {
      const board = await open()
      const backOff = { first: 0.001, factor: 1e10, jitter: 'none', max: '1d' } as const
      const job = await board.post('flow', {}, { backOff })
      await (await board.claim(job)).perform(() => {
        throw new Error('not today')
      })
      const [again] = await board.claimNext()
      await again.perform(() => {
        throw new Error('nor now')
      })
      await refresh(board)
      expect(restOf(await board.waitingFor(job))).toBeGreaterThan(3_600_000)
    })

    test.each([
      ['a misspelt field', { frist: '1s' }],
      ['a factor that shrinks it', { factor: 0.5 }],
      ['a jitter that there is not', { jitter: 'some' }],
      ['an instant', { first: new Date() }],
    ])('%s is refused', async (_, backOff) => {
      const board = await open()
      const failure = await rejectionOf(board.post('flow', {}, { backOff: backOff as object }))
      expect(failure).toBeInstanceOf(JobboardError)
      expect(String(failure)).toContain('backOff')
      expect(await board.countJobs()).toBe(0)
    })
  })

  test('a job whose owner died ten times in a row is trashed by the next claim', async () => {
    const [board, other] = await Promise.all([open(), open()])
    const job = await board.post('flow', {}, { name: 'poison' })
    await die(other, job, { times: 10 })
    await other.post('flow', {}, { name: 'after it' })
    const [claim] = await other.claimNext()
    expect(claim.job.name).toBe('after it')
    const [entry] = await all(other.trashed())
    expect(entry).toMatchObject({ uuid: job.uuid, reason: expect.stringContaining('died 10 times') })
    expect(entry?.attempts).toHaveLength(10)
  })

  test('a job with a death before it succeeded is done like any other', async () => {
    const board = await open({ who: 'mortal' })
    const job = await board.post('flow', {}, { maxAttempts: 1 })
    await die(board, job, { times: 1 })
    const claim = await claimed(board, 'flow')
    expect(claim.run).toBe(2)
    expect(claim.job.attempts).toMatchObject([{ who: 'mortal' }, { who: 'mortal' }])
    expect(claim.job.attempts[0]).not.toHaveProperty('ended')
    await claim.consume()
  })

  test('of the jobs that kill their owners a board runs one at a time', async () => {
    const board = await open()
    const suspects: Job[] = []
    for (const name of ['first', 'second']) {
      const job = await board.post('flow', {}, { name })
      await die(board, job, { times: 2 })
      suspects.push(job)
    }
    await board.post('flow', {}, { name: 'innocent', priority: 'LOW' })
    const both = board.claimNext({ max: 3 })
    const waiting = board.claimNext()
    const claims = await both
    expect(claims.map(({ job }) => job.name)).toEqual(['first', 'innocent'])
    expect(await namesOn(board, { onlyUnclaimed: true })).toEqual(['second'])
    await claims[0].consume()
    expect((await waiting)[0].job.name).toBe('second')
    expect(suspects.map(({ state }) => state)).toEqual(['COMPLETE', 'CLAIMED'])
  })

  test('two who ask at once get one suspect between them', async () => {
    const board = await open()
    for (const name of ['first', 'second']) await die(board, await board.post('flow', {}, { name }), { times: 2 })
    const asked = [board.claimNext(), board.claimNext()]
    const [claim] = await Promise.race(asked)
    await refresh(board)
    expect(await namesOn(board, { onlyUnclaimed: true })).toHaveLength(1)
    await claim.consume()
    const names = (await Promise.all(asked)).map(([{ job }]) => job.name)
    expect(names.sort()).toEqual(['first', 'second'])
  })

  test('one that must not be begun twice is trashed when its owner dies, and not when it is given back', async () => {
    const nextOwner = await open({ who: 'next-owner' })
    using _view = await nextOwner.view()
    const job = await nextOwner.post('flow', {}, { name: 'once', onOwnerLost: 'fail' })
    await (await claimed(nextOwner, 'once')).abandon()
    const trashed = nextEvent(nextOwner, 'trashed')
    const mortal = await open({ who: 'mortal' })
    await claimed(mortal, 'once')
    const stop = new AbortController()
    const waiting = rejectionOf(nextOwner.claimNext({ signal: stop.signal }))
    await mortal.close()
    expect((await trashed).job.uuid).toBe(job.uuid)
    stop.abort(new Error('enough'))
    expect(await waiting).toMatchObject({ message: 'enough' })
    const [entry] = await all(nextOwner.trashed())
    expect(entry?.reason).toBe('its owner mortal was lost')
    const wrong = 'never' as 'fail'
    expect(await rejectionOf(nextOwner.post('flow', {}, { onOwnerLost: wrong }))).toBeInstanceOf(InvalidPosting)
  })
}

/** In milliseconds from now; 0 where it does not rest. */
function restOf(waiting: WaitingFor | undefined): number {
  return waiting?.kind === 'delay' ? waiting.until.getTime() - Date.now() : 0
}
