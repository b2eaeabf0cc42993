/**
 * What a board object receives: nothing while it only posts, single jobs while a caller waits for them, everything while it is
 * viewed. None of the boards here is kept viewing.
 */
import { randomUUID } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import type { JobBoard } from '../../../src/board/index.ts'
import { boardInternals } from '../../../src/board/internal.ts'
import { Job } from '../../../src/board/jobs/job.ts'
import { rejectionOf, whenLost } from '../../board/events.ts'
import { all, claimAll, claimed } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

const DELIVERY = { timeout: 30_000 }

export function levelsContract(place: Place): void {
  const open = place.openUnviewed
  const isViewing = (board: JobBoard) => board.jobCount !== undefined

  test('posting, pausing, cancelling and reading the trash open no view', async () => {
    const board = await open()
    const job = await board.post('flow', {}, { name: 'a' })
    await board.cancel(job)
    const [trashed] = await all(board.trashed())
    expect(trashed?.uuid).toBe(job.uuid)
    await board.pause()
    await board.resume()
    expect(await board.entities('conductor')).toEqual([])
    expect(isViewing(board)).toBe(false)
  })

  test('a job is restored and purged without a view', async () => {
    const board = await open()
    for (const name of ['a', 'b']) await board.cancel(await board.post('flow', {}, { name }))
    const [first, second] = await all(board.trashed())
    if (!first || !second) throw new Error('both are in the trash')
    await board.restore(first)
    await board.purge(second)
    expect(isViewing(board)).toBe(false)
    expect((await all(board.jobs())).map(({ name }) => name)).toEqual([first.name])
  })

  test('a wait for an own job ends with how the job has left the board, also where that was before', async () => {
    const [board, worker] = await Promise.all([open(), open({ who: 'worker' })])
    const jobs = await Promise.all(['a', 'b', 'c', 'd'].map((name) => board.post('flow', {}, { name })))
    const [a, b] = await claimAll(worker, 2)
    await a.consume()
    await b?.trash({ reason: 'no' })
    const waits = jobs.map((job) => job.wait())
    await waits[0]
    const [c, d] = await claimAll(worker, 2)
    await c.consume()
    await d?.trash({ reason: 'no' })
    const ends = await Promise.all(waits)
    expect(ends.toSorted()).toEqual(['COMPLETE', 'COMPLETE', 'TRASHED', 'TRASHED'])
    for (const [index, job] of jobs.entries()) expect(job.state).toBe(ends[index])
    const trashed = jobs.filter(({ state }) => state === 'TRASHED')
    for (const job of trashed) expect(job.attempts).toMatchObject([{ who: 'worker', reason: 'no' }])
    expect(isViewing(board)).toBe(false)
  })

  test('a job is followed from the first look at its state on, and no other', async () => {
    const [board, worker] = await Promise.all([open(), open({ who: 'worker' })])
    const looked = await board.post('flow', {}, { name: 'looked' })
    const other = await board.post('flow', {}, { name: 'other' })
    expect(looked.state).toBe('UNCLAIMED')
    await claimed(worker, 'other')
    const claim = await claimed(worker, 'looked')
    await vi.waitFor(() => expect(looked).toMatchObject({ state: 'CLAIMED', runs: 1 }), DELIVERY)
    expect(Job.entryFor(other).claimed).toBe(false)
    await claim.abandon({ failed: true, reason: 'once more', delay: 0 })
    await vi.waitFor(() => expect(looked.attempts).toMatchObject([{ reason: 'once more' }]), DELIVERY)
    await (await claimed(worker, 'looked')).consume()
    await vi.waitFor(() => expect(looked.state).toBe('COMPLETE'), DELIVERY)
    await vi.waitFor(() => expect(other.state).toBe('CLAIMED'), DELIVERY)
  })

  test('the end of a session, with its gap, loses no end of a followed job', async () => {
    const [board, worker] = await Promise.all([open({ who: 'poster' }), open({ who: 'worker' })])
    const jobs = await Promise.all(['a', 'b'].map((name) => board.post('flow', {}, { name })))
    const waits = Promise.all(jobs.map((job) => job.wait()))
    await (await claimed(worker, 'a')).consume()
    await vi.waitFor(() => expect(jobs[0]?.state).toBe('COMPLETE'), DELIVERY)
    const lost = new Promise<void>((resolve) => {
      const off = board.on('state', ({ state }) => {
        if (state !== 'lost') return
        off()
        resolve()
      })
    })
    await place.expire(board)
    await (await claimed(worker, 'b')).trash()
    await lost
    expect(await waits).toEqual(['COMPLETE', 'TRASHED'])
  })

  test('a reference finds a job as it is now, without a view', async () => {
    const [board, other, worker] = await Promise.all([open(), open(), open({ who: 'worker' })])
    const job = await board.post('flow', {}, { name: 'job' })
    expect(job.ref).toMatch(new RegExp(`^${job.uuid}\\.job\\d+$`))
    expect(await other.find(job.ref)).toMatchObject({ uuid: job.uuid, state: 'UNCLAIMED', runs: 0 })
    const claim = await claimed(worker, 'job')
    const late = await open()
    expect(await late.find(job.ref)).toMatchObject({ state: 'CLAIMED', runs: 1, attempts: [{ who: 'worker' }] })
    const found = await late.find(job.ref)
    const ended = found.wait()
    await claim.consume()
    expect(await ended).toBe('COMPLETE')
    expect(isViewing(late)).toBe(false)
    expect(await rejectionOf((await open()).find(job.ref))).toMatchObject({ code: 'JOBBOARD_NOT_FOUND' })
  })

  test('a reference whose number belongs to another job finds nothing', async () => {
    const board = await open()
    const [a, b] = [await board.post('flow', {}), await board.post('flow', {})]
    const wrong = `${a.uuid}${b.ref.slice(b.uuid.length)}`
    expect(await rejectionOf((await open()).find(wrong))).toMatchObject({ code: 'JOBBOARD_NOT_FOUND' })
  })

  test('a reference that no backend has made finds nothing, and ends no other wait late', async () => {
    const [board, poster, worker] = await Promise.all([open(), open(), open()])
    const job = await poster.post('flow', {})
    const ended = (await board.find(job.ref)).wait()
    const other = await poster.post('flow', {})
    for (const id of ['job99999999999999999999', 'job0', 'job00000000000000000001', 'job-1']) {
      const found = rejectionOf(board.find(`${randomUUID()}.${id}`))
      expect(await found).toMatchObject({ code: 'JOBBOARD_NOT_FOUND' })
    }
    for (const { uuid } of [job, other]) await (await worker.claim(await worker.find(uuid))).consume()
    expect(await ended).toBe('COMPLETE')
  })

  test('a uuid finds a job on a board that is not viewed', async () => {
    const board = await open()
    const jobs = await Promise.all(['a', 'b', 'c'].map((name) => board.post('flow', {}, { name })))
    for (const { uuid, name } of jobs) expect(await (await open()).find(uuid)).toMatchObject({ uuid, name })
  })

  test('a job of another board object is cancelled without a view', async () => {
    const [board, other] = await Promise.all([open(), open()])
    const job = await board.post('flow', {}, { name: 'job' })
    await other.cancel(job)
    expect(await job.wait()).toBe('TRASHED')
    expect(isViewing(other)).toBe(false)
  })

  test('a board that was paused before it is viewed grants no claim', async () => {
    const [board, other] = await Promise.all([open(), open()])
    await board.post('flow', {})
    await other.pause()
    expect(await rejectionOf(board.claimNext({ timeout: 0 }))).toMatchObject({ code: 'JOBBOARD_TIMEOUT' })
    const next = board.claimNext()
    await other.resume()
    await (await next)[0].consume()
  })

  test('a listener receives what happens after the view was opened, and nothing that was before', async () => {
    const [board, other] = await Promise.all([open(), open({ who: 'other' })])
    await board.post('flow', {}, { name: 'before' })
    const claim = await claimed(other, 'before')
    const events: string[] = []
    for (const event of ['posted', 'claimed', 'consumed'] as const)
      board.on(event, ({ job }) => events.push(`${event} ${job.name}`))
    using _view = await board.view()
    expect(events).toEqual([])
    await claim.consume()
    await other.post('flow', {}, { name: 'after' })
    await vi.waitFor(() => expect(events).toContain('posted after'), DELIVERY)
    const after = await claimed(other, 'after')
    await vi.waitFor(() => expect(events).toContain('claimed after'), DELIVERY)
    await after.consume()
    await vi.waitFor(
      () => expect(events).toEqual(['consumed before', 'posted after', 'claimed after', 'consumed after']),
      DELIVERY,
    )
  })

  test('the view is closed when nothing holds it any more, and what was posted here stays known', async () => {
    const [board, worker] = await Promise.all([open(), open({ who: 'worker' })])
    const job = await board.post('flow', {}, { name: 'job' })
    {
      using _view = await board.view()
      expect(board.jobCount).toBe(1)
      boardInternals(board).closeUnusedView()
      expect(board.jobCount).toBe(1)
    }
    const ended = job.wait()
    boardInternals(board).closeUnusedView()
    expect(isViewing(board)).toBe(false)
    await (await claimed(worker, 'job')).consume()
    expect(await ended).toBe('COMPLETE')
  })

  test('a claim needs no view: its job is cancelled, and it is settled', async () => {
    const [board, other] = await Promise.all([open({ who: 'owner' }), open()])
    for (const name of ['a', 'b', 'c', 'd']) await other.post('flow', {}, { name })
    const [a, b, c, d] = await claimAll(board, 4)
    if (!b || !c || !d) throw new Error('all are free')
    boardInternals(board).closeUnusedView()
    expect(isViewing(board)).toBe(false)
    await other.cancel(await other.find(a.job.ref), { reason: 'not wanted' })
    // It is reported at once, and not only by the look every 10 s.
    await vi.waitFor(() => expect(a.cancelled.aborted).toBe(true), { timeout: 5_000 })
    expect(String(a.cancelled.reason)).toContain('not wanted')
    await a.trash()
    await b.consume()
    await c.abandon()
    expect([a, b, c, d].map(({ job }) => job.state)).toEqual(['TRASHED', 'COMPLETE', 'UNCLAIMED', 'CLAIMED'])
    expect(isViewing(board)).toBe(false)
    const [again] = await board.claimNext()
    expect(again).toMatchObject({ run: 2, job: { name: 'c' } })
    await again.consume()
    boardInternals(board).closeUnusedView()
    await board.consume(d.job)
    expect(isViewing(board)).toBe(false)
    expect(await board.countJobs()).toBe(0)
  })

  test('a claim is lost with its session, without a view', async () => {
    const [board, other] = await Promise.all([open({ who: 'owner' }), open({ who: 'other' })])
    await other.post('flow', {}, { name: 'job' })
    const [claim] = await board.claimNext()
    boardInternals(board).closeUnusedView()
    const lost = whenLost(claim)
    await place.expire(board)
    expect(await lost).toMatchObject({ code: 'JOBBOARD_CLAIM_LOST' })
    expect((await claimed(other, 'job')).run).toBe(2)
  })

  test('going up and down while others work misses no end and shows no wrong board', async () => {
    const [board, poster, worker] = await Promise.all([open(), open(), open({ who: 'worker' })])
    const rounds = 12
    const stop = new AbortController()
    const working = (async () => {
      for await (const claim of worker.claims({ signal: stop.signal })) await claim.consume()
    })()
    const waits: Promise<string>[] = []
    for (let round = 0; round < rounds; round += 1) {
      const jobs = await Promise.all([0, 1, 2, 3, 4].map(() => board.post('flow', {}, { name: `own ${round}` })))
      waits.push(...jobs.map((job) => job.wait()))
      await poster.post('flow', {}, { name: `other ${round}` })
      if (round % 3 === 0) {
        using _view = await board.view()
        await all(board.jobs())
      } else if (round % 3 === 1) expect(await all(board.jobs({ ensureFresh: true }))).toBeInstanceOf(Array)
      boardInternals(board).closeUnusedView()
    }
    expect(new Set(await Promise.all(waits))).toEqual(new Set(['COMPLETE']))
    await vi.waitFor(async () => expect(await all(board.jobs({ ensureFresh: true }))).toEqual([]), DELIVERY)
    stop.abort()
    await working
  })
}
