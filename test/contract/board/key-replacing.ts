/** A post with `on: 'replace'` gives its posting to a job with its key that was never claimed. */
import { describe, expect, test } from 'vitest'
import type { Job, JobBoard, KeyOptions, PostOptions } from '../../../src/board/index.ts'
import { boardInternals, openSide } from '../../../src/board/internal.ts'
import { makePosting } from '../../../src/board/model/posting/post-options.ts'
import { InvalidArgument, InvalidState, NotFound, Unclaimable } from '../../../src/core/errors.ts'
import { jobIdFor } from '../../board/boards.ts'
import { nextEvent, rejectionOf } from '../../board/events.ts'
import { all, namesOn, refresh } from '../../board/jobs.ts'
import type { BoardBackend, Place } from '../board.ts'

const KEY: KeyOptions = { name: 'sync', on: 'replace' }
const HOUR_MS = 3_600_000

const REPLACED = { created: false, because: 'waiting', replaced: true } as const
const UNCHANGED = { created: false, replaced: false } as const

/** Posts a job, and another one that replaces it. */
async function replaced(board: JobBoard, [old, newer]: readonly [PostOptions, PostOptions], other = board) {
  const first = await board.post('flow', { n: 1 }, { key: 'sync', name: 'old', ...old })
  const again = await other.post('flow', { n: 2 }, { key: KEY, name: 'new', ...newer })
  expect(again).toMatchObject({ ...REPLACED, uuid: first.uuid })
  return again
}

