/** A claim is granted to one, whole, in claim order; whoever is too late learns it and goes on. */
import { describe, expect, test } from 'vitest'
import type { Claim, Job, JobBoard } from '../../../src/board/index.ts'
import { InvalidArgument, InvalidState, NotFound, Timeout, Unclaimable } from '../../../src/core/errors.ts'
import { rejectionOf } from '../../board/events.ts'
import { claimed, namesOn, refresh } from '../../board/jobs.ts'
import type { Place } from '../board.ts'

export function claimingContract({ open, beginAnew }: Place): void {
  test('a claim names its owner, its run and its fence, and everybody sees it', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open({ who: 'there' })])
    const job = await here.post('flow', {})
    const claim = await here.claim(job)
    expect(claim).toMatchObject({ who: 'here', run: 1, settled: false })
    expect(claim.lost.aborted).toBe(false)
    expect(job).toMatchObject({ state: 'CLAIMED', runs: 1, attempts: [{ who: 'here', at: expect.any(Date) }] })
    const seen = await there.find(job.uuid)
    await refresh(there)
    expect(seen.state).toBe('CLAIMED')
    expect(await there.findOwner(seen)).toBe('here')
    expect(await namesOn(there, { onlyUnclaimed: true })).toEqual([])
    expect(await namesOn(there)).toEqual(['flow'])
  })

  test('the present owner is named to every caller that comes later, also to the owner', async () => {
    const [here, there] = await Promise.all([open({ who: 'the owner' }), open({ who: 'the other' })])
    const job = await here.post('flow', {})
    await here.claim(job)
    for (const board of [there, here]) {
      const failure = await rejectionOf(board.claim(await board.find(job.uuid)))
      expect(failure).toBeInstanceOf(Unclaimable)
      expect(String(failure)).toContain('the owner')
      expect(String(failure)).toContain(job.uuid)
    }
  })

  test('a job seen through another board object is claimed like one of its own', async () => {
    const [here, there] = await Promise.all([open({ who: 'here' }), open({ who: 'there' })])
    const job = await here.post('flow', {})
    const claim = await there.claim(job)
    expect(claim).toMatchObject({ who: 'there', run: 1 })
    await refresh(here)
    expect(job.state).toBe('CLAIMED')
    await there.consume(job)
    await refresh(here)
    expect(job.state).toBe('COMPLETE')
    expect(await there.countJobs()).toBe(0)
  })

  test('a job seen through a board object that is closed by now is claimed as it stands', async () => {
    const [closed, there, other] = await Promise.all([open(), open(), open()])
    const job = await closed.post('flow', {})
    await closed.close()
    await (await other.claimNext())[0].abandon()
    expect((await there.claim(job)).run).toBe(2)
  })

  test('a job that has left the board is not found', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const job = await here.post('flow', {})
    const seen = await there.find(job.uuid)
    await (await here.claim(job)).consume()
    expect(await rejectionOf(there.claim(seen))).toBeInstanceOf(NotFound)
    expect(await rejectionOf(here.claim(job))).toBeInstanceOf(NotFound)
  })

  test('run and fence grow with every claim, the fence over the whole board', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const jobs = [await here.post('flow', {}), await here.post('flow', {})]
    let newest = -1n
    for (let run = 1; run <= 3; run++) {
      for (const job of jobs) {
        const board = run % 2 ? here : there
        await refresh(board)
        const claim = await board.claim(await board.find(job.uuid))
        expect(claim.run).toBe(run)
        expect(claim.fence).toBeGreaterThan(newest)
        newest = claim.fence
        await claim.abandon()
      }
    }
  })

  test('a board that was begun anew hands out larger fences than the one before', async () => {
    const former = await open()
    const fences: bigint[] = []
    for (let number = 1; number <= 5; number++) {
      const claim = await former.claim(await former.post('flow', {}))
      fences.push(claim.fence)
      await claim.consume()
    }
    await former.close()
    await beginAnew()
    const board = await open()
    for (let number = 1; number <= 2; number++) {
      fences.push((await board.claim(await board.post('flow', {}))).fence)
    }
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => (a < b ? -1 : 1)))
  })

  test('sessions that begin to claim at once, on a board that is new, never hand out a fence twice', async () => {
    const boards = await Promise.all([open(), open(), open()])
    const poster = await open()
    for (let number = 0; number < 12; number++) await poster.post('flow', {})
    await Promise.all(boards.map((board) => refresh(board)))
    let newest = -1n
    let done = 0
    const work = async (board: JobBoard) => {
      while (done < 12) {
        const before = newest
        const [claim] = await board.claimNext({ timeout: '20s' }).catch(() => [])
        if (!claim) continue
        expect(claim.fence).toBeGreaterThan(before)
        if (claim.fence > newest) newest = claim.fence
        await claim.consume()
        done += 1
        if (done === 12) await Promise.all(boards.map((each) => each.close()))
      }
    }
    await Promise.all(boards.map(work))
    expect(done).toBe(12)
  })

  test('claimNext takes what comes first in claim order, and several at once', async () => {
    const board = await open()
    for (const name of ['a', 'b', 'c']) await board.post('flow', {}, { name })
    await board.post('flow', {}, { name: 'urgent', priority: 'VERY_HIGH' })
    const [first] = await board.claimNext()
    expect(first.job.name).toBe('urgent')
    const others = await board.claimNext({ max: 10 })
    expect(others.map(({ job }) => job.name)).toEqual(['a', 'b', 'c'])
  })

  test('claimNext leaves to others what is not accepted', async () => {
    const board = await open()
    for (const name of ['a', 'b', 'c']) await board.post('flow', {}, { name })
    const claims = await board.claimNext({ max: 10, accept: ({ name }) => name !== 'a' })
    expect(claims.map(({ job }) => job.name)).toEqual(['b', 'c'])
    expect(await namesOn(board, { onlyUnclaimed: true })).toEqual(['a'])
  })

  test('claimNext with a timeout waits so long for the first, and no longer', async () => {
    const [here, there] = await Promise.all([open(), open()])
    expect(await rejectionOf(here.claimNext({ timeout: 0 }))).toBeInstanceOf(Timeout)
    const late = here.claimNext({ timeout: 1 })
    expect(String(await rejectionOf(late))).toContain('within 1 ms')
    const inTime = here.claimNext({ timeout: '1m' })
    await there.post('flow', {}, { name: 'a' })
    expect((await inTime)[0].job.name).toBe('a')
    await there.post('flow', {}, { name: 'b' })
    await refresh(here)
    expect((await here.claimNext({ timeout: 0 }))[0].job.name).toBe('b')
    expect(await rejectionOf(here.claimNext({ timeout: '1 week' as '1s' }))).toBeInstanceOf(InvalidArgument)
  })

  test.each([0, -1, Number.NaN])('claimNext of %d jobs is refused', async (max) => {
    const board = await open()
    await board.post('flow', {})
    expect(await rejectionOf(board.claimNext({ max }))).toBeInstanceOf(InvalidArgument)
  })

  test('claimNext waits for a posting, and for a job that is given back', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const first = here.claimNext()
    await there.post('flow', {})
    const [claim] = await first
    const second = there.claimNext()
    await claim.abandon()
    expect((await second)[0].run).toBe(2)
  })

  test('of two that wait, one gets the first job and the other the second', async () => {
    const [here, there] = await Promise.all([open(), open()])
    const waiting = [here.claimNext(), here.claimNext()]
    await there.post('flow', {}, { name: 'first' })
    const [claim] = await Promise.race(waiting)
    expect(claim.job.name).toBe('first')
    await there.post('flow', {}, { name: 'second' })
    const names = (await Promise.all(waiting)).map(([{ job }]) => job.name)
    expect(names.sort()).toEqual(['first', 'second'])
  })

  test('claims gives one after the other until its signal fires', async () => {
    const board = await open()
    for (const name of ['a', 'b', 'c']) await board.post('flow', {}, { name })
    const stop = new AbortController()
    const names: string[] = []
    for await (const claim of board.claims({ signal: stop.signal })) {
      names.push(claim.job.name)
      await claim.consume()
      if (names.length === 2) stop.abort()
    }
    expect(names).toEqual(['a', 'b'])
    expect(await namesOn(board)).toEqual(['c'])
  })

  describe('among many', () => {
    const BOARDS = 4
    const JOBS = 60

    test('who want the same jobs, each job is granted exactly once', async () => {
      const boards = await Promise.all(Array.from({ length: BOARDS }, (_, index) => open({ who: `board ${index}` })))
      const [first] = boards
      const names = Array.from({ length: JOBS }, (_, index) => `job ${index}`)
      const finished = new AbortController()
      const granted: Claim[] = []
      const take = async (board: JobBoard) => {
        for await (const claim of board.claims({ signal: finished.signal })) {
          granted.push(claim)
          if (granted.length === JOBS) finished.abort()
        }
      }
      const takers = boards.flatMap((board) => [take(board), take(board)])
      await Promise.all(names.map((name) => first?.post('flow', {}, { name })))
      await Promise.all(takers)
      expect(granted.map(({ job }) => job.name).sort()).toEqual(names.sort())
      expect(granted.every(({ run }) => run === 1)).toBe(true)
    })

    test('who claim one and the same, one is granted and the others learn that they were too late', async () => {
      const boards = await Promise.all(Array.from({ length: BOARDS }, (_, index) => open({ who: `board ${index}` })))
      for (let round = 0; round < 10; round++) {
        const posted = await boards[round % BOARDS]?.post('flow', {})
        const seen: [JobBoard, Job][] = []
        for (const board of boards) seen.push([board, await board.find(posted?.uuid ?? '')])
        const results = await Promise.allSettled(seen.map(([board, job]) => board.claim(job)))
        const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
        expect(reasons).toHaveLength(BOARDS - 1)
        for (const reason of reasons) expect(reason).toBeInstanceOf(Unclaimable)
        for (const result of results) if (result.status === 'fulfilled') await result.value.consume()
      }
    })

    test('jobs that come and go leave no board behind', async () => {
      const boards = await Promise.all([open(), open(), open()])
      for (let round = 0; round < 20; round++) {
        const posting = boards.map((board, index) => board.post('flow', {}, { name: `${round} ${index}` }))
        const taking = boards.map(async (board) => {
          const [claim] = await board.claimNext()
          if (round % 3 === 0) await claim.abandon()
          else await claim.consume()
        })
        await Promise.all([...posting, ...taking])
      }
      const [left] = await Promise.all(boards.map((board) => namesOn(board)))
      for (const board of boards) {
        expect(await namesOn(board)).toEqual(left)
        expect(await board.countJobs()).toBe(left?.length)
      }
      for (const name of left ?? []) await (await claimed(boards[1] ?? (await open()), name)).consume()
      for (const board of boards) expect(await namesOn(board)).toEqual([])
    })
  })

  test('a board that was closed claims nothing any more', async () => {
    const board = await open()
    const job = await board.post('flow', {})
    await board.close()
    expect(await rejectionOf(board.claim(job))).toBeInstanceOf(InvalidState)
    expect(await rejectionOf(board.claimNext())).toBeInstanceOf(InvalidState)
  })
}
