/** A job that nobody starts in time goes to the trash; a job that was started does not. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Job, JobBoard, TrashedJob } from '../../../src/board/index.ts'
import { InvalidArgument, InvalidPosting, NotFound, Unclaimable } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { all, namesOn, refresh } from '../../board/jobs.ts'
import type { BoardBackend, Place } from '../board.ts'

/** Milliseconds: long enough to be seen waiting, short enough to be waited for. */
const SHORT = 300
const DAY_MS = 86_400_000
const REASON = 'nobody started it within 300 ms'

export function expiryContract({ open }: Place, backend: BoardBackend): void {
  const stop = new Set<AbortController>()

  afterEach(() => {
    for (const each of stop) each.abort()
    stop.clear()
    vi.restoreAllMocks()
  })

  /** Waits for jobs as a conductor does that knows no flow. */
  const waitForOthers = (board: JobBoard): void => {
    const done = new AbortController()
    stop.add(done)
    board.claimNext({ accept: () => false, signal: done.signal }).catch(() => undefined)
  }

  const trashedOf = async (board: JobBoard, job: Job): Promise<TrashedJob | undefined> =>
    (await all(board.trashed())).find(({ uuid }) => uuid === job.uuid)

  test('a job that nobody starts goes to the trash at its time, once, whoever watches the board', async () => {
    const boards = await Promise.all([open({ who: 'a' }), open({ who: 'b' }), open({ who: 'c' })])
    const [here] = boards
    const job = await here.post('flow', {}, { expiresAfter: SHORT })
    const kept = await here.post('flow', {}, { name: 'kept', expiresAfter: '1h' })
    for (const board of boards) waitForOthers(board)
    expect(await job.wait()).toBe('TRASHED')
    const entry = await trashedOf(here, job)
    expect(entry).toMatchObject({ reason: REASON, expired: true, attempts: [] })
    expect(boards.map(({ who }) => who)).toContain(entry?.who)
    expect(entry?.failure).toBeUndefined()
    const posted = job.postedAt?.getTime() ?? Number.NaN
    expect(job.expiresAt?.getTime()).toBe(posted + SHORT)
    expect((await here.find(kept.uuid)).expiresAt?.getTime()).toBeGreaterThan(posted + 3_500_000)
    expect(await namesOn(here)).toEqual(['kept'])
  })

  test('a board that claims nothing leaves it, and a claim is never given what has expired', async () => {
    const [poster, claimer] = await Promise.all([open(), open()])
    const job = await poster.post('flow', {}, { expiresAfter: SHORT })
    const seen = await claimer.find(job.uuid)
    while (Date.now() < (seen.expiresAt?.getTime() ?? 0) + 50) await refresh(poster)
    expect(await namesOn(poster)).toEqual(['flow'])
    const refused = await rejectionOf(claimer.claim(seen))
    expect(refused).toBeInstanceOf(Unclaimable)
    expect(String(refused)).toContain(REASON)
    expect(await rejectionOf(claimer.claim(seen))).toBeInstanceOf(NotFound)
    expect(await trashedOf(poster, job)).toMatchObject({ expired: true })
  })

  test('claims and expiry at the same time: each job is claimed or in the trash, never both', async () => {
    const boards = await Promise.all([open(), open(), open()])
    const [here] = boards
    const jobs = await Promise.all(
      Array.from({ length: 24 }, (_, number) =>
        here.post('flow', {}, { name: `${number}`, expiresAfter: 50 + number * 10 }),
      ),
    )
    const claimed: string[] = []
    const end = new AbortController()
    // Each takes one job after the other, and only those whose time has nearly come.
    const work = boards.map(async (board) => {
      const isNear = ({ uuid }: { readonly uuid: string }) => {
        const expiresAt = jobs.find((job) => job.uuid === uuid)?.expiresAt?.getTime() ?? 0
        return expiresAt - Date.now() < 15
      }
      while (!end.signal.aborted) {
        const claims = await board.claimNext({ accept: isNear, timeout: 20, signal: end.signal }).catch(() => [])
        for (const claim of claims) {
          claimed.push(claim.job.uuid)
          await claim.consume()
        }
      }
    })
    const ends = await Promise.all(jobs.map((job) => job.wait()))
    end.abort()
    await Promise.all(work)
    const trashed = (await all(here.trashed())).map(({ uuid }) => uuid)
    expect([...claimed, ...trashed].sort()).toEqual(jobs.map(({ uuid }) => uuid).sort())
    expect(ends.filter((each) => each === 'TRASHED')).toHaveLength(trashed.length)
    expect(await namesOn(here)).toEqual([])
  })

  /** Posts a job and claims it before it expires. On a busy machine that takes longer than usual, so each attempt has twice the time. */
  const claimedInTime = async (here: JobBoard, there: JobBoard) => {
    for (let expiresAfter = SHORT; ; expiresAfter *= 2) {
      const { uuid } = await here.post('flow', {}, { name: 'run', expiresAfter })
      const options = { accept: (job: Pick<Job, 'uuid'>) => job.uuid === uuid, timeout: expiresAfter }
      const [claim] = await there.claimNext(options).catch(() => [])
      if (claim) return { claim, expiresAfter }
    }
  }

  test('a job that has run once never expires', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const { claim, expiresAfter } = await claimedInTime(here, there)
    const { job } = claim
    expect(job.expiresAt).toBeUndefined()
    const second = await here.post('flow', {}, { name: 'not run', expiresAfter })
    waitForOthers(here)
    await claim.abandon()
    expect(await second.wait()).toBe('TRASHED')
    expect(await namesOn(here)).toEqual(['run'])
    expect((await there.claim(await there.find(job.uuid))).run).toBe(2)
  })

  test('it expires on a paused board, too', async () => {
    const [here, there] = await Promise.all([open(), open()])
    await here.pause()
    waitForOthers(there)
    const job = await here.post('flow', {}, { expiresAfter: SHORT })
    expect(await job.wait()).toBe('TRASHED')
    expect(await trashedOf(here, job)).toMatchObject({ expired: true })
    expect(here.paused).toBe(true)
  })

  test('the time of a restored job counts anew', async () => {
    const [here, there] = await Promise.all([open(), open()])
    waitForOthers(there)
    const job = await here.post('flow', {}, { expiresAfter: SHORT })
    const before = job.expiresAt?.getTime() ?? Number.NaN
    expect(await job.wait()).toBe('TRASHED')
    for (const entry of await all(here.trashed())) await here.restore(entry)
    const again = await here.find(job.uuid)
    // Timers and the clock may differ by milliseconds.
    expect(again.expiresAt?.getTime()).toBeGreaterThan(before)
    expect(await again.wait()).toBe('TRASHED')
    expect(await trashedOf(here, job)).toMatchObject({ reason: REASON, expired: true })
  })

  if (backend.capabilities.delays)
    test('the time of a delayed job counts from its post, and a delay that is not shorter is refused', async () => {
      const [here, there] = await Promise.all([open(), open()])
      waitForOthers(there)
      for (const delay of ['10m', '1h'] as const) {
        const refused = await rejectionOf(here.post('flow', {}, { delay, expiresAfter: '10m' }))
        expect(refused).toBeInstanceOf(InvalidPosting)
        expect(String(refused)).toContain('expiresAfter must be longer than delay')
      }
      const job = await here.post('flow', {}, { delay: SHORT - 100, expiresAfter: SHORT })
      expect(await job.wait()).toBe('TRASHED')
      expect(await trashedOf(here, job)).toMatchObject({ reason: REASON })
    })

  test('a job that is in the trash for another reason is not expired', async () => {
    const board = await open()
    const job = await board.post('flow', {}, { expiresAfter: '1h' })
    await board.cancel(job, { reason: REASON })
    expect(await trashedOf(board, job)).toMatchObject({ expired: false })
  })

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '1 fortnight', 'soon', {}])('%s is refused', async (value) => {
    const board = await open()
    const refused = await rejectionOf(board.post('flow', {}, { expiresAfter: value as '1s' }))
    expect(refused).toBeInstanceOf(InvalidArgument)
    expect(String(refused)).toContain('expiresAfter')
    expect(await board.countJobs()).toBe(0)
  })

  test('no time at all is refused', async () => {
    const board = await open()
    const refused = await rejectionOf(board.post('flow', {}, { expiresAfter: 0 }))
    expect(refused).toBeInstanceOf(InvalidPosting)
    expect(String(refused)).toContain('expiresAfter must be longer than 0')
    expect(await board.countJobs()).toBe(0)
  })

  if (!backend.hasProcessClock)
    describe('the clock of the process is wrong', () => {
      const setClock = (offsetMs: number) => {
        const real = Date.now.bind(Date)
        vi.spyOn(Date, 'now').mockImplementation(() => real() + offsetMs)
      }

      test('a day ahead: no job expires early, neither at a claim nor without one', async () => {
        setClock(DAY_MS)
        const [here, there] = await Promise.all([open(), open()])
        waitForOthers(there)
        const late = await open()
        const job = await here.post('flow', {}, { name: 'kept', expiresAfter: '1h' })
        const soon = await here.post('flow', {}, { name: 'soon', expiresAfter: SHORT })
        expect(await soon.wait()).toBe('TRASHED')
        expect(await namesOn(here)).toEqual(['kept'])
        expect((await late.claim(await late.find(job.uuid))).run).toBe(1)
      })

      test('a day behind: a job expires in time', async () => {
        setClock(-DAY_MS)
        const [here, there] = await Promise.all([open(), open()])
        waitForOthers(there)
        const job = await here.post('flow', {}, { expiresAfter: SHORT })
        expect(await job.wait()).toBe('TRASHED')
        expect(await trashedOf(here, job)).toMatchObject({ reason: REASON })
      })
    })
}
