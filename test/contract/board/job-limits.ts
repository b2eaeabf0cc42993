/** Limits of jobs: how many of a key run at once, and how many start in a time, whichever boards claim them. */
import { describe, expect, test } from 'vitest'
import type { Claim, Job, JobBoard, LimitSettings, PostOptions } from '../../../src/board/index.ts'
import {
  InvalidArgument,
  InvalidPosting,
  LimitReached,
  NotFound,
  Timeout,
  UnsupportedCapability,
} from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

const NO_WAIT = { timeout: 0 } as const

async function postMany(board: JobBoard, count: number, options: PostOptions): Promise<void> {
  for (let number = 0; number < count; number += 1) await board.post('work', {}, { name: `job ${number}`, ...options })
}

/** Claims all that can be claimed now. */
async function claimAll(board: JobBoard, max = 100): Promise<Claim[]> {
  const claims: Claim[] = []
  await countJobs(board)
  try {
    while (true) claims.push(...(await board.claimNext({ max, ...NO_WAIT })))
  } catch (error) {
    if (error instanceof Timeout) return claims
    throw error
  }
}

/** Resolves when the board has read all postings. */
async function countJobs(board: JobBoard): Promise<number> {
  let count = 0
  for await (const _ of board.jobs({ ensureFresh: true })) count += 1
  return count
}