export function keyReplacingContract(
  place: Place,
  { capabilities: { batches, dependencies, history }, overlooksCancelRequests }: BoardBackend,
): void {
  const { open } = place

  test('the newest post is what runs; uuid, key and place in the queue stay', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const first = await here.post('one', { n: 1 }, { key: KEY, name: 'first', details: { from: 'a' }, maxAttempts: 5 })
    await there.post('flow', {}, { name: 'behind' })
    const again = await there.post('two', { n: 2 }, { key: KEY, name: 'second', queue: 'large', deadline: '1m' })
    expect(again).toMatchObject({ ...REPLACED, uuid: first.uuid, key: 'sync', name: 'second', state: 'UNCLAIMED' })
    expect(again.details).toEqual({ flow: 'two', store: { n: 2 } })
    expect(again.ref).toBe(first.ref)
    for (const board of [here, there]) {
      expect(await namesOn(board)).toEqual(['second', 'behind'])
      const found = await board.find(first.uuid)
      // Releases that know no queues leave it alone.
      expect(boardInternals(board).postingOf(found).format).toBe(6)
      expect(found).toMatchObject({ name: 'second', queue: 'large', deadline: 60_000, maxAttempts: 3, runs: 0 })
    }
    const [claim] = await here.claimNext()
    expect(claim.job).toMatchObject({ uuid: first.uuid, name: 'second' })
    expect(claim.job.details.store).toEqual({ n: 2 })
    await claim.consume()
    expect(await here.post('one', {}, { key: KEY })).toMatchObject({ created: true, because: undefined })
  })

  test('however often it is replaced, one job is there, with the latest posting', async () => {
    const boards = await Promise.all([open(), open(), open()])
    const [here] = boards
    const first = await here.post('flow', { n: 0 }, { key: KEY })
    for (let n = 1; n <= 10; n++)
      expect(await boards[n % 3]?.post('flow', { n }, { key: KEY })).toMatchObject({ ...REPLACED, uuid: first.uuid })
    const [claim] = await here.claimNext()
    expect(claim.job.details.store).toEqual({ n: 10 })
    expect(await here.countJobs()).toBe(1)
  })

  describe('a job that is not replaced:', () => {
    test('it runs, it has run, it waits for its next attempt', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const first = await here.post('flow', { n: 1 }, { key: KEY })
      const claim = await there.claim(first)
      for (const board of [here, there])
        expect(await board.post('flow', { n: 2 }, { key: KEY })).toMatchObject({ ...UNCHANGED, because: 'running' })
      await claim.abandon({ failed: true })
      for (const board of [here, there])
        expect(await board.post('flow', { n: 2 }, { key: KEY })).toMatchObject({ ...UNCHANGED, because: 'running' })
      expect((await there.find(first.uuid)).details.store).toEqual({ n: 1 })
    })

    test('another post ignores it', async () => {
      const board = await open()
      const first = await board.post('flow', { n: 1 }, { key: KEY })
      for (const key of ['sync', { name: 'sync', on: 'ignore' }] as const)
        expect(await board.post('flow', { n: 2 }, { key })).toMatchObject({ ...UNCHANGED, because: 'waiting' })
      expect((await board.find(first.uuid)).details.store).toEqual({ n: 1 })
    })

    test('its poster waits to claim it', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const disk = { resources: { exclusive: ['disk'] } }
      await there.post('flow', {}, disk)
      const [held] = await there.claimNext()
      await refresh(here)
      const posted = nextEvent(there, 'posted', ({ job }) => job.name === 'mine')
      using _view = await there.view()
      const waiting = here.postAndClaim('flow', { n: 1 }, { key: 'sync', name: 'mine', ...disk })
      await posted
      expect(await there.post('flow', { n: 2 }, { key: KEY })).toMatchObject({ ...UNCHANGED, because: 'running' })
      await held.consume()
      expect((await waiting).job.details.store).toEqual({ n: 1 })
    })

    test('it was cancelled, and is to be reverted', async () => {
      const board = await open()
      const first = await board.post('flow', { n: 1 }, { key: KEY })
      await (await board.claim(first)).abandon()
      await board.cancel(first)
      expect(await board.post('flow', { n: 2 }, { key: KEY })).toMatchObject({ ...UNCHANGED, because: 'running' })
    })
  })

  test('a cancel request that comes after the poster has looked is kept', async () => {
    const job = await (await open()).post('flow', { n: 1 }, { key: KEY })
    const { board, backend } = await openSide(place.uri)
    await using _board = board
    const posting = { ...makePosting({ details: {}, name: 'newer', key: 'sync' }), uuid: job.uuid }
    const refused = await backend.jobs.post({ posting: makePosting({ details: {}, name: 'newer', key: 'sync' }) })
    if (!('revision' in refused)) throw new Error('the key is free')
    const id = jobIdFor(job)
    const cancellation = { who: 'ada', reason: 'not needed' }
    await backend.signals.cancel({ id, job: job.uuid, ...cancellation })
    const replacing = backend.keys.replace({ id, revision: 0, keyRevision: refused.revision, posting })
    if (overlooksCancelRequests) expect(await replacing).toMatchObject({ revision: 1 })
    else expect(await rejectionOf(replacing)).toBeInstanceOf(Unclaimable)
    expect(await backend.signals.cancellation(id)).toEqual(cancellation)
  })

  test('of a claim and a replacement at the same time, the claim has one posting as a whole', async () => {
    const [poster, ...claimers] = await Promise.all([open(), open(), open()])
    for (let round = 0; round < 10; round++) {
      const key = { name: `round ${round}`, on: 'replace' } as const
      const big = (n: number) => ({ n, text: String(n).repeat(2_000) })
      await poster.post('flow', big(0), { key, resources: { exclusive: ['r0'] }, name: 'job 0' })
      const stop = new AbortController()
      const claims = claimers.map(async (board) => (await board.claimNext(stop))[0])
      const answers = await Promise.all(
        [1, 2, 3].map((n) =>
          poster.post('flow', big(n), { key, resources: { exclusive: [`r${n}`] }, name: `job ${n}` }),
        ),
      )
      const claim = await Promise.any(claims)
      stop.abort()
      await Promise.allSettled(claims)
      const { n } = claim.job.details.store as { n: number }
      expect(claim.job.details.store).toEqual(big(n))
      expect(claim.job).toMatchObject({ name: `job ${n}`, resources: { exclusive: [`r${n}`] } })
      expect(answers.filter(({ created }) => created)).toEqual([])
      // What an answer says to have replaced, and was not replaced again, is what was claimed.
      if (n > 0) expect(answers[n - 1]).toMatchObject(REPLACED)
      for (const { replaced: done, because } of answers) expect(because).toBe(done ? 'waiting' : 'running')
      await claim.consume()
    }
  })

  test('posts that replace each other at the same time leave one of their postings', async () => {
    const boards = await Promise.all(Array.from({ length: 4 }, () => open()))
    const posts = boards.flatMap((board, index) => [1, 2, 3].map((n) => ({ board, n: 10 * index + n })))
    const jobs = await Promise.all(
      posts.map(({ board, n }) => board.post('flow', { n }, { key: KEY, name: `job ${n}` })),
    )
    expect(jobs.filter(({ created }) => created)).toHaveLength(1)
    expect(jobs.filter(({ replaced: done }) => done)).toHaveLength(posts.length - 1)
    const [claim] = await (boards[0] as JobBoard).claimNext()
    expect(claim.job.name).toBe(`job ${(claim.job.details.store as { n: number }).n}`)
    for (const board of boards) expect(await board.countJobs()).toBe(1)
  })

  test('a job that was seen before it was replaced is claimed as it is now', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const seen = await here.post('flow', { n: 1 }, { key: KEY })
    await there.post('flow', { n: 2 }, { key: KEY })
    const claim = await here.claim(seen).catch(async (error: unknown) => {
      expect(error).toBeInstanceOf(Unclaimable)
      await refresh(here)
      return here.claim(seen)
    })
    expect(claim.job.details.store).toEqual({ n: 2 })
  })

  describe('delays', () => {
    test('a delay of the new post counts from it', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const job = await replaced(here, [{ delay: '2h' }, { delay: '1h' }], there)
      for (const board of [here, there]) {
        await refresh(board)
        const waiting = await board.waitingFor(await board.find(job.uuid))
        expect(waiting?.kind).toBe('delay')
        const until = waiting?.kind === 'delay' ? waiting.until.getTime() : Number.NaN
        expect(Math.abs(until - Date.now() - HOUR_MS)).toBeLessThan(HOUR_MS / 2)
        expect(await rejectionOf(board.claimNext({ timeout: 0 }))).toBeInstanceOf(Error)
      }
    })

    test('a job whose delay is taken away can be claimed at once, also by those that did not know it', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const filler = Array.from({ length: 5 }, () => there.post('flow', {}, { name: 'later', delay: '30m' }))
      await Promise.all(filler)
      const waiting = there.claimNext()
      const job = await replaced(here, [{ delay: '2h' }, {}])
      const [claim] = await waiting
      expect(claim.job).toMatchObject({ uuid: job.uuid, name: 'new' })
    })

    test('a job that gets a delay is not claimed before it is over', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const job = await replaced(here, [{}, { delay: '1h' }])
      await refresh(there)
      for (const board of [here, there]) {
        await refresh(board)
        expect(await rejectionOf(board.claimNext({ timeout: 0 }))).toBeInstanceOf(Error)
        expect(await rejectionOf(board.claim(await board.find(job.uuid)))).toBeInstanceOf(Unclaimable)
      }
      await here.post('flow', {}, { key: KEY, name: 'now' })
      expect((await there.claimNext())[0].job.name).toBe('now')
    })
  })

  test('the priority is that of the new post, in the order of the first one', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await here.post('flow', {}, { name: 'a', priority: 'HIGH' })
    await here.post('flow', {}, { name: 'old', key: KEY, priority: 'LOW' })
    await here.post('flow', {}, { name: 'b', priority: 'HIGH' })
    await here.post('flow', {}, { name: 'c' })
    await there.post('flow', {}, { name: 'raised', key: KEY, priority: 'HIGH' })
    for (const board of [here, there]) expect(await namesOn(board)).toEqual(['a', 'raised', 'b', 'c'])
    await here.post('flow', {}, { name: 'lowered', key: KEY, priority: 'LOW' })
    for (const board of [here, there]) expect(await namesOn(board)).toEqual(['a', 'b', 'c', 'lowered'])
  })

  test('its resources are those of the new post', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await here.post('flow', {}, { name: 'holder', resources: { exclusive: ['disk'] } })
    const [holder] = await here.claimNext()
    const job = await replaced(
      here,
      [{ resources: { exclusive: ['disk'] } }, { resources: { exclusive: ['tape'] } }],
      there,
    )
    const [claim] = await there.claimNext()
    expect(claim.job).toMatchObject({ uuid: job.uuid, name: 'new', resources: { exclusive: ['tape'] } })
    await there.post('flow', {}, { name: 'other', resources: { exclusive: ['tape'] } })
    expect(await rejectionOf(here.claimNext({ timeout: 0 }))).toBeInstanceOf(Error)
    await Promise.all([holder.consume(), claim.consume()])
    expect((await here.claimNext())[0].job.name).toBe('other')
  })

  test('its limits are those of the new post', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await here.limits.set('full', { concurrency: 1 })
    await here.post('flow', {}, { name: 'holder', limits: ['full'] })
    const [holder] = await here.claimNext()
    const job = await replaced(here, [{ limits: ['full'] }, { limits: ['free'] }], there)
    const [claim] = await there.claimNext()
    expect(claim.job).toMatchObject({ uuid: job.uuid, name: 'new' })
    expect(claim.job.limits.map(({ key }) => key)).toContain('free')
    await holder.consume()
    await claim.consume()
  })

  test('an expiry of the new post counts from it, and one of the old post is over with it', async () => {
    const board = await open()
    const job = await replaced(board, [{ expiresAfter: '1h' }, {}])
    expect((await board.find(job.uuid)).expiresAt).toBeUndefined()
    const again = await board.post('flow', {}, { key: KEY, expiresAfter: '2h' })
    const left = (again.expiresAt?.getTime() ?? Number.NaN) - Date.now()
    expect(Math.abs(left - 2 * HOUR_MS)).toBeLessThan(HOUR_MS)
  })

  test('a window of the new post counts from it, and one of the old post is over with it', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const first = await replaced(here, [{}, { key: { ...KEY, for: '1h' } }], there)
    expect(first.keyTakenUntil).toBeInstanceOf(Date)
    await refresh(here)
    await (await here.claim(await here.find(first.uuid))).consume()
    expect(await there.post('flow', {}, { key: KEY })).toMatchObject({ ...UNCHANGED, because: 'window' })
    const other = { name: 'other', on: 'replace' } as const
    const second = await here.post('flow', {}, { key: { ...other, for: '1h' } })
    expect(await there.post('flow', {}, { key: other })).toMatchObject({ ...REPLACED, keyTakenUntil: undefined })
    await refresh(here)
    await (await here.claim(await here.find(second.uuid))).consume()
    expect(await here.post('flow', {}, { key: other })).toMatchObject({ created: true })
  })

  if (dependencies)
    test('a job that waits for others keeps waiting for them; a post that names others is refused', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const [one, two] = [await here.post('flow', {}, { name: 'one' }), await here.post('flow', {}, { name: 'two' })]
      const job = await replaced(here, [{ after: [one] }, {}], there)
      expect(job.after).toEqual([{ uuid: one.uuid, on: 'done' }])
      const same = await there.post('flow', { n: 3 }, { key: KEY, name: 'same', after: [one] })
      expect(same).toMatchObject({ ...REPLACED, uuid: job.uuid })
      for (const after of [[two], [one, two], [{ uuid: one.uuid, on: 'settled' as const }]])
        expect(await rejectionOf(there.post('flow', {}, { key: KEY, after }))).toBeInstanceOf(InvalidState)
      await refresh(there)
      expect(await there.waitingFor(await there.find(job.uuid))).toMatchObject({ kind: 'job' })
      await (await here.claim(one)).consume()
      const claims = [(await there.claimNext())[0], (await there.claimNext())[0]]
      expect(claims.map((claim) => claim.job.name)).toEqual(['two', 'same'])
    })

  if (batches)
    test('a job of a batch stays in it; a post that names another one is refused', async () => {
      const [here, there] = await Promise.all([open(), open()])
      const [batch, other] = await Promise.all([here.batch({ name: 'one' }), here.batch({ name: 'other' })])
      const first = await batch.post('flow', { n: 1 }, { key: KEY })
      expect(await there.post('flow', { n: 2 }, { key: KEY })).toMatchObject({ ...REPLACED, uuid: first.uuid })
      expect(await batch.post('flow', { n: 3 }, { key: KEY })).toMatchObject({ ...REPLACED, uuid: first.uuid })
      expect(await rejectionOf(other.post('flow', {}, { key: KEY }))).toBeInstanceOf(InvalidState)
      await batch.seal()
      await (await there.claim(await there.find(first.uuid))).consume()
      expect(await batch.wait()).toBe('done')
      expect(await batch.progress()).toMatchObject({ total: 1, done: 1 })
      const alone = await here.post('flow', {}, { key: KEY })
      expect(await rejectionOf(other.post('flow', {}, { key: KEY }))).toBeInstanceOf(InvalidState)
      expect((await here.find(alone.uuid)).details.store).toEqual({})
    })

  test('a job that is trashed after it was replaced has the new posting there', async () => {
    const board = await open()
    const job = await replaced(board, [{}, {}])
    await board.cancel(await board.find(job.uuid))
    expect(await job.wait()).toBe('TRASHED')
    const [entry] = await all(board.trashed())
    expect(entry).toMatchObject({ uuid: job.uuid, name: 'new', details: { store: { n: 2 } } })
    if (history) expect((await board.history())[0]).toMatchObject({ uuid: job.uuid, name: 'new' })
    if (entry) await board.restore(entry)
    const [claim] = await board.claimNext()
    expect(claim.job).toMatchObject({ name: 'new', details: { store: { n: 2 } } })
  })

  test('a job that was replaced and is restored has the window and the expiry of its last post', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const timesOf = ({ postedAt, keyTakenUntil, expiresAt }: Job) =>
      [keyTakenUntil, expiresAt].map((time) => (time?.getTime() ?? Number.NaN) - (postedAt?.getTime() ?? Number.NaN))
    const asked = { key: { ...KEY, for: '2h' }, expiresAfter: '1h' } as const
    const { uuid } = await here.post('flow', {}, asked)
    const whole = [2 * HOUR_MS, HOUR_MS]
    for (let round = 0; round < 2; round++) {
      // The board's clock may not have moved on since the first post.
      do expect(await there.post('flow', {}, asked)).toMatchObject({ ...REPLACED, uuid })
      while (timesOf(await there.find(uuid))[1] === HOUR_MS)
      const job = await here.find(uuid)
      await here.cancel(job)
      expect(await job.wait()).toBe('TRASHED')
      const [entry] = await all(there.trashed())
      if (entry) await there.restore(entry)
      expect(timesOf(await here.find(uuid))).toEqual(whole)
    }
  })

  test('many posts can replace, one after the other, but not in one transaction', async () => {
    const board = await open()
    const item = (n: number) => ({ flow: 'flow', store: { n }, key: KEY })
    const results = await board.postMany([1, 2, 3].map(item))
    const jobs = results.flatMap((result) => ('job' in result ? [result.job] : []))
    expect(new Set(jobs.map(({ uuid }) => uuid)).size).toBe(1)
    expect(jobs.filter(({ created }) => created)).toHaveLength(1)
    expect(await rejectionOf(board.postMany([item(4)], { atomic: true }))).toBeInstanceOf(InvalidArgument)
    expect(await rejectionOf(board.postAndClaim('flow', {}, { key: KEY }))).toBeInstanceOf(InvalidArgument)
    expect(await board.countJobs()).toBe(1)
  })

  test('a job that ends while it is being replaced is followed by a new one', async () => {
    const [here, there] = await Promise.all([open(), open()])
    for (let round = 0; round < 10; round++) {
      const first = await here.post('flow', { n: 1 }, { key: KEY })
      const [again] = await Promise.all([
        there.post('flow', { n: 2 }, { key: KEY, name: 'again' }),
        here.cancel(first).catch((error: unknown) => expect(error).toBeInstanceOf(NotFound)),
      ])
      if (again.created) expect(again.uuid).not.toBe(first.uuid)
      else expect(again.uuid).toBe(first.uuid)
      await refresh(here)
      const left = await all(here.jobs({ ensureFresh: true }))
      expect(left.map(({ uuid }) => uuid)).toEqual(again.created ? [again.uuid] : [])
      for (const job of left) await (await here.claim(job)).consume()
    }
  })
}