export function jobLimitsContract({ open, expire }: Place): void {
  describe('keys of a fair pattern', () => {
    test('take turns, whichever boards claim their jobs', async () => {
      const [one, other] = [await open(), await open()]
      await one.limits.set('tenant/*', { fair: true })
      for (let number = 0; number < 6; number += 1)
        await one.post('work', {}, { name: `greedy ${number}`, limits: ['tenant/greedy'] })
      for (let number = 0; number < 2; number += 1)
        await one.post('work', {}, { name: `other ${number}`, limits: ['tenant/other'] })
      const names: string[] = []
      for (const board of [one, other, one, other, one]) {
        await countJobs(board)
        const [claim] = await board.claimNext({ timeout: '10s' })
        names.push(claim.job.name)
        // The other board knows of this claim before it chooses.
        for (const each of [one, other]) await countJobs(each)
      }
      expect(names).toEqual(['greedy 0', 'other 0', 'greedy 1', 'other 1', 'greedy 2'])
      expect(await one.limits.list()).toMatchObject([{ key: 'tenant/*', fair: true }])
    })

    test('take turns on a board that is longer than the window', async () => {
      const board = await open()
      await board.limits.set('tenant/*', { fair: true })
      await Promise.all(Array.from({ length: 60 }, () => board.post('work', {}, { limits: ['tenant/greedy'] })))
      await board.post('work', {}, { name: 'other', limits: ['tenant/other'] })
      await countJobs(board)
      await board.claimNext({ timeout: '10s' })
      const taken: string[] = []
      while (!taken.includes('other'))
        for (const { job } of await board.claimNext({ timeout: '10s' })) taken.push(job.name)
      expect(taken.length).toBeLessThan(30)
    })

    test('are keys of a pattern', async () => {
      const board = await open()
      for (const [key, settings] of [
        ['api', { fair: true }],
        ['api/*', { fair: 'yes' as unknown as boolean }],
        ['api/*', { fair: false }],
      ] as const)
        expect(await rejectionOf(board.limits.set(key, settings))).toBeInstanceOf(InvalidArgument)
    })
  })

  describe('concurrency', () => {
    test('no more jobs of a key run at once, whichever boards claim them', async () => {
      const [one, other] = [await open(), await open()]
      await one.limits.set('api', { concurrency: 2 })
      await postMany(one, 5, { limits: ['api'] })
      const first = await claimAll(one)
      expect(first.map(({ job }) => job.name)).toEqual(['job 0', 'job 1'])
      expect(await claimAll(other)).toEqual([])
      await first[0]?.consume()
      const [next] = await other.claimNext({ timeout: '10s' })
      expect(next.job.name).toBe('job 2')
      expect(await claimAll(one)).toEqual([])
    })

    test.each(['consume', 'abandon', 'trash'] as const)('%s frees the slot', async (way) => {
      const board = await open()
      await board.limits.set('api', { concurrency: 1 })
      await postMany(board, 2, { limits: ['api'] })
      const [claim] = await board.claimNext({ timeout: '10s' })
      expect(await claimAll(board)).toEqual([])
      await claim[way]()
      const [next] = await board.claimNext({ timeout: '10s' })
      // A job that was abandoned is read again first, and the next one need not wait for that.
      expect(way === 'abandon' ? ['job 0', 'job 1'] : ['job 1']).toContain(next.job.name)
    })

    test('a board that claims says once that jobs wait', async () => {
      const board = await open()
      const events: [string, string, boolean][] = []
      board.on('limited', ({ key, job, until }) => events.push([key, job.name, until !== undefined]))
      await board.limits.set('api', { concurrency: 1 })
      await board.limits.set('slow', { rate: { limit: 1, per: '1h' } })
      await postMany(board, 3, { limits: ['api'] })
      await claimAll(board)
      await claimAll(board)
      await postMany(board, 2, { limits: ['slow'] })
      await claimAll(board)
      expect(events).toEqual([
        ['api', 'job 1', false],
        ['slow', 'job 1', true],
      ])
    })

    test('the end of a session frees its slots', async () => {
      const [owner, other] = [await open(), await open()]
      await owner.limits.set('api', { concurrency: 1 })
      await postMany(owner, 2, { limits: ['api'] })
      await owner.claimNext({ timeout: '10s' })
      const waiting = other.claimNext({ timeout: '30s' })
      await expire(owner)
      const [claim] = await waiting
      expect(await claimAll(other)).toEqual([])
      await claim.consume()
      expect(await other.claimNext({ timeout: '10s' })).toHaveLength(1)
    })

    test('a list shows how many jobs of each key run', async () => {
      const board = await open()
      await board.limits.set('tenant/*', { concurrency: 2 })
      await board.limits.set('api', { concurrency: 3 })
      for (const limits of [['tenant/1', 'api'], ['tenant/1'], ['tenant/2'], ['free']])
        await board.post('work', {}, { limits })
      const claims = await claimAll(board)
      expect(claims).toHaveLength(4)
      expect(await board.limits.list()).toMatchObject([
        { key: 'api', keys: [{ key: 'api', running: 1 }] },
        {
          key: 'tenant/*',
          keys: [
            { key: 'tenant/1', running: 2 },
            { key: 'tenant/2', running: 1 },
          ],
        },
      ])
      expect((await board.limits.show('tenant/1')).keys).toEqual([{ key: 'tenant/1', running: 2 }])
      for (const claim of claims) await claim.consume()
      for (const limit of await board.limits.list()) expect(limit.keys ?? []).toEqual([])
      expect(await board.limits.show('tenant/1')).not.toHaveProperty('keys')
    })

    test('a list shows the jobs that run of a key, however many keys of a pattern are in use', async () => {
      const board = await open()
      await board.limits.set('tenant/*', { rate: { limit: 1, per: '1h' } })
      await board.limits.set('zone', { concurrency: 2 })
      await board.post('work', {}, { limits: ['zone'] })
      await board.claimNext()
      await Promise.all(Array.from({ length: 1_001 }, (_, n) => board.limits.take(`tenant/${n}`)))
      expect(await board.limits.list()).toContainEqual(
        expect.objectContaining({ key: 'zone', keys: [{ key: 'zone', running: 1 }] }),
      )
    })

    test('a list shows keys of any characters', async () => {
      const board = await open()
      const keys = ['a\\b', 'c d/é', '["e"]', '#f', '😀'.repeat(100)]
      await board.limits.set('*', { concurrency: 1, rate: { limit: 1, per: '1h' } })
      await board.claim(await board.post('work', {}, { limits: keys }))
      const listed = (await board.limits.list())[0]?.keys?.map(({ key }) => key) ?? []
      expect(listed).toEqual(expect.arrayContaining(keys.slice(0, 4)))
      for (const key of keys)
        expect((await board.limits.show(key)).keys).toMatchObject([{ key, running: 1, nextStart: expect.any(Date) }])
    })

    test('a limit shows how many jobs of each key wait, also to a board that has not viewed them', async () => {
      const [one, other] = [await open(), await open()]
      await one.limits.set('tenant/*', { concurrency: 1 })
      await one.limits.stop('mail')
      await postMany(one, 3, { limits: ['tenant/1'] })
      await postMany(one, 2, { limits: ['tenant/2', 'mail'] })
      await postMany(one, 1, { limits: ['tenant/2'], delay: '1h' })
      await postMany(one, 1, { limits: 'none' })
      await claimAll(one)
      const waiting = { waiting: true } as const
      for (const board of [other, one]) {
        const limits = await board.limits.list(waiting)
        expect(limits.map(({ key, waiting }) => [key, waiting])).toEqual([
          ['mail', 2],
          ['tenant/*', 4],
        ])
        expect(limits[0]).not.toHaveProperty('waitingIsPartial')
        expect((await board.limits.show('tenant/*', waiting)).keys).toEqual([
          { key: 'tenant/1', running: 1, waiting: 2 },
          { key: 'tenant/2', running: 0, waiting: 2 },
        ])
        expect(await board.limits.show('tenant/2', waiting)).toMatchObject({
          ...{ key: 'tenant/*', waiting: 2 },
          keys: [{ key: 'tenant/2', running: 0, waiting: 2 }],
        })
        expect(await board.limits.show('tenant/3', waiting)).toMatchObject({ waiting: 0 })
        expect(await board.limits.show('mail')).not.toHaveProperty('waiting')
      }
      expect(await rejectionOf(other.limits.show('flow/*'))).toBeInstanceOf(NotFound)
    })

    test('a limit shows when the next job of a rate may start', async () => {
      const board = await open()
      await board.limits.set('api', { rate: { limit: 1, per: '1h' } })
      await board.post('work', {}, { limits: ['api'] })
      await board.claimNext({ timeout: '10s' })
      const [use] = (await board.limits.show('api')).keys ?? []
      expect(use).toMatchObject({ key: 'api', running: 0, nextStart: expect.any(Date) })
      const minutes = ((use?.nextStart?.getTime() ?? 0) - Date.now()) / 60_000
      expect(minutes).toBeGreaterThan(59)
      expect(minutes).toBeLessThanOrEqual(60.1)
    })

    test('two boards that claim at the same moment exceed no limit', async () => {
      const boards = await Promise.all([open(), open(), open()])
      await boards[0].limits.set('api', { concurrency: 3 })
      await postMany(boards[0], 12, { limits: ['api'] })
      let running = 0
      let done = 0
      let most = 0
      const work = async (board: JobBoard) => {
        while (done < 12) {
          const claims = await board.claimNext({ max: 4, timeout: '200ms' }).catch(() => [])
          running += claims.length
          most = Math.max(most, running)
          for (const claim of claims) {
            running -= 1
            await claim.consume()
            done += 1
          }
        }
      }
      await Promise.all(boards.map(work))
      expect(most).toBeLessThanOrEqual(3)
      expect(done).toBe(12)
    })

    test('jobs beside a key without room are claimed in their order', async () => {
      const board = await open()
      await board.limits.set('api', { concurrency: 1 })
      await postMany(board, 3, { limits: ['api'], name: 'limited' })
      await postMany(board, 2, {})
      const names = (await claimAll(board)).map(({ job }) => job.name)
      expect(names).toEqual(['limited', 'job 0', 'job 1'])
    })

    test('a job of two keys needs room in both, and keeps none of one while it waits for the other', async () => {
      const board = await open()
      await board.limits.set('a', { concurrency: 1 })
      await board.limits.set('b', { concurrency: 1 })
      await board.post('work', {}, { name: 'a', limits: ['a'] })
      await board.post('work', {}, { name: 'both', limits: ['a', 'b'] })
      await board.post('work', {}, { name: 'b', limits: ['b'] })
      const claims = await claimAll(board)
      expect(claims.map(({ job }) => job.name)).toEqual(['a', 'b'])
      await claims[0]?.consume()
      expect(await claimAll(board)).toEqual([])
      await claims[1]?.consume()
      expect((await board.claimNext({ timeout: '10s' })).map(({ job }) => job.name)).toEqual(['both'])
    })
  })

  describe('rates', () => {
    test('no more jobs start than burst and rate permit', async () => {
      const [one, other] = [await open(), await open()]
      // No token comes back while the claims are answered, however busy the machine is.
      await one.limits.set('api', { rate: { limit: 1, per: '1h', burst: 2 } })
      await postMany(one, 4, { limits: ['api'] })
      const claims = [...(await claimAll(one)), ...(await claimAll(other))]
      expect(claims.map(({ job }) => job.name)).toEqual(['job 0', 'job 1'])
      await Promise.all(claims.map((claim) => claim.consume()))
      const begun = performance.now()
      await one.limits.set('api', { rate: { limit: 1, per: '300ms', burst: 2 } })
      await (await other.claimNext({ timeout: '10s' }))[0].consume()
      await (await one.claimNext({ timeout: '10s' }))[0].consume()
      // Two tokens after the burst: at least two intervals, but for what the answers took.
      expect(performance.now() - begun).toBeGreaterThan(550)
    })

    test('a job takes as many tokens as it costs', async () => {
      const board = await open()
      await board.limits.set('api', { rate: { limit: 10, per: '1h', burst: 10 } })
      await postMany(board, 2, { limits: [{ key: 'api', cost: 6 }] })
      await postMany(board, 2, { limits: [{ key: 'api', cost: 2 }], name: 'cheap' })
      // The second needs two more tokens than there are; the cheap ones must not overtake it for ever.
      expect((await claimAll(board)).map(({ job }) => job.name)).toEqual(['job 0'])
    })

    test('a job that costs many is not overtaken by cheap ones of other keys, which say for whom they wait', async () => {
      const [board, other] = [await open(), await open()]
      await board.limits.set('api', { rate: { limit: 10, per: '1h', burst: 10 } })
      await board.limits.set('tenant/*', { concurrency: 5 })
      await board.claim(await board.post('work', {}, { limits: [{ key: 'api', cost: 6 }] }))
      const dear = await board.post('work', {}, { name: 'dear', limits: [{ key: 'api', cost: 6 }, 'tenant/1'] })
      const cheap = await board.post('work', {}, { name: 'cheap', limits: ['api', 'tenant/2'] })
      expect(await claimAll(board)).toEqual([])
      const later = await board.post('work', {}, { name: 'later', limits: ['api'] })
      expect(await claimAll(board)).toEqual([])
      for (const job of [cheap, later]) {
        const why = await board.waitingFor(job)
        expect(why).toMatchObject({ kind: 'limit', key: 'api', job: { uuid: dear.uuid }, until: expect.any(Date) })
        expect(why?.text).toContain('dear')
      }
      await other.post('work', {}, { name: 'urgent', limits: ['api'], priority: 'HIGH' })
      expect((await claimAll(board)).map(({ job }) => job.name)).toEqual(['urgent'])
      await board.limits.set('api', { rate: { limit: 10, per: '1h', burst: 20 } })
      expect((await claimAll(other)).map(({ job }) => job.name)).toEqual(['dear', 'cheap', 'later'])
    })

    describe('that are changed', () => {
      const HOURLY = { limit: 1, per: '1h' } as const
      const SOON = { limit: 1, per: '300ms' } as const
      const claimOne = (board: JobBoard) => board.claimNext({ timeout: '30s' })

      test('a job that waits starts when the raised rate permits it, whichever board has raised it', async () => {
        const [one, other] = [await open(), await open()]
        await one.limits.set('api', { rate: HOURLY })
        await postMany(one, 3, { limits: ['api'] })
        expect(await claimAll(one)).toHaveLength(1)
        const waiting = claimOne(one)
        await other.limits.set('api', { rate: SOON })
        const begun = performance.now()
        const [first] = await waiting
        await claimOne(one)
        expect(first.job.name).toBe('job 1')
        // One token was missing when the rate was raised.
        expect(performance.now() - begun).toBeGreaterThan(450)
      })

      test('tokens that are missing stay missing, but no more than the new burst', async () => {
        const board = await open()
        await board.limits.set('api', { rate: { limit: 20, per: '10s', burst: 20 } })
        await postMany(board, 30, { limits: ['api'] })
        expect((await claimAll(board)).length).toBeGreaterThanOrEqual(20)
        await board.limits.set('api', { rate: { ...HOURLY, burst: 2 } })
        expect(await claimAll(board)).toEqual([])
        const next = (await board.limits.show('api')).keys?.[0]?.nextStart
        const minutes = (Number(next) - Date.now()) / 60_000
        expect(minutes).toBeGreaterThan(55)
        expect(minutes).toBeLessThan(60.1)
        await board.limits.set('api', { rate: { ...HOURLY, burst: 5 } })
        // A process chooses by the limits that it knows; it hears of its own change as others do.
        expect(await board.claimNext({ max: 10, timeout: '10s' })).toHaveLength(3)
      })

      test('a lowered rate counts at once, also for a key that nobody asks for', async () => {
        const board = await open()
        // Longer than the change takes on a busy machine.
        await board.limits.set('tenant/*', { rate: { limit: 1, per: '3s' } })
        await board.claim(await board.post('work', {}, { limits: ['tenant/1'] }))
        await board.limits.set('tenant/1', { rate: HOURLY })
        const later = (await board.limits.show('tenant/1')).keys?.[0]?.nextStart
        expect(Number(later) - Date.now()).toBeGreaterThan(5_000)
        await board.limits.remove('tenant/1')
        await board.post('work', {}, { limits: ['tenant/1'] })
        expect(await claimOne(board)).toHaveLength(1)
      })

      test('a refusal does not let tokens come back at the former rate', async () => {
        const [one, other] = [await open(), await open()]
        await one.limits.set('api', { rate: HOURLY })
        const jobs = [await one.post('work', {}, { limits: ['api'] }), await one.post('work', {}, { limits: ['api'] })]
        if (!jobs[0] || !jobs[1]) throw new Error('nothing was posted')
        await one.claim(jobs[0])
        await other.limits.set('api', { rate: { limit: 1, per: '1s' } })
        const refused = await rejectionOf(one.claim(jobs[1]))
        if (!(refused instanceof LimitReached) || !refused.until) throw new Error('the claim was granted')
        const again = await rejectionOf(other.claim(await other.find(jobs[1].uuid)))
        // The time is that of the change, and not that of the refusal.
        if (again instanceof LimitReached) expect(Number(again.until) - Number(refused.until)).toBeLessThanOrEqual(1)
        expect(await claimOne(one)).toHaveLength(1)
      })

      test('a job that costs more than the new burst starts when no token is missing', async () => {
        const board = await open()
        await board.limits.set('api', { rate: { limit: 1, per: '1h', burst: 5 } })
        await postMany(board, 2, { limits: [{ key: 'api', cost: 5 }] })
        expect(await claimAll(board)).toHaveLength(1)
        await board.limits.set('api', { rate: { limit: 1, per: '200ms', burst: 2 } })
        const begun = performance.now()
        await claimOne(board)
        // Of five tokens that were missing, the new burst is.
        expect(performance.now() - begun).toBeGreaterThan(350)
      })

      test('the same rate, set again, changes nothing, and a limit without a rate leaves the tokens as they are', async () => {
        const board = await open()
        const rate = { limit: 1, per: '1h', burst: 2 } as const
        await board.limits.set('api', { rate })
        await postMany(board, 3, { limits: [{ key: 'api', cost: 2 }] })
        expect(await claimAll(board)).toHaveLength(1)
        for (const settings of [
          { rate },
          { rate, concurrency: 9 },
          { concurrency: 0 },
          { rate: { ...rate, per: '60m' } },
        ]) {
          await board.limits.set('api', settings as LimitSettings)
          expect(await claimAll(board)).toEqual([])
        }
        const next = (await board.limits.show('api')).keys?.[0]?.nextStart
        expect((Number(next) - Date.now()) / 60_000).toBeGreaterThan(55)
      })
    })

    test('a token that was taken is gone, also when the claim has ended', async () => {
      const board = await open()
      await board.limits.set('api', { rate: { limit: 1, per: '1h' } })
      await postMany(board, 2, { limits: ['api'] })
      await (await board.claimNext({ timeout: '10s' }))[0].consume()
      expect(await claimAll(board)).toEqual([])
      let job: Job | undefined
      for await (const each of board.jobs()) job = each
      const why = job && (await board.waitingFor(job))
      expect(why).toMatchObject({ kind: 'limit', key: 'api', text: expect.stringContaining('api') })
      const until = why?.kind === 'limit' ? why.until : undefined
      expect(Number(until) - Date.now()).toBeGreaterThan(3_500_000)
    })
  })

  test('a start that is later than any date waits, and is shown', async () => {
    const board = await open()
    await board.limits.set('slow', { rate: { limit: 1, per: '36525d' } })
    await postMany(board, 2, { limits: [{ key: 'slow', cost: 1_000_000 }] })
    expect(await claimAll(board)).toHaveLength(1)
    const { keys } = await board.limits.show('slow')
    expect(keys?.[0]?.nextStart?.getTime()).toBe(8.64e15)
  })

  test('every job of a flow keeps the limit of its flow', async () => {
    const board = await open()
    await board.limits.set('flow/work', { concurrency: 1 })
    await postMany(board, 2, {})
    await board.post('other', {}, { name: 'other' })
    expect((await claimAll(board)).map(({ job }) => job.name)).toEqual(['job 0', 'other'])
  })

  test('the key itself counts before patterns, and the longest pattern before others', async () => {
    const board = await open()
    await board.limits.set('*', { concurrency: 5 })
    await board.limits.set('tenant/*', { concurrency: 1 })
    await board.limits.set('tenant/7', { concurrency: 2 })
    await postMany(board, 3, { limits: ['tenant/7'], name: 'seven' })
    await postMany(board, 3, { limits: ['tenant/8'], name: 'eight' })
    const names = (await claimAll(board)).map(({ job }) => job.name)
    expect(names).toEqual(['seven', 'seven', 'eight'])
    expect(await board.limits.show('tenant/9')).toMatchObject({ key: 'tenant/*', concurrency: 1 })
    expect((await board.limits.list()).map(({ key }) => key)).toEqual(['*', 'tenant/*', 'tenant/7'])
  })

  test('a change takes effect with the next claim, also of a board that has not received it', async () => {
    const [one, other] = [await open(), await open()]
    await one.limits.set('api', { concurrency: 5 })
    await postMany(one, 6, { limits: ['api'] })
    await other.claimNext({ timeout: '10s' })
    const claims = await Promise.all([
      one.limits.set('api', { concurrency: 1 }).then(() => claimAll(other)),
      one.limits.set('unrelated', { concurrency: 1 }),
    ])
    expect(claims[0]).toEqual([])
    await one.limits.remove('api')
    const rest = await other.claimNext({ max: 100, timeout: '10s' })
    expect([...rest, ...(await claimAll(other))]).toHaveLength(5)
    expect((await rejectionOf(one.limits.remove('api'))) instanceof NotFound).toBe(true)
  })

  test('what is raised lets waiting jobs start at once', async () => {
    const [one, other] = [await open(), await open()]
    await one.limits.set('api', { concurrency: 0 })
    await postMany(one, 1, { limits: ['api'] })
    const claiming = one.claimNext({ timeout: '10s' })
    await other.limits.set('api', { concurrency: 1 })
    expect(await claiming).toHaveLength(1)
  })

  test('a key that is pushed back starts no job for that time, and one that is stopped none until it is resumed', async () => {
    const [one, other] = [await open(), await open()]
    await postMany(one, 2, { limits: ['api'] })
    const begun = performance.now()
    await one.limits.pushBack('api', { for: '2s', reason: 'too many requests' })
    expect(await one.limits.show('api')).toMatchObject({ held: { reason: 'too many requests', by: one.who } })
    expect(await claimAll(other)).toEqual([])
    await other.claimNext({ timeout: '30s' })
    expect(performance.now() - begun).toBeGreaterThan(1_950)
    await other.limits.stop('api', { reason: 'maintenance' })
    // A hold that ends earlier does not end the stop.
    await one.limits.pushBack('api', { for: 1 })
    expect(await claimAll(one)).toEqual([])
    await other.limits.resume('api')
    expect(await one.claimNext({ timeout: '10s' })).toHaveLength(1)
  })

  test('a job that is claimed by name keeps changes that its board has not received', async () => {
    const [one, other] = [await open(), await open()]
    const job = await one.post('work', {}, { limits: ['api'] })
    for (const board of [other, one, other]) {
      await board.limits.stop('api')
      expect(await rejectionOf(one.claim(job))).toBeInstanceOf(LimitReached)
      await board.limits.resume('api')
      await board.limits.set('api', { concurrency: 0 })
      expect(await rejectionOf(one.claim(job))).toBeInstanceOf(LimitReached)
      await board.limits.set('api', { concurrency: 1 })
      await (await one.claim(job)).abandon()
    }
  })

  test('a job waits for a key that was held a moment ago, and not for one that was resumed a moment ago', async () => {
    const [one, other] = [await open(), await open()]
    const job = await one.post('work', {}, { limits: ['api'] })
    expect(await one.waitingFor(job)).toBeUndefined()
    for (const board of [one, other, one]) {
      await board.limits.stop('api')
      expect(await board.waitingFor(job)).toMatchObject({ kind: 'limit', key: 'api' })
      await board.limits.resume('api')
      expect(await board.waitingFor(job)).toBeUndefined()
    }
  })

  test('a job that is claimed by name is refused with the key, and stays', async () => {
    const board = await open()
    await board.limits.set('api', { concurrency: 1 })
    const jobs = [await board.post('work', {}, { limits: ['api'] }), await board.post('work', {}, { limits: ['api'] })]
    if (!jobs[0] || !jobs[1]) throw new Error('nothing was posted')
    await using claim = await board.claim(jobs[0])
    const refused = await rejectionOf(board.claim(jobs[1]))
    expect(refused).toBeInstanceOf(LimitReached)
    expect(refused).toMatchObject({ key: 'api', retryable: true })
    expect(jobs[1].state).toBe('UNCLAIMED')
    expect(await board.waitingFor(jobs[1])).toMatchObject({ kind: 'limit', key: 'api', used: 1 })
    expect(claim.job.uuid).toBe(jobs[0].uuid)
  })

  test('a job with limits: none keeps no limit and takes no slot', async () => {
    const board = await open()
    await board.limits.set('flow/work', { concurrency: 1 })
    await postMany(board, 2, { limits: 'none' })
    await postMany(board, 2, { name: 'limited' })
    expect((await claimAll(board)).map(({ job }) => job.name)).toEqual(['job 0', 'job 1', 'limited'])
  })

  test('a refused claim takes nothing of its other keys', async () => {
    const [one, other] = [await open(), await open()]
    await one.limits.set('free', { concurrency: 1, rate: { limit: 1, per: '1h' } })
    await one.limits.set('full', { concurrency: 0 })
    const job = await one.post('work', {}, { limits: ['free', 'full'] })
    await rejectionOf(one.claim(job))
    await one.post('work', {}, { name: 'next', limits: ['free'] })
    expect((await claimAll(other)).map(({ job }) => job.name)).toEqual(['next'])
  })

  test('what cannot be set is refused in one line', async () => {
    const board = await open()
    const set = (key: string, settings: unknown) => rejectionOf(board.limits.set(key, settings as LimitSettings))
    const refused = [
      await set('', { concurrency: 1 }),
      await set('k'.repeat(10_000), { concurrency: 1 }),
      await set('a*b', { concurrency: 1 }),
      await set('half \ud800', { concurrency: 1 }),
      await set('half \udc00*', { concurrency: 1 }),
      await rejectionOf(board.limits.pushBack('half \ud800', { for: '1s' })),
      await rejectionOf(board.limits.stop('half \ud800')),
      await rejectionOf(board.limits.resume('half \ud800')),
      await rejectionOf(board.limits.remove('half \ud800')),
      await rejectionOf(board.limits.show('half \ud800')),
      await set('api', {}),
      await set('api', { concurrency: -1 }),
      await set('api', { concurrency: Number.NaN }),
      await set('api', { concurrency: 1.5 }),
      await set('api', { concurrency: 2 ** 31 }),
      await set('api', { rate: { limit: 0, per: '1s' } }),
      await set('api', { rate: { limit: Number.NaN, per: '1s' } }),
      await set('api', { rate: { limit: 1, per: 0 } }),
      await set('api', { rate: { limit: 1, per: '40000d' } }),
      await set('api', { rate: { limit: 1e9, per: 1 } }),
      await set('api', { rate: { limit: 1e-300, per: '36525d' } }),
      await rejectionOf(board.limits.stop('api', { reason: 7 as unknown as string })),
      await rejectionOf(board.limits.stop('api', { for: '1h' } as object)),
      await rejectionOf(board.limits.pushBack('api', { for: '1h', reason: 7 as unknown as string })),
      await set('api', { rate: { limit: 1, per: '1s', burst: 0 } }),
      await set('api', { concurency: 1 }),
    ]
    for (const error of refused) {
      expect(error).toBeInstanceOf(InvalidArgument)
      expect(String(error)).not.toContain('\n')
      expect(String(error).length).toBeLessThan(400)
    }
    expect(await board.limits.list()).toEqual([])
    await board.limits.set('slow', { rate: { limit: 1, per: '36525d' } })
    await board.limits.set('wide', { concurrency: 2 ** 31 - 1 })
    await board.post('work', {}, { limits: ['wide'] })
    expect(await claimAll(board)).toHaveLength(1)
    const post = (limits: unknown) =>
      rejectionOf(board.post('work', {}, { limits: limits as NonNullable<PostOptions['limits']> }))
    for (const limits of [
      'api',
      [''],
      [7],
      ['a*'],
      [{ key: 'a', cost: 0 }],
      [{ key: 'a', price: 1 }],
      ['k'.repeat(513)],
      ['half \ud800'],
      [{ key: '\udc00 half', cost: 2 }],
    ])
      expect(await post(limits)).toBeInstanceOf(InvalidPosting)
    expect(String(await post(['half \ud800']))).toMatch(/limits: key "half \\ud800" has half of a surrogate pair/)
    expect(String(await set('half \ud800', { concurrency: 1 }))).toMatch(/"half \\ud800" has half of a surrogate pair/)
    // A whole pair is a character like any other.
    await board.limits.set('whole \u{1f41f}', { concurrency: 1 })
    await board.post('work', {}, { limits: ['whole \u{1f41f}'] })
    expect(await claimAll(board)).toHaveLength(1)
  })

  describe('a key of which no job starts', () => {
    test('says who has stopped it, why, and until when', async () => {
      const [board, other] = [await open({ who: 'ada' }), await open({ who: 'eve' })]
      const job = await board.post('work', {}, { limits: ['tenant/7'] })
      // A refused claim has read the limits as they are now.
      const reason = async () => {
        expect(await rejectionOf(board.claim(job))).toBeInstanceOf(LimitReached)
        return await board.waitingFor(job)
      }
      await other.limits.set('tenant/*', { concurrency: 0 })
      expect(await reason()).toMatchObject({
        ...{ kind: 'limit', key: 'tenant/7', limit: { concurrency: 0 }, used: 0 },
        stopped: { key: 'tenant/*', by: 'eve', since: expect.any(Date) },
        text: 'limit tenant/7 (tenant/*) permits 0 jobs at once, as eve has set',
      })
      await other.limits.pushBack('tenant/7', { for: '1h', reason: 'it has answered 429' })
      expect(await reason()).toMatchObject({
        until: expect.any(Date),
        stopped: { key: 'tenant/7', by: 'eve', reason: 'it has answered 429' },
        text: expect.stringMatching(/^limit tenant\/7 is held until \S+Z by eve: it has answered 429$/),
      })
      await other.limits.stop('tenant/*', { reason: 'unpaid' })
      expect(await reason()).toMatchObject({
        stopped: { key: 'tenant/*', by: 'eve', reason: 'unpaid' },
        text: 'limit tenant/7 (tenant/*) was stopped by eve: unpaid',
      })
      expect(String(await rejectionOf(board.claim(job)))).toContain('was stopped by eve: unpaid')
    })

    test('is resumed, which returns what still stops it', async () => {
      const board = await open({ who: 'ada' })
      expect(await board.limits.resume('tenant/7')).toEqual({ wasHeld: false, stops: [] })
      await board.limits.set('tenant/*', { concurrency: 0 })
      await board.limits.set('other', { concurrency: 0 })
      await board.limits.stop('*', { reason: 'maintenance' })
      await board.limits.pushBack('tenant/7', { for: '1h' })
      expect(await board.limits.resume('tenant/7')).toMatchObject({
        wasHeld: true,
        stops: [
          { limit: { key: 'tenant/*' }, text: 'limit tenant/* permits 0 jobs at once, as ada has set' },
          { limit: { key: '*' }, text: 'limit * was stopped by ada: maintenance' },
        ],
      })
      await board.limits.stop('tenant/8')
      expect((await board.limits.resume('*')).stops.map(({ limit }) => limit.key).sort()).toEqual([
        ...['other', 'tenant/*', 'tenant/8'],
      ])
      await board.limits.set('tenant/7', { concurrency: 1 })
      expect(await board.limits.resume('tenant/7')).toEqual({ wasHeld: false, stops: [] })
    })

    test('keeps no cancelled job that has run: its claim takes nothing of the key', async () => {
      const [one, other] = [await open(), await open()]
      await one.limits.set('api', { concurrency: 1, rate: { limit: 2, per: '1h', burst: 2 } })
      const jobs = [
        await one.post('work', {}, { name: 'stopped', limits: ['api'] }),
        await one.post('work', {}, { name: 'stays', limits: ['api'] }),
      ]
      for (const job of jobs) await (await one.claim(job)).abandon()
      const [stopped, stays] = jobs
      if (!stopped || !stays) throw new Error('nothing was posted')
      await one.limits.stop('api')
      await other.cancel(await other.find(stopped.uuid), { reason: 'not needed' })
      const [claim] = await other.claimNext({ timeout: '20s' })
      expect([claim.job.name, claim.cancelled.aborted]).toEqual(['stopped', true])
      await claim.trash()
      expect(await claimAll(other)).toEqual([])
      // The same where no job may run at once, and for one that is claimed by name.
      await one.limits.resume('api')
      await one.limits.set('api', { concurrency: 0 })
      await one.cancel(stays)
      await refresh(one)
      await using again = await one.claim(stays)
      expect(again.cancelled.aborted).toBe(true)
      await again.trash()
      expect(await countJobs(one)).toBe(0)
    })

    test('keeps a cancelled job while it is only pushed back', async () => {
      const board = await open()
      const job = await board.post('work', {}, { limits: ['api'] })
      await (await board.claim(job)).abandon()
      await board.limits.pushBack('api', { for: '1h' })
      await board.cancel(job)
      expect(await claimAll(board)).toEqual([])
      expect(job.state).toBe('UNCLAIMED')
    })
  })
}

/** A board without limits refuses jobs that name some. */
export function noLimitsContract({ open }: Place): void {
  test('are refused', async () => {
    const board = await open()
    const refused = await rejectionOf(board.post('work', {}, { limits: ['api'] }))
    expect(refused).toBeInstanceOf(UnsupportedCapability)
    expect(await board.post('work', {}, { limits: 'none' })).toMatchObject({ created: true })
    expect(await rejectionOf(board.limits.take('api'))).toBeInstanceOf(UnsupportedCapability)
  })
}
